"""What a run leaves behind, and from its time stamps to a measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ...formulations.deployment import Deployment
from ...formulations.history import History, Interval, executed
from ..engine import PlacementReceipt
from ..measurement import ChunkTimes, Measurement, Spread, StreamTimes, UnitUse
from .shared import RECORDS, Board

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ChunkRows(Protocol):
    """The time stamps of one chunk."""

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return those of the requests [start, stop) as an array (requests, 4), see `Stamps`."""


class TimeStamps(Protocol):
    """The time stamps of a run: the board of a pipeline, or what devices have sent."""

    @property
    def begins_ns(self) -> Sequence[int] | memoryview:
        """When the warm-up of each stream was over."""

    def stamps(self, stream: int, chunk: int) -> ChunkRows:
        """Return those of one chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """What one chunk did in the measured window, exactly.

    `start_ns`, `end_ns`: start of the first, end of the last.
    """

    count: int  # requests that count
    busy_ns: int  # time that they took
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run has left behind."""

    deployment: Deployment  # what ran
    board: TimeStamps  # time stamps of the latest `RECORDS` requests of each chunk
    warm_up: int  # number of the first request that counts
    tasks: Mapping[tuple[int, int], TaskCount]  # exact sums, by (stream, chunk)
    rss_bytes: Mapping[str, int]  # largest resident memory of each worker, by unit
    begins_ns: tuple[int, ...] = ()
    """When each round of a workload began, warm-up included; empty without rounds."""

    def count(self, stream: int) -> int:
        """Return how many requests of a stream count: those of which all last chunks do."""
        return min(self.tasks[stream, chunk].count for chunk in self.deployment.streams[stream].last)

    def starts_ns(self, stream: int) -> NDArray[Any]:
        """Return when the requests of a stream began; of those for which `rows` are kept."""
        import numpy as np

        first = self.deployment.streams[stream].first
        starts: NDArray[Any] = np.min([self.rows((stream, chunk))[:, 0] for chunk in first], axis=0)
        return starts

    def ends_ns(self, stream: int) -> NDArray[Any]:
        """Return when the requests of a stream were through; of those for which `rows` are kept."""
        import numpy as np

        last = self.deployment.streams[stream].last
        ends: NDArray[Any] = np.max([self.rows((stream, chunk))[:, 3] for chunk in last], axis=0)
        return ends

    def rows(self, task: tuple[int, int]) -> NDArray[Any]:
        """Return the time stamps that are still kept of the requests of a stream that count."""
        stream, chunk = task
        slots = self.deployment.streams[stream].slots
        stop = self.warm_up + self.count(stream)
        # Earlier chunks are ahead by up to as many requests as there are slots.
        start = max(self.warm_up, stop - RECORDS + slots)
        return self.board.stamps(stream, chunk).rows(start, stop)

    def on(self, unit: str) -> Iterator[tuple[int, int]]:
        """Yield (stream, chunk) of everything that a unit serves."""
        for index, stream in enumerate(self.deployment.streams):
            yield from ((index, chunk) for chunk, part in enumerate(stream.chunks) if part.unit == unit)


def by_round(found: Measurement, evidence: Evidence, *, blocks: int) -> Measurement:
    """Return a measurement of a batch with what its rounds took, without the pauses between them.

    `evidence`: what the run has left behind; rounds count as far as time stamps are kept of them. `blocks`:
    into how many blocks the rounds are divided, where there are as many.
    """
    import numpy as np

    rounds = _Rounds(evidence)
    makespans_us = rounds.makespans_us
    return replace(
        found,
        period_us=float(makespans_us.mean()),
        period_blocks_us=tuple(
            float(block.mean()) for block in np.array_split(makespans_us, min(blocks, len(makespans_us)))
        ),
        makespan_us=Spread.of(makespans_us.tolist()),
        streams=tuple(
            replace(times, latency_us=rounds.latency_us(index)) for index, times in enumerate(found.streams)
        ),
        units=tuple(replace(use, bubble_us=rounds.bubble_us(use.unit)) for use in found.units),
    )


