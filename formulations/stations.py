"""Stations that requests of an endless stream pass in line: what is at work on them, and how they run."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .deployment import Deployment
from .flight import Visit, saturated, steady_visits
from .history import History, Interval, SteadyState, executed
from .operation import StreamOperation
from .problem import Problem


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


def intervals(
    stations: Sequence[Station], visits: Sequence[Visit], stream: int, *, engines: bool
) -> list[Interval]:
    """Return what was at work during visits of stations; `engines`: with the times of the engines."""
    return [
        Interval(
            start_ns=1000 * (visit.start_us + work.start_us),
            end_ns=1000 * (visit.start_us + work.end_us),
            stream=stream,
            request=visit.request,
            chunk=work.chunk,
            unit=work.row,
            engine_ns=tuple(1000 * (visit.start_us + at) for at in work.engine_us) if engines else (),
        )
        for visit in visits
        for work in stations[visit.station].works
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


def message(link: str, chunk: int, time_us: int) -> tuple[Station, ...]:
    """Return the station of a message; none where it takes no time."""
    if not time_us:
        return ()
    return (Station(time_us=time_us, works=(Work(row=link, chunk=chunk, start_us=0, end_us=time_us),)),)


class StationsOperation(StreamOperation):
    """How plans run whose requests pass stations in line, stream by stream; streams share no station."""

    @abstractmethod
    def stations(self, problem: Problem, deployment: Deployment) -> Iterable[tuple[Sequence[Station], int]]:
        """Return the stations of each stream, and its task slots."""

    def play(self, problem: Problem, deployment: Deployment, rounds: int) -> History:
        """Play requests of each stream, which wait for task slots."""
        events: list[Interval] = []
        for index, (line, slots) in enumerate(self.stations(problem, deployment)):
            visits = saturated([station.time_us for station in line], slots, rounds)
            events += intervals(line, visits, index, engines=True)
        return executed(deployment, events)

    def steady(self, problem: Problem, deployment: Deployment) -> tuple[SteadyState, ...]:
        """Return what each stream does over and over."""
        found = []
        for index, (line, slots) in enumerate(self.stations(problem, deployment)):
            period_us, visits = steady_visits([station.time_us for station in line], slots)
            events = intervals(line, visits, index, engines=True)
            found.append(SteadyState(period_us=period_us, events=tuple(events)))
        return tuple(found)
