"""Traces of a subject, predicted and measured: what of them is drawn, and what an execution achieved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median, median_low

from ...answers.words import microseconds, millis
from ...executor.tuning.result import TuningRow
from ...formulations.history import History, Interval
from ...formulations.plan import Chunk
from ...formulations.requests import RequestTables
from .subject import Subject

_PERIODS = 3
"""Of a stream of rounds that are drawn where nothing was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A stream of a deployment: its name and chunks. Requests of a workload are streams of one each."""

    name: str  # unique in the deployment
    chunks: tuple[Chunk, ...]  # in order of their layers
    colour: int  # what tells it from its neighbours; requests of one stream are told apart by their numbers
    alone: bool = False
    """Whether it is a request of a workload: then its name, not a number, tells it from others."""
    high: tuple[bool, ...] = ()  # by chunk, whether it is of high contention; empty: none is
    apart: bool = False  # whether it has rows of its own, with its name above them


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One trace."""

    title: str  # "predicted" or "measured"
    note: str  # what of it is shown, where that is not all
    events: tuple[Interval, ...]  # in order of their start, which is 0 for the first or later

    @property
    def end_us(self) -> float:
        """When the last one ends."""
        return max(event.end_us for event in self.events)

    def on(self, unit: str) -> tuple[Interval, ...]:
        """Return what a unit did, in order."""
        return tuple(event for event in self.events if event.unit == unit)


def lanes_of(subject: Subject) -> tuple[Lane, ...]:
    """Return the streams of a subject; colours follow the order of arrival, whatever the plan's order is."""
    problem, streams = subject.problem, subject.deployment.streams
    arrival = problem.formulation.arrivals(problem) or tuple(stream.name for stream in streams)
    tables = problem.tables if problem.interference is not None else None
    return tuple(
        Lane(
            name=stream.name,
            chunks=stream.chunks,
            colour=arrival.index(stream.name) if stream.name in arrival else index,
            alone=subject.deployment.rounds is not None,
            apart=subject.deployment.rounds is None and len(streams) > 1 and subject.plan is not None,
            high=tuple(map(tables.is_high, stream.chunks)) if isinstance(tables, RequestTables) else (),
        )
        for index, stream in enumerate(streams)
    )


def played(subject: Subject) -> tuple[Played, ...]:
    """Return the traces of a subject that are known, the predicted one first."""
    found, predicted, measured = [], subject.predicted, subject.measured
    if predicted is not None and predicted.events:
        note, events = "", _on_lanes(subject, predicted, predicted.events)
        if subject.is_endless_workload:
            # The simulation knows the first round, which finds all units idle.
            (state,) = subject.steady
            periods = _PERIODS if measured is None else 1 + max(event.request for event in measured.events)
            note = f"steady state: {periods} periods of {millis(round(state.period_us))}"
            events = tuple(sorted(state.window(periods)))
        found.append(Played(title="predicted", note=note, events=events))
    if measured is not None and measured.events:
        note, chosen = _typical_round(measured) if measured.is_batch else ("", measured.events)
        events = _on_lanes(subject, measured, chosen)
        begin_ns = _begin_ns(subject, events)
        events = tuple(event.moved(-begin_ns) for event in events)
        found.append(Played(title="measured", note=note, events=events))
    return tuple(found)


def _begin_ns(subject: Subject, events: Sequence[Interval]) -> int:
    """Return when what was measured begins: with its first block, or with a round in which requests arrive.

    A trace does not say when a round began: it is as late as the first block of each request allows.
    """
    rounds = subject.deployment.rounds
    if rounds is None or not subject.deployment.is_batch:
        return min(event.start_ns for event in events)
    firsts = (event for event in events if not event.chunk)
    return min(event.start_ns - 1000 * rounds.arrivals_us[event.stream] for event in firsts)