class _Rounds:
    """Time stamps by round; of all streams the same, latest rounds."""

    def __init__(self, evidence: Evidence) -> None:
        import numpy as np

        streams = evidence.deployment.streams
        self._evidence = evidence
        self._stamps = {
            (index, chunk): evidence.rows((index, chunk))
            for index, stream in enumerate(streams)
            for chunk in range(len(stream.chunks))
        }
        self._kept = min(map(len, self._stamps.values()))
        self._begins_ns = np.asarray(evidence.begins_ns[-self._kept :])

    def _column_ns(self, task: tuple[int, int], column: int) -> NDArray[Any]:
        return self._stamps[task][-self._kept :, column]

    def _ends_ns(self, stream: int) -> NDArray[Any]:
        ends_ns: NDArray[Any] = self._evidence.ends_ns(stream)[-self._kept :]
        return ends_ns

    @property
    def makespans_us(self) -> NDArray[Any]:
        """Beginning of the round to its last output."""
        import numpy as np

        streams = range(len(self._evidence.deployment.streams))
        ends_ns = np.max([self._ends_ns(index) for index in streams], axis=0)
        makespans_us: NDArray[Any] = (ends_ns - self._begins_ns) / _NS
        return makespans_us

    def latency_us(self, stream: int) -> Spread:
        """Return the arrival to exit of a request."""
        rounds = self._evidence.deployment.rounds
        assert rounds is not None
        waits_ns = self._ends_ns(stream) - self._begins_ns
        return Spread.of((waits_ns / _NS - rounds.arrivals_us[stream]).tolist())

    def bubble_us(self, unit: str) -> float:
        """Return the idle time of a unit between its first start and its last end of a round, mean."""
        import numpy as np

        tasks = list(self._evidence.on(unit))
        starts_ns, ends_ns = (
            np.array([self._column_ns(task, column) for task in tasks]) for column in (0, 3)
        )
        idle_ns = ends_ns.max(axis=0) - starts_ns.min(axis=0) - (ends_ns - starts_ns).sum(axis=0)
        return float(idle_ns.mean()) / _NS


BLOCKS = 10
"""Into how many blocks the window is divided, where there are as many requests."""

_NS = 1e3
"""Nanoseconds in a microsecond."""


def measurement(evidence: Evidence, receipts: tuple[PlacementReceipt, ...], device: str) -> Measurement:
    """Return what a run has achieved.

    Counts, periods, busy times and bubbles are exact over the whole window; spreads and blocks are
    those of the latest requests, as many as time stamps are kept of.
    """
    deployment = evidence.deployment
    indices = range(len(deployment.streams))
    streams = tuple(_stream_times(evidence, index) for index in indices)
    blocks = [_block_periods_us(evidence, index) for index in indices]
    period_us = _joint_period_us(deployment, [times.period_us for times in streams])
    found = Measurement(
        deployment=deployment,
        period_us=period_us,
        period_blocks_us=tuple(_joint_period_us(deployment, block) for block in zip(*blocks, strict=False)),
        requests=sum(times.requests for times in streams),
        seconds=max(_window_ns(evidence, index) for index in indices) / 1e9,
        streams=streams,
        chunks=tuple(_chunk_times(evidence, *task) for task in sorted(evidence.tasks)),
        units=tuple(_unit_use(evidence, unit, streams, period_us) for unit in deployment.units),
        receipts=receipts,
        device=device,
        taken_at=datetime.now().astimezone().isoformat(timespec="seconds"),
    )
    return by_round(found, evidence, blocks=BLOCKS) if deployment.is_batch else found


