"""Tiles of a part of a network: what they need and cost, by hand and by counting positions."""

from __future__ import annotations

import pytest

from gapless.formulations.spatial import SAME, Axis, SpatialNetwork, SpatialNode, Window
from gapless.formulations.tiles import (
    bytes_of,
    even_rows,
    extra_flops,
    flops_of,
    halos,
    needs,
    obstacles,
    redundancy,
    reference_rows,
    sources_of,
    tile_of,
)

THREE = (Window(extent=3, before=1), SAME)
HALF = (Window(extent=2, stride=2), SAME)


def node(name: str, *sources: int, rows: int, window: tuple[Window, Window] = THREE) -> SpatialNode:
    """Return a node with ten operations and four bytes for each row."""
    return SpatialNode(
        name=name,
        op_type="Conv" if sources else "Input",
        sources=sources,
        windows=(window,) * len(sources),
        size=(rows, 1),
        flops=10 * rows * bool(sources),
        bytes=4 * rows,
    )


DIAMOND = SpatialNetwork(
    name="diamond",
    nodes=(
        node("image", rows=12),
        node("a", 0, rows=12),
        node("b", 1, rows=12),
        node("c", 1, rows=6, window=HALF),
        node("d", 2, rows=6, window=HALF),
        node("e", 3, 4, rows=6),
    ),
    outputs=(2, 5),
)


def test_several_readers_need_their_hull() -> None:
    found = needs(DIAMOND, {1, 2, 3, 4, 5}, {5: (2, 3), 2: (0, 1)}, Axis.ROWS)
    assert found == {5: (2, 3), 4: (1, 4), 3: (1, 4), 2: (0, 8), 1: (0, 9), 0: (0, 10)}
    members = (1, 2, 3, 4, 5)
    assert flops_of(DIAMOND, members, found, Axis.ROWS) == 10 * (1 + 3 + 3 + 8 + 9)
    assert bytes_of(DIAMOND, sources_of(DIAMOND, members), found, Axis.ROWS) == 4 * 10


def test_nothing_is_needed_for_an_empty_tile() -> None:
    assert needs(DIAMOND, {3, 4, 5}, {5: (2, 2)}, Axis.ROWS) == {}


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 9])
def test_even_parts_cover_every_sink_once(count: int) -> None:
    members = {1, 2, 3, 4, 5}
    assert reference_rows(DIAMOND, members, Axis.ROWS) == 6
    rows = even_rows(6, count)
    assert len(rows) == min(count, 6)
    tiles = [tile_of(DIAMOND, members, part, Axis.ROWS) for part in rows]
    for sink, size in ((2, 12), (5, 6)):
        covered = [row for tile in tiles for row in range(*tile[sink])]
        assert covered == list(range(size))
        assert all(tile[sink][0] < tile[sink][1] for tile in tiles)


def test_redundancy_grows_with_parts_and_is_nothing_for_one() -> None:
    found = [redundancy(DIAMOND, {1, 2, 3, 4, 5}, even_rows(6, count), Axis.ROWS) for count in (1, 2, 3, 6)]
    assert found[0] == 0
    assert found == sorted(set(found))


def test_what_cannot_be_divided_is_computed_whole_and_named() -> None:
    pool = SpatialNode(
        name="pool",
        op_type="GlobalAveragePool",
        sources=(1,),
        windows=((None, None),),
        splits=(False, False),
    )
    net = SpatialNetwork(name="n", nodes=(*DIAMOND.nodes[:2], pool), outputs=(2,))
    assert needs(net, {1, 2}, {2: (0, 1)}, Axis.ROWS) == {2: (0, 1), 1: (0, 12), 0: (0, 12)}
    (words,) = obstacles(net, {1, 2}, Axis.ROWS)
    assert "'pool' (GlobalAveragePool)" in words
    assert halos(net, {1, 2})[1] == (12, 1)
    assert extra_flops(net, {1, 2}) == 10 * (24 * 2 - 12)  # the map twice along each side, less the map
    assert extra_flops(net, {2}) == 0


def test_the_cost_of_a_piece_by_hand() -> None:
    """Piece {a, b}: b reads one row more on either side of a, so two rows of ten operations are extra."""
    assert halos(DIAMOND, {1, 2}) == {1: (2, 0), 2: (0, 0)}
    assert extra_flops(DIAMOND, {1, 2}) == 20
    assert extra_flops(DIAMOND, {1}) == 0
    assert halos(DIAMOND, DIAMOND.operators)[1] == (2 + 2 * 2, 0)