def _on_lanes(subject: Subject, trace: History, events: Sequence[Interval]) -> tuple[Interval, ...]:
    """Return events with their streams in the order of the deployment."""
    index = {stream.name: number for number, stream in enumerate(subject.deployment.streams)}
    lanes = [index[stream.name] for stream in trace.streams]
    return tuple(sorted(replace(event, stream=lanes[event.stream]) for event in events))


def _round_makespans_us(trace: History) -> dict[int, float]:
    """Return from first start to last end of each round of a batch, by its number."""
    return {number: _makespan_us(events) for number, events in trace.rounds().items()}


def _typical_round(trace: History) -> tuple[str, Sequence[Interval]]:
    """Return the round of a batch whose makespan is the median; the first one, a warm-up, does not count."""
    rounds = trace.rounds()
    if len(rounds) == 1:
        (events,) = rounds.values()
        return "", events
    times = {number: _makespan_us(events) for number, events in list(rounds.items())[1:]}
    middle = median_low(times.values())
    number = next(number for number, time in times.items() if time == middle)
    note = f"round {number + 1} of {len(rounds)}, the one with the median makespan ({microseconds(middle)})"
    return note, [replace(event, request=0) for event in rounds[number]]


def _makespan_us(events: Sequence[Interval]) -> float:
    return (max(event.end_ns for event in events) - min(event.start_ns for event in events)) / 1000


def together(events: Sequence[Interval], lanes: Sequence[Lane]) -> Iterator[tuple[float, float]]:
    """Yield the times at which two or more chunks of high contention run (start, end), in order."""
    changes = sorted(
        (time, change)
        for event in events
        if any(lanes[event.stream].high) and lanes[event.stream].high[event.chunk]
        for time, change in ((event.start_us, 1), (event.end_us, -1))
    )
    running, since = 0, 0.0
    for time, change in changes:
        before, running = running, running + change
        if before < 2 <= running:
            since = time
        elif running < 2 <= before and time > since:
            yield since, time


_UNLIKE = 0.15
"""Difference of a trace from the measurement, as a share, from which on it is said."""