def measured_trace(deployment: Deployment, board: Board, requests: int) -> History:
    """Return when the first `requests` requests of each stream ran, at most `RECORDS`."""
    events = [
        Interval(
            start_ns=start,
            engine_ns=(run, copied),
            end_ns=end,
            stream=index,
            request=request,
            chunk=chunk,
            unit=part.unit,
        )
        for index, stream in enumerate(deployment.streams)
        for chunk, part in enumerate(stream.chunks)
        for request, (start, run, copied, end) in enumerate(
            board.stamps(index, chunk).rows(0, requests).tolist()
        )
    ]
    origin_ns = min(event.start_ns for event in events)
    return executed(deployment, (event.moved(-origin_ns) for event in events))


def _window_ns(evidence: Evidence, stream: int) -> int:
    """Return the time from the output before the first that counts to the last."""
    return int(evidence.ends_ns(stream)[-1]) - evidence.board.begins_ns[stream]


def _stream_times(evidence: Evidence, index: int) -> StreamTimes:
    latencies_ns = evidence.ends_ns(index) - evidence.starts_ns(index)
    latency_us = Spread.of((latencies_ns / _NS).tolist())
    count = evidence.count(index)
    periods = count if evidence.warm_up else count - 1
    return StreamTimes(
        stream=evidence.deployment.streams[index].name,
        requests=count,
        period_us=_window_ns(evidence, index) / periods / _NS if periods else latency_us.median,
        latency_us=latency_us,
    )


def _block_periods_us(evidence: Evidence, index: int) -> list[float]:
    import numpy as np

    outputs_ns = evidence.ends_ns(index)
    if evidence.warm_up and len(outputs_ns) == evidence.count(index):
        outputs_ns = np.insert(outputs_ns, 0, evidence.board.begins_ns[index])
    gaps_us = np.diff(outputs_ns) / _NS
    blocks = np.array_split(gaps_us, min(BLOCKS, max(1, len(gaps_us))))
    return [float(block.mean()) for block in blocks if len(block)]


def _joint_period_us(deployment: Deployment, periods_us: Sequence[float]) -> float:
    """Return the period of a deployment: rates of one network add up, the slowest network decides.

    In rounds there is nothing to add up: each brings one output of every stream.
    """
    if deployment.rounds is not None:
        return max(periods_us)
    rates: dict[str, float] = {}
    for stream, period_us in zip(deployment.streams, periods_us, strict=True):
        rates[stream.network] = rates.get(stream.network, 0.0) + 1 / period_us
    return 1 / min(rates.values())


def _chunk_times(evidence: Evidence, stream: int, chunk: int) -> ChunkTimes:
    start_ns, run_ns, copied_ns, end_ns = evidence.rows((stream, chunk)).T
    parts_ns = {
        "busy_us": end_ns - start_ns,
        "copy_in_us": run_ns - start_ns,
        "run_us": copied_ns - run_ns,
        "copy_out_us": end_ns - copied_ns,
    }
    described = evidence.deployment.streams[stream]
    return ChunkTimes(
        stream=described.name,
        chunk=chunk,
        unit=described.chunks[chunk].unit,
        **{name: Spread.of((samples / _NS).tolist()) for name, samples in parts_ns.items()},
    )


def _unit_use(evidence: Evidence, unit: str, streams: Sequence[StreamTimes], period_us: float) -> UnitUse:
    """Return the use of one unit, for each period of the deployment.

    Streams that share a unit go in step, so one of them tells how many periods the unit has seen.
    """
    mine = list(evidence.on(unit))
    most, stream = max((evidence.tasks[task].count, task[0]) for task in mine)
    periods = most * streams[stream].period_us / period_us
    busy_ns = sum(evidence.tasks[task].busy_ns for task in mine)
    span_ns = max(evidence.tasks[task].end_ns for task in mine) - min(
        evidence.tasks[task].start_ns for task in mine
    )
    return UnitUse(
        unit=unit,
        busy_us=busy_ns / periods / _NS,
        bubble_us=(span_ns - busy_ns) / periods / _NS,
        rss_bytes=evidence.rss_bytes[unit],
    )
