"""Small parts of the runtime: hops, slots, blueprints, memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from gapless.executor.engine import Artifact
from gapless.executor.model import Piece, TensorSpec
from gapless.executor.pipeline.blueprint import draw
from gapless.executor.pipeline.shared import (
    ALIGNMENT,
    Hop,
    HopReader,
    NeighbourGoneError,
    SharedMemory,
    SlotHeader,
    SlotLayout,
    receive_hop,
    send_hop,
)
from gapless.executor.pipeline.worker import largest_rss_bytes
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import ExecutionError, InvalidPlanError
from tests.executor.pipeline.fakes import FakeEngine, FakeLayer, FakeModel, chain
from tests.executor.pipeline.test_pipeline import PLATFORM, stream


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_hops_arrive_as_they_were(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    hops = [Hop(0, 0, 0), Hop(3, 2**40, 127), Hop(1, 5, 2, ends=True)]
    for hop in hops:
        send_hop(writing, hop)
    assert [receive_hop(reading) for _ in hops] == hops


def test_a_neighbour_that_is_gone_is_noticed() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(NeighbourGoneError):
        receive_hop(reading)
    os.close(reading)
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(NeighbourGoneError):
        send_hop(writing, Hop(0, 0, 0))
    os.close(writing)


@pytest.mark.parametrize("data", [b"\x00" * 24, b"short"])
def test_what_is_no_hop_is_refused(pipe: tuple[int, int], data: bytes) -> None:
    os.write(pipe[1], data)
    with pytest.raises(ExecutionError, match="is no hop"):
        receive_hop(pipe[0])


def test_tensors_of_a_slot_lie_apart() -> None:
    specs = [
        TensorSpec(name="a", shape=(3,)),
        TensorSpec(name="b", shape=(), dtype="int64"),
        TensorSpec(name="c", shape=(0, 5)),
        TensorSpec(name="d", shape=(1000,), dtype="uint8"),
    ]
    layout = SlotLayout.of([*specs, specs[0]], 2)
    assert layout.tensors == tuple(specs)
    assert SlotLayout.of(specs, 20).size == layout.size + 2 * ALIGNMENT  # a word for each chunk
    ends = [ALIGNMENT]
    for spec in specs:
        assert layout.offset(spec.name) % ALIGNMENT == 0
        assert layout.offset(spec.name) >= ends[-1]
        ends.append(layout.offset(spec.name) + spec.bytes)
    assert layout.size >= ends[-1]
    assert layout.size % ALIGNMENT == 0


def test_pieces_must_agree_about_a_tensor() -> None:
    with pytest.raises(ExecutionError, match=r"'a': float32\[3\] and float32\[4\]"):
        SlotLayout.of([TensorSpec(name="a", shape=(3,)), TensorSpec(name="a", shape=(4,))], 1)


def test_requests_that_are_mixed_up_are_noticed() -> None:
    memory = SharedMemory.create(4096, reserved=4096)
    header = SlotHeader(memory, 64, ((), (0,)))
    header.clear()
    header.enter(1, 7)
    header.check(Hop(1, 7, 3), Hop(1, 7, 3), 0)
    header.finish(0, 7)
    header.check(Hop(1, 7, 3), Hop(1, 7, 3), 1)
    for hop, expected, chunk in (
        (Hop(1, 8, 3), Hop(1, 7, 3), 1),
        (Hop(1, 7, 3), Hop(1, 8, 3), 1),
        (Hop(1, 8, 3), Hop(1, 8, 3), 1),
        (Hop(1, 7, 3), Hop(1, 7, 3), 0),
        (Hop(0, 7, 3), Hop(0, 7, 3), 1),
        (Hop(1, 7, 2), Hop(1, 7, 3), 1),
        (Hop(1, 7, 3), Hop(1, 7, 3), 2),
    ):
        with pytest.raises(ExecutionError, match="requests are mixed up"):
            header.check(hop, expected, chunk)
    header.finish(1, 7)
    header.check(Hop(1, 7, 3), Hop(1, 7, 3), 2)  # it is through
    memory.close()
    memory.close()


def test_tiles_of_a_slot_wait_for_each_other() -> None:
    memory = SharedMemory.create(4096, reserved=4096)
    header = SlotHeader(memory, 0, ((), (), (0, 1), (0, 1)))  # two tiles, then two tiles
    header.clear()
    header.enter(0, 5)
    assert [header.is_ready(chunk, 5) for chunk in range(5)] == [True, False, False, False, False]
    header.admit(5)
    assert header.is_ready(1, 5)
    header.finish(1, 5)
    assert not header.is_ready(1, 5)  # not twice
    assert not header.is_ready(2, 5)
    assert header.under_way == (0, 5)
    header.finish(0, 5)
    header.finish(3, 5)
    header.enter(0, 9)  # the next request may come as soon as all are done, not before
    assert header.is_ready(2, 5)
    assert not header.is_ready(0, 9)
    header.finish(2, 5)
    assert header.is_ready(0, 9)
    assert header.is_ready(4, 5)
    assert header.under_way is None
    memory.close()


def test_a_hop_has_come_when_all_have_sent_it(pipe: tuple[int, int]) -> None:
    reader = HopReader(pipe[0], 2)
    for hop in (Hop(0, 4, 0), Hop(0, 5, 1), Hop(0, 4, 0), Hop(0, 5, 1)):
        send_hop(pipe[1], hop)
    assert [reader.take(), reader.take(), reader.take()] == [None, None, Hop(0, 4, 0)]
    assert reader.receive() == Hop(0, 5, 1)


def test_equal_pieces_are_prepared_once() -> None:
    class Counting(FakeEngine):
        asked: ClassVar[list[str]] = []

        def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
            self.asked.extend(piece.name for piece in pieces)
            return super().prepare(pieces)

    streams = tuple(stream(unit, (2, unit), network="net") for unit in "ab")
    model = chain("add", "add", name="net")
    blueprint = draw(Deployment(streams=streams), {"net": model}, PLATFORM, Counting())
    assert Counting.asked == ["net[0:2)"]
    assert [list(blueprint.tasks(worker)) for worker in range(2)] == [[(0, 0)], [(1, 0)]]
    first, second = blueprint.streams
    assert second.slot_at(0) == first.slot_at(first.stream.slots)
    assert blueprint.slots_end == second.slot_at(2)


def test_a_model_that_needs_what_nobody_makes_is_refused() -> None:
    class Forgetful(FakeModel):
        def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
            return super().pieces(max(start, 1), stop)

    layers = [FakeLayer(does="add", takes=(a,), makes=b) for a, b in (("x", "t0"), ("t0", "t1"))]
    deployment = Deployment(streams=(stream("net", (2, "a")),))
    with pytest.raises(InvalidPlanError, match="needs tensors that no earlier piece makes: 't0'"):
        draw(deployment, {"net": Forgetful("net", layers)}, PLATFORM, FakeEngine())


def test_resident_memory_is_told() -> None:
    assert largest_rss_bytes() > 10**6


def test_an_array_keeps_its_pages_when_the_memory_is_given_back() -> None:
    memory = SharedMemory.create(4_096, reserved=4_096)
    array = memory.array(TensorSpec(name="x", shape=(4,)), 0)
    memory.close()
    assert not memory._map.closed  # to touch the array would end the process else
    array[...] = 3
    assert array.tolist() == [3, 3, 3, 3]