_WARM_UP = 5
"""One part in this many of a trace is left out: the pipeline fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Achieved:
    """What an execution achieved; times in microseconds."""

    pace_us: float  # time from one result to the next: the period, the makespan of a batch, or the latency
    latency_us: float | None  # median of the slowest stream; None: not known
    busy_us: dict[str, float]  # busy time of each unit per period, or per makespan
    source: str  # where that was measured: "execution", "race", or "trace", which is the least exact


def predicted_pace_us(subject: Subject) -> int | None:
    """Return the pace that a plan is predicted to have (`Subject.pace`); None: not known.

    Replicas are no plan: what the race has predicted for them counts, by its last table.
    """
    if subject.score is not None:
        deployment = subject.deployment
        if subject.steady and deployment.rounds is None and len(deployment.streams) > 1:
            # Rates of streams side by side add up.
            return round(1 / sum(1 / state.period_us for state in subject.steady))
        return subject.score.value(subject.pace)
    row = race_row(subject)
    return row.candidate.predicted_us[-1][1] if row is not None and row.candidate.predicted_us else None


def achieved(subject: Subject) -> Achieved | None:
    """Return what the execution of a subject achieved; None: none is known."""
    found = subject.measurement
    if found is not None:
        pace = found.period_us if found.makespan_us is None else found.makespan_us.median
        return Achieved(
            pace_us=pace,
            latency_us=found.latency_us.median,
            busy_us={unit.unit: unit.busy_us for unit in found.units},
            source="execution",
        )
    raced = _of_race(subject)
    if raced is not None:
        return raced
    return None if subject.measured is None else trace_account(subject.measured)


def race_row(subject: Subject) -> TuningRow | None:
    """Return how the deployment of a subject did in its race, or None."""
    rows = () if subject.tuning is None else subject.tuning.rows
    key = subject.deployment.deployment_id
    return next((row for row in rows if row.candidate.key == key), None)


def _of_race(subject: Subject) -> Achieved | None:
    row, streams = race_row(subject), subject.deployment.streams
    if row is None or row.comparable_us is None:
        return None
    chunks = [chunk for stream in streams for chunk in stream.chunks]
    busy: defaultdict[str, float] = defaultdict(float)
    # Replicas have periods of their own: their busy times are not those of one common period.
    if len(row.chunk_us) == len(chunks) and (len(streams) == 1 or subject.deployment.rounds is not None):
        # Busy times are as they were measured, so is the period that they are shares of.
        freed = row.comparable_us / row.period_us.median if row.period_us else 1.0
        for chunk, time in zip(chunks, row.chunk_us, strict=True):
            busy[chunk.unit] += time * freed
    traced = None if busy or subject.measured is None else trace_account(subject.measured)
    if traced is not None:
        busy.update(
            {unit: time * row.comparable_us / traced.pace_us for unit, time in traced.busy_us.items()}
        )
    return Achieved(
        pace_us=row.comparable_us, latency_us=row.latency_p50_us, busy_us=dict(busy), source="race"
    )


def unlike(subject: Subject) -> str:
    """Return how the pace of the trace differs from what was measured; empty if it hardly does."""
    found = achieved(subject)
    if found is None or found.source == "trace" or subject.measured is None:
        return ""
    traced = trace_account(subject.measured)
    if traced is None or abs(traced.pace_us / found.pace_us - 1) < _UNLIKE:
        return ""
    return (
        f"these requests took {microseconds(traced.pace_us)} each, not the {microseconds(found.pace_us)} "
        f"of the {found.source}"
    )


def trace_account(trace: History) -> Achieved | None:
    """Return what a trace tells: its rounds after the first, or its results after the first fifth.

    None: it has too few results.
    """
    if trace.is_batch:
        return _of_rounds(trace)
    streams: defaultdict[int, list[Interval]] = defaultdict(list)
    for event in trace.events:
        streams[event.stream].append(event)
    found = [_of_stream(events) for events in streams.values()]
    periods = [period for period, _ in found if period is not None]
    if len(periods) < len(found):
        return None
    # As `Measurement.period_us` says: replicas add up their rates; else each period has one result of all.
    alike = not trace.in_rounds and len({stream.network for stream in trace.streams}) == 1
    pace = 1 / sum(1 / period for period in periods) if alike else max(periods)
    busy: defaultdict[str, float] = defaultdict(float)
    for period, (_, per_request) in zip(periods, found, strict=True):
        for unit, time in per_request.items():
            busy[unit] += time * (pace / period if alike else 1)
    return Achieved(pace_us=pace, latency_us=None, busy_us=dict(busy), source="trace")


def _of_stream(events: Sequence[Interval]) -> tuple[float | None, dict[str, float]]:
    """Return the period of one stream (None: too few results), and the busy times of a request by unit."""
    outputs: defaultdict[int, int] = defaultdict(int)
    busy: defaultdict[str, float] = defaultdict(float)
    for event in events:
        outputs[event.request] = max(outputs[event.request], event.end_ns)
    ends = sorted(outputs.values())
    first = len(ends) // _WARM_UP
    late = {request for request, end in outputs.items() if end >= ends[first]}
    for event in events:
        if event.request in late:
            busy[event.unit] += (event.end_ns - event.start_ns) / 1000 / len(late)
    count, length = len(ends) - 1 - first, ends[-1] - ends[first]
    period = length / 1000 / count if count and length else None
    return period, dict(busy)


def _of_rounds(trace: History) -> Achieved:
    makespans = _round_makespans_us(trace)
    rounds = sorted(makespans)[1:] or list(makespans)
    busy: defaultdict[str, float] = defaultdict(float)
    for event in trace.events:
        if event.request in rounds:
            busy[event.unit] += (event.end_ns - event.start_ns) / 1000 / len(rounds)
    pace = median(makespans[number] for number in rounds)
    return Achieved(pace_us=pace, latency_us=None, busy_us=dict(busy), source="trace")
