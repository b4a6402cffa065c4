"""What of the traces of a subject is drawn, predicted and measured: who ran on which unit, when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from ...answers.words import microseconds, millis
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


def round_makespans_us(trace: History) -> dict[int, float]:
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
