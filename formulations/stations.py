"""Stations that requests of an endless stream pass in line: what is at work on them, and how they run."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from .deployment import Deployment
from .errors import InvalidPlanError
from .flight import Turns, Visit, checked_slots, saturated, slots_in_line, steady_visits, visited
from .history import (
    History,
    Interval,
    SteadyState,
    Usage,
    executed,
    is_message,
    link_name,
    simulated,
    usage_of,
)
from .operation import Line, Operation, Server, ServerKind
from .plan import Plan
from .problem import Problem
from .streams import Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a station does for one item; times in microseconds from its beginning."""

    row: str  # a device, or a link (`link_name`)
    chunk: int  # index of the chunk that computes, sends, or gets the first input
    start_us: int
    end_us: int
    engine_us: tuple[int, ...] = ()
    """When the engine of a device begins and when it is done; empty for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """What serves one item at a time: for how long, and what is done meanwhile."""

    time_us: int
    works: tuple[Work, ...]
    unit: str  # whose time it takes
    kind: ServerKind = ServerKind.COMPUTES

    @property
    def server(self) -> Server:
        """What it is to items that pass it."""
        return Server(kind=self.kind, unit=self.unit, time_us=self.time_us)


def computing(unit: str, chunk: int, time_us: int, copies_us: tuple[int, int]) -> Station:
    """Return the station of a chunk on a unit; `copies_us`: before and behind the engine's work."""
    engine_us = (copies_us[0], time_us - copies_us[1])
    work = Work(row=unit, chunk=chunk, start_us=0, end_us=time_us, engine_us=engine_us)
    return Station(time_us=time_us, works=(work,), unit=unit)


def intervals(stations: Sequence[Station], visits: Sequence[Visit], stream: int) -> list[Interval]:
    """Return what was at work during visits of stations."""
    return [
        Interval(
            start_ns=1000 * (at + work.start_us),
            end_ns=1000 * (at + work.end_us),
            stream=stream,
            request=request,
            chunk=work.chunk,
            unit=work.row,
            engine_ns=tuple([1000 * (at + engine) for engine in work.engine_us]),
        )
        for at, _, request, station in visits
        for work in stations[station].works
    ]


def later(works: Sequence[Work], by_us: int) -> tuple[Work, ...]:
    """Return the same work, some time later."""
    return tuple(
        replace(
            work,
            start_us=work.start_us + by_us,
            end_us=work.end_us + by_us,
            engine_us=tuple(at + by_us for at in work.engine_us),
        )
        for work in works
    )


def message(
    source: str, target: str, chunk: int, time_us: int, *, received: bool = False
) -> tuple[Station, ...]:
    """Return the station of a message; none where it takes no time; `received`: it takes the target's."""
    if not time_us:
        return ()
    work = Work(row=link_name(source, target), chunk=chunk, start_us=0, end_us=time_us)
    unit, kind = (target, ServerKind.RECEIVES) if received else (source, ServerKind.SENDS)
    return (Station(time_us=time_us, works=(work,), unit=unit, kind=kind),)


def turns_of(problem: Problem, stream: Stream) -> Turns | None:
    """Return how the chunks of a stream share units, or resources; None: each has one of its own."""
    if stream.cycle is None:
        return None
    return Turns(units=problem.platform.turns(chunk.unit for chunk in stream.chunks), cycle=stream.cycle)


def deal(lines: Sequence[Sequence[Station]], count: int, *, from_start: bool = False) -> list[int]:
    """Return which line takes each of some items that are all there: the one that is done with it first.

    That is the least time for all of them: line p is done with its n-th item at latency + (n - 1) period, and
    no other choice has fewer items behind the largest of these times (clusters, section 3).

    `from_start`: give them to the line that can begin first instead: none of them waits for its first item.
    """
    if len(lines) == 1:
        return [0] * count
    times = [[station.time_us for station in line] for line in lines]
    latency = [0 if from_start else sum(own) for own in times]
    taken = [0] * len(lines)
    found = []
    for _ in range(count):
        ends = [latency[p] + taken[p] * max(own) for p, own in enumerate(times)]
        chosen = ends.index(min(ends))
        taken[chosen] += 1
        found.append(chosen)
    return found


def usage_of_chunks(
    history: History,
    *,
    held: Callable[[int, int], int],
    running: Callable[[int, int], int],
    waiting: Sequence[int],
) -> Usage:
    """Return the bytes in use over time.

    `held`, `running`: what a chunk [start, stop) keeps all the time, and what it needs with that while it
    runs; `waiting`: what a tensor between two chunks takes, by boundary; empty: it has its place already.
    """
    events = [event for event in history.events if not is_message(event, history.streams)]
    items: defaultdict[tuple[int, int], list[Interval]] = defaultdict(list)
    for event in events:
        items[event.request, event.stream].append(event)
    numbers = {key: place for place, key in enumerate(sorted(items))}

    def changes() -> Iterator[tuple[int, int]]:
        """Yield (time, bytes taken or given back) of tensors."""
        for (_, stream), own in items.items():
            chunks = history.streams[stream].chunks
            own.sort(key=lambda event: event.chunk)
            for event in own:
                chunk, (start_us, end_us) = chunks[event.chunk], event.span_us
                needed = running(chunk.start, chunk.stop) - held(chunk.start, chunk.stop)
                yield start_us, needed
                yield end_us, -needed
            for event, following in pairwise(own if waiting else []):
                size = waiting[chunks[event.chunk].stop]
                yield event.span_us[1], size
                yield following.span_us[0], -size

    return usage_of(
        changes(),
        ((numbers[event.request, event.stream], *event.span_us) for event in events),
        base=sum(held(chunk.start, chunk.stop) for stream in history.streams for chunk in stream.chunks),
        requests=len(numbers),
    )


