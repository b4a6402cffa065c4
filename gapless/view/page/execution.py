"""What an execution achieved, from its measurement, else by the race, else by its trace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ...answers.words import microseconds
from ...executor.tuning.result import TuningRow
from ...formulations.history import History, Interval
from .played import round_makespans_us
from .subject import Subject

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
    makespans = round_makespans_us(trace)
    rounds = sorted(makespans)[1:] or list(makespans)
    busy: defaultdict[str, float] = defaultdict(float)
    for event in trace.events:
        if event.request in rounds:
            busy[event.unit] += (event.end_ns - event.start_ns) / 1000 / len(rounds)
    pace = median(makespans[number] for number in rounds)
    return Achieved(pace_us=pace, latency_us=None, busy_us=dict(busy), source="trace")
