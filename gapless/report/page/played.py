"""Traces, simulated or measured, in one form: who ran on which unit, from when to when."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low

from ...executor.measurement import MeasuredEvent, MeasuredTrace
from ...formulations.plan import Chunk
from ...formulations.simulate import Trace
from ..words import microseconds
from .subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A stream of a deployment: its name and its chunks. The requests of a workload are streams of one each.

    Attributes
    ----------
    name
        Unique in the deployment.
    chunks
        In order of their layers.
    colour
        What tells it from its neighbours; requests of one stream are told apart by their numbers.
    alone
        Whether it is a request of a workload: then its name, not a number, tells it from others.
    high
        Whether its network is of high contention.
    """

    name: str
    chunks: tuple[Chunk, ...]
    colour: int
    alone: bool = False
    high: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One chunk of one request at work; times in microseconds.

    Attributes
    ----------
    start_us, end_us
        When.
    lane
        Index of its stream.
    request
        Number within the stream.
    chunk
        Index in the stream.
    unit
        Where.
    slowdown_us
        How much longer it took because of its company; 0 where that is not known.
    parts_us
        Of a measured one: copy in, run, copy out.
    """

    start_us: float
    end_us: float
    lane: int
    request: int
    chunk: int
    unit: str
    slowdown_us: int = 0
    parts_us: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One trace.

    Attributes
    ----------
    title
        "predicted" or "measured".
    note
        What of it is shown, where that is not all.
    works
        In order of their start, which is 0 for the first or later.
    """

    title: str
    note: str
    works: tuple[Work, ...]

    @property
    def end_us(self) -> float:
        """When the last one ends."""
        return max(work.end_us for work in self.works)

    def on(self, unit: str) -> tuple[Work, ...]:
        """Return what a unit did, in order."""
        return tuple(work for work in self.works if work.unit == unit)


def lanes_of(subject: Subject) -> tuple[Lane, ...]:
    """Return the streams of a subject; colours follow the order of arrival, whatever the plan's order is."""
    problem, streams = subject.problem, subject.deployment.streams
    arrival = problem.workload.names if problem.workload else tuple(stream.name for stream in streams)
    interference = problem.interference
    return tuple(
        Lane(
            name=stream.name,
            chunks=stream.chunks,
            colour=arrival.index(stream.name) if stream.name in arrival else index,
            alone=subject.deployment.rounds is not None,
            high=interference is not None and interference.is_high(stream.network),
        )
        for index, stream in enumerate(streams)
    )


def played(subject: Subject) -> tuple[Played, ...]:
    """Return the traces of a subject that are known, the predicted one first."""
    found = []
    if subject.predicted is not None and subject.predicted.events:
        found.append(_predicted(subject, subject.predicted))
    if subject.measured is not None and subject.measured.events:
        found.append(_measured(subject.measured))
    return tuple(found)


def round_makespans_us(trace: MeasuredTrace) -> dict[int, float]:
    """Return from first start to last end of each round of a batch, by its number."""
    rounds = _rounds(trace.events)
    return {number: _makespan_us(events) for number, events in rounds.items()}


def _predicted(subject: Subject, trace: Trace) -> Played:
    names = [stream.name for stream in subject.deployment.streams]
    works = (
        Work(
            start_us=event.start_us,
            end_us=event.end_us,
            # The simulation of a workload counts its requests; each of them is a stream.
            lane=names.index(trace.names[event.request]) if trace.names else 0,
            request=0 if trace.names else event.request,
            chunk=event.chunk,
            unit=event.unit,
            slowdown_us=event.slowdown_us,
        )
        for event in trace.events
    )
    # A stream of rounds is played once: the simulation knows one round.
    rounds = subject.deployment.rounds
    note = "" if rounds is None or subject.deployment.is_batch else "one round"
    return Played(title="predicted", note=note, works=tuple(sorted(works, key=_when)))


def _measured(trace: MeasuredTrace) -> Played:
    note, events = _typical_round(trace) if trace.deployment.is_batch else ("", trace.events)
    first_ns = min(event.start_ns for event in events)
    index = {stream.name: number for number, stream in enumerate(trace.deployment.streams)}
    works = tuple(sorted((_work(event, first_ns, index[event.stream]) for event in events), key=_when))
    return Played(title="measured", note=note, works=works)


def _work(event: MeasuredEvent, first_ns: int, lane: int) -> Work:
    times = (event.start_ns, event.run_ns, event.copied_ns, event.end_ns)
    return Work(
        start_us=(event.start_ns - first_ns) / 1000,
        end_us=(event.end_ns - first_ns) / 1000,
        lane=lane,
        request=event.request,
        chunk=event.chunk,
        unit=event.unit,
        parts_us=tuple((after - before) / 1000 for before, after in pairwise(times)),
    )


def _typical_round(trace: MeasuredTrace) -> tuple[str, Sequence[MeasuredEvent]]:
    """Return the round of a batch whose makespan is the median; the first one, a warm-up, does not count."""
    rounds = _rounds(trace.events)
    if len(rounds) == 1:
        (events,) = rounds.values()
        return "", events
    times = {number: _makespan_us(events) for number, events in list(rounds.items())[1:]}
    middle = median_low(times.values())
    number = next(number for number, time in times.items() if time == middle)
    note = f"round {number + 1} of {len(rounds)}, the one with the median makespan ({microseconds(middle)})"
    return note, [replace(event, request=0) for event in rounds[number]]


def _rounds(events: Sequence[MeasuredEvent]) -> dict[int, list[MeasuredEvent]]:
    found: defaultdict[int, list[MeasuredEvent]] = defaultdict(list)
    for event in events:
        found[event.request].append(event)
    return dict(sorted(found.items()))


def _makespan_us(events: Sequence[MeasuredEvent]) -> float:
    return (max(event.end_ns for event in events) - min(event.start_ns for event in events)) / 1000


def _when(work: Work) -> tuple[float, float, int, int]:
    return work.start_us, work.end_us, work.request, work.lane


def together(works: Sequence[Work], lanes: Sequence[Lane]) -> Iterator[tuple[float, float]]:
    """Yield the times at which two or more requests of high contention run (start, end), in order."""
    changes = sorted(
        (time, change)
        for work in works
        if lanes[work.lane].high
        for time, change in ((work.start_us, 1), (work.end_us, -1))
    )
    running, since = 0, 0.0
    for time, change in changes:
        before, running = running, running + change
        if before < 2 <= running:
            since = time
        elif running < 2 <= before and time > since:
            yield since, time
