"""Times of chunks by operations and bytes, from one measured chunk a unit."""

from __future__ import annotations

from gapless.formulations.coordination.expected import chunk_work, estimated_times, largest_chunks
from gapless.formulations.coordination.sections import Section
from gapless.formulations.hardware import ProcessingUnit, UnitKind
from gapless.formulations.network import Layer, Network, Tensor

UNITS = (ProcessingUnit(name="cpu", cores=(0,)), ProcessingUnit(name="npu", kind=UnitKind.NPU))
NETWORK = Network(
    name="net",
    layers=(Layer(name="a", flops=1000), Layer(name="b", flops=3000)),
    tensors=(
        Tensor(name="x", bytes=10, source=-1, targets=(0,)),
        Tensor(name="t", bytes=20, source=0, targets=(1,)),
        Tensor(name="y", bytes=30, source=1, targets=(2,)),
    ),
)
SECTIONS = tuple(Section(start=i, stop=i + 1, units=frozenset({0, 1})) for i in range(2))
KEYS = [(0, 1, 0), (1, 2, 0), (0, 2, 0), (0, 1, 1)]


def test_work_is_operations_and_bytes() -> None:
    assert chunk_work(NETWORK, SECTIONS, (0, 1, 0), UNITS[0]) == 1000 + 10 * (10 + 20)
    assert chunk_work(NETWORK, SECTIONS, (0, 2, 0), UNITS[0]) == 4000 + 10 * (10 + 30)
    assert chunk_work(NETWORK, SECTIONS, (1, 2, 1), UNITS[1]) == 3000 + 1000 * (20 + 30)


def test_the_largest_chunk_of_each_unit_is_measured_and_the_others_follow() -> None:
    largest = largest_chunks(NETWORK, SECTIONS, KEYS, UNITS)
    assert largest == {0: (0, 2, 0), 1: (0, 1, 1)}
    times = estimated_times(NETWORK, SECTIONS, KEYS, UNITS, {(0, 2, 0): 440.0, (0, 1, 1): 7.0})
    assert times.sections == 2
    assert times.chunk_us == {(0, 1, 0): 130.0, (1, 2, 0): 350.0, (0, 2, 0): 440.0, (0, 1, 1): 7.0}