class StationsOperation(Operation):
    """How plans run that are endless streams, whose requests pass stations in line; streams share none."""

    @abstractmethod
    def streams(self, problem: Problem, plan: Plan, task_slots: int | None = None) -> tuple[Stream, ...]:
        """Return a plan as streams; `task_slots`: of each of them."""

    @abstractmethod
    def stations(self, problem: Problem, stream: Stream) -> tuple[Station, ...]:
        """Return the stations of a stream."""

    def pace(self, problem: Problem) -> str:
        """Return the latency where that counts first, one request at a time; else the period."""
        return "latency" if problem.objective.first == "latency" else "period"

    def check_deployment(self, problem: Problem, deployment: Deployment) -> None:
        """Refuse the requests of a workload."""
        if deployment.rounds is not None:
            raise InvalidPlanError("it serves a workload, the problem has none")

    def deploy(self, problem: Problem, plan: Plan, *, task_slots: int | None = None) -> Deployment:
        """Return the streams, of one request at a time where the latency counts first."""
        alone = task_slots is None and self.pace(problem) == "latency"
        return Deployment(streams=self.streams(problem.charged(plan), plan, 1 if alone else task_slots))

    def arrange(self, problem: Problem, plan: Plan) -> Deployment:
        """Return the streams."""
        return Deployment(streams=self.streams(problem.charged(plan), plan))

    def lines(self, problem: Problem, plan: Plan) -> tuple[Line, ...]:
        """Return the stations of each stream."""
        problem.formulation.code(problem, plan)  # refuses a plan of another problem
        streams = self.streams(problem, plan)
        return tuple(
            Line(
                name=stream.name if len(streams) > 1 else "",
                servers=tuple(station.server for station in self.stations(problem, stream)),
            )
            for stream in streams
        )

    def history(
        self,
        problem: Problem,
        plan: Plan,
        *,
        requests: int | None = None,
        interval_us: int | None = None,
        task_slots: int | None = None,
    ) -> History:
        """Play a number of requests.

        With an interval, they are dealt to the streams as if all were there (`deal`). Without one, each
        stream gets requests at its own period, from the beginning on.
        """
        count, slots = checked_slots(requests, interval_us, task_slots)
        problem = problem.charged(plan)
        formulation = problem.formulation
        code = formulation.code(problem, plan)
        plan, streams = formulation.plan(problem, code), self.streams(problem, plan, task_slots)
        lines = [self.stations(problem, stream) for stream in streams]
        dealt = deal(lines, count, from_start=interval_us is None)
        arrivals: list[tuple[int, int, int]] = []  # place in its stream, stream, time
        events: list[Interval] = []
        for index, (stream, line) in enumerate(zip(streams, lines, strict=True)):
            own_us = [station.time_us for station in line]
            pace_us = max(own_us) if len(streams) > 1 else formulation.numbers(problem, code).term("period")
            own = [number for number, taken in enumerate(dealt) if taken == index]
            times = (
                [place * pace_us for place in range(len(own))]
                if interval_us is None
                else [number * interval_us for number in own]
            )
            arrivals += [(place, index, time) for place, time in enumerate(times)]
            visits = visited(own_us, times, slots, turns_of(problem, stream))
            shown = [replace(s, works=tuple(self.shown(problem, plan, stream, s.works))) for s in line]
            events += intervals(shown, visits, index)
        return simulated(
            plan,
            events,
            units=problem.platform.unit_names,
            arrivals_us=tuple([time for *_, time in sorted(arrivals)]),
            streams=tuple(replace(s, task_slots=None) for s in streams if s.order),
        )

    def shown(self, problem: Problem, plan: Plan, stream: Stream, works: Sequence[Work]) -> list[Work]:
        """Return what a station of a stream does as histories of plans have it: without its engines."""
        return [replace(work, engine_us=()) for work in works]

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests of each stream, which wait for task slots."""
        events: list[Interval] = []
        for index, stream in enumerate(deployment.streams):
            line = self.stations(problem, stream)
            times = [station.time_us for station in line]
            visits = saturated(times, _slots(stream, line), rounds, turns_of(problem, stream))
            events += intervals(line, visits, index)
        return executed(deployment, events)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what each stream does over and over."""
        found = []
        for index, stream in enumerate(deployment.streams):
            line = self.stations(problem, stream)
            times = [station.time_us for station in line]
            period_us, visits = steady_visits(times, _slots(stream, line), turns_of(problem, stream))
            found.append(SteadyState(period_us=period_us, events=tuple(intervals(line, visits, index))))
        return tuple(found)


def _slots(stream: Stream, line: Sequence[Station]) -> int:
    """Return the task slots of a stream: where nothing is said, as many as its stations need."""
    told = stream.task_slots is not None or stream.cycle is not None
    return stream.slots if told else slots_in_line(len(stream.groups), len(line))
