"""From stamps to measurements: exact numbers from made-up stamps, without any worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gapless.executor.measurement import Measurement
from gapless.executor.pipeline.account import Evidence, TaskCount, measured_trace, measurement
from gapless.executor.pipeline.shared import RECORDS, Board, BoardShape, SharedMemory
from gapless.formulations.deployment import Deployment
from tests.executor.pipeline.test_pipeline import stream

WARM_UP = 2


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    shared = SharedMemory.create(8 << 20, reserved=4096)
    yield shared
    shared.close()


def fill(
    board: Board, index: int, busy_us: list[int], period_us: int, requests: int
) -> dict[tuple[int, int], TaskCount]:
    """Write the stamps of a stream that runs like clockwork; return its exact sums."""
    tasks = {}
    for chunk, busy in enumerate(busy_us):
        stamps = board.stamps(index, chunk)
        starts = [
            1000 * (10**9 + number * period_us + sum(busy_us[:chunk])) for number in range(WARM_UP + requests)
        ]
        ends = [start + 1000 * busy for start in starts]
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            stamps.put(number, (start, start + 1000, end - 2000, end))
        if chunk == len(busy_us) - 1:
            board.begins_ns[index] = ends[WARM_UP - 1]
        tasks[index, chunk] = TaskCount(
            count=requests, busy_ns=1000 * busy * requests, start_ns=starts[WARM_UP], end_ns=ends[-1]
        )
    return tasks


def measure(memory: SharedMemory, deployment: Deployment, *clocks: tuple[list[int], int, int]) -> Measurement:
    """Return the measurement of streams of (busy_us of each chunk, period_us, requests)."""
    shape = BoardShape(units=len(deployment.units), chunks=tuple(len(s.chunks) for s in deployment.streams))
    board = Board(memory, shape, stamps_at=4096)
    tasks: dict[tuple[int, int], TaskCount] = {}
    for index, clock in enumerate(clocks):
        tasks |= fill(board, index, *clock)
    evidence = Evidence(
        deployment=deployment,
        board=board,
        warm_up=WARM_UP,
        tasks=tasks,
        rss_bytes=dict.fromkeys(deployment.units, 7),
    )
    return measurement(evidence, (), "device")


def test_a_pipeline_like_clockwork(memory: SharedMemory) -> None:
    deployment = Deployment(streams=(stream("net", (1, "a"), (2, "b")),))
    found = measure(memory, deployment, ([30, 70], 100, 50))
    assert found.period_us == pytest.approx(100)
    assert found.period_blocks_us == pytest.approx([100] * 10)
    assert found.seconds == pytest.approx(50 * 100e-6)
    assert (found.requests, found.device) == (50, "device")
    (times,) = found.streams
    assert (times.latency_us.median, times.latency_us.count) == (100, 50)
    first, second = found.chunks
    assert (first.busy_us.median, first.copy_in_us.p95, first.run_us.most, first.copy_out_us.p99) == (
        30,
        1,
        27,
        2,
    )
    assert second.busy_us.least == 70
    a, b = found.units
    assert [a.busy_us, b.busy_us, a.rss_bytes] == pytest.approx([30, 70, 7])
    assert a.bubble_us == pytest.approx((100 - 30) * 49 / 50)
    assert b.bubble_us == pytest.approx((100 - 70) * 49 / 50)


def test_rates_of_replicas_add_up(memory: SharedMemory) -> None:
    deployment = Deployment(streams=tuple(stream(unit, (1, unit), network="net") for unit in "ab"))
    found = measure(memory, deployment, ([50], 100, 40), ([300], 300, 20))
    assert found.period_us == pytest.approx(75)
    assert found.period_blocks_us == pytest.approx([75] * 10)
    assert found.requests == 60
    assert found.latency_us.median == 300
    a, b = found.units
    assert a.busy_us == pytest.approx(50 * 0.75)  # it does three of four requests
    assert b.busy_us == pytest.approx(300 * 0.25)


def test_the_slowest_of_several_networks_decides(memory: SharedMemory) -> None:
    deployment = Deployment(streams=(stream("one", (1, "a")), stream("two", (1, "a"), (2, "b"))))
    found = measure(memory, deployment, ([20], 120, 30), ([40, 60], 120, 30))
    assert found.period_us == pytest.approx(120)
    assert [unit.busy_us for unit in found.units] == pytest.approx([60, 60])


def test_runs_beyond_the_records_stay_exact(memory: SharedMemory) -> None:
    deployment = Deployment(streams=(stream("net", (1, "a")),))
    requests = RECORDS + 1000
    found = measure(memory, deployment, ([30], 100, requests))
    assert found.requests == requests
    assert found.period_us == pytest.approx(100)
    assert found.seconds == pytest.approx(requests * 100e-6)
    assert RECORDS - 10 < found.chunks[0].busy_us.count <= RECORDS
    assert found.chunks[0].busy_us.most == 30
    assert len(found.period_blocks_us) == 10


def test_a_trace_begins_at_zero(memory: SharedMemory) -> None:
    deployment = Deployment(streams=(stream("net", (1, "a"), (2, "b")),))
    board = Board(memory, BoardShape(units=2, chunks=(2,)), stamps_at=4096)
    fill(board, 0, [30, 70], 100, 5)
    trace = measured_trace(deployment, board, 3)
    assert [(event.start_ns, event.request, event.chunk) for event in trace.events] == [
        (0, 0, 0),
        (30_000, 0, 1),
        (100_000, 1, 0),
        (130_000, 1, 1),
        (200_000, 2, 0),
        (230_000, 2, 1),
    ]
    assert trace.events[0].end_ns == 30_000
