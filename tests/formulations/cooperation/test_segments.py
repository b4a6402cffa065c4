"""Tiles of chunks by two borders agree with tiles that go backward through the graph one by one."""

from __future__ import annotations

import random

import pytest

from gapless.formulations.cooperation.segments import Segments
from gapless.formulations.groups import Cooperation
from gapless.formulations.spatial import SAME, Axis, SpatialNetwork, SpatialNode, Window
from gapless.formulations.tiles import needs
from tests.cooperation_instances import drawn_chain


def amounts(data: Cooperation, start: int, stop: int, tile: tuple[int, int]) -> tuple[int, int, int]:
    """Return operations, bytes read and bytes made of a tile, from the intervals of its nodes."""
    network, nodes = data.spatial, data.spatial.nodes
    members = [index for index, piece in enumerate(data.pieces) if start <= piece < stop]
    sinks = network.sinks(members)
    rows = min(nodes[sink].size[0] for sink in sinks)
    parts = {
        sink: (tile[0] * nodes[sink].size[0] // rows, tile[1] * nodes[sink].size[0] // rows) for sink in sinks
    }
    found = needs(network, members, parts, Axis.ROWS)

    def total(which: list[int], intervals: dict[int, tuple[int, int]], amount: str, least: int) -> int:
        return sum(
            -(-max(least, getattr(nodes[index], amount)) // nodes[index].size[0]) * (stop - start)
            for index in which
            for start, stop in [intervals[index]]
        )

    outside = [index for index in found if index not in members]
    flops = total(members, found, "flops", 1)
    return flops, total(outside, found, "bytes", 0), total(list(sinks), parts, "bytes", 0)


@pytest.mark.parametrize("seed", range(40))
def test_two_borders_say_what_a_tile_needs(seed: int) -> None:
    rng = random.Random(seed)
    spatial, pieces = drawn_chain(rng, rng.randint(1, 5))
    data = Cooperation(spatial=spatial, pieces=pieces)
    segments, count = Segments(data), max(pieces) + 1
    tried = 0
    for start in rng.sample(range(count), count):
        for stop in range(start + 1, count + 1):
            segment = segments.of(start, stop)
            for _ in range(3 if segment.rows > 1 else 0):
                first = rng.randrange(segment.rows)
                tile = first, rng.randint(first + 1, segment.rows)
                works = sum(work.of(*tile) for work in segment.work)
                found = works, segment.received.of(*tile), segment.sent.of(*tile)
                assert found == amounts(data, start, stop, tile)
                tried += 1
    assert tried or not all(node.splits[0] for node in spatial.nodes) or count == 1


def test_results_that_leave_early_take_their_share() -> None:
    halving = Window(stride=2, extent=2)
    nodes = (
        SpatialNode(name="in", op_type="Input", size=(8, 8), bytes=80),
        SpatialNode(name="a", op_type="Relu", sources=(0,), windows=((SAME, SAME),), size=(8, 8), bytes=80),
        SpatialNode(
            name="b", op_type="MaxPool", sources=(1,), windows=((halving, halving),), size=(4, 4), bytes=20
        ),
    )
    data = Cooperation(spatial=SpatialNetwork(name="n", nodes=nodes, outputs=(1, 2)), pieces=(-1, 0, 1))
    segment = Segments(data).of(0, 2)
    assert segment.rows == 4
    assert segment.sent.of(0, 1) == 2 * 10 + 5
    assert segment.received.of(1, 3) == 4 * 10
    assert Segments(data).of(0, 1).rows == 8


def test_tiles_of_a_convolution_overlap_by_its_halo() -> None:
    window = Window(extent=3, before=1)
    nodes = (
        SpatialNode(name="in", op_type="Input", size=(10, 10), bytes=100),
        *(
            SpatialNode(
                name=f"c{number}", op_type="Conv", sources=(number,), windows=((window, window),),
                size=(10, 10), bytes=100, flops=1000,
            )
            for number in range(2)
        ),
    )  # fmt: skip
    data = Cooperation(spatial=SpatialNetwork(name="n", nodes=nodes, outputs=(2,)), pieces=(-1, 0, 0))
    segment = Segments(data).of(0, 1)
    (work,) = segment.work
    assert [work.of(0, 5), work.of(4, 6), work.of(5, 10)] == [600 + 500, 400 + 200, 600 + 500]
    assert work.by_rows(2)[5] == 1100
    assert work.by_rows(3)[5] == 700 + 500
    assert segment.received.by_rows(2)[5] == 70
    assert segment.received.by_rows(3)[9] == 100  # no more than there is
