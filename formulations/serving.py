"""Requests that pass stations in line, each of which serves one at a time: the clock of all streams.

Asynchronous model on an integer clock: a station begins with a request when the station before is done with
it and it is free itself; it serves requests in order; at most `slots` requests are on their way. Stations
that share a unit take turns (`served_in_turns`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .cycles import Cycle
from .errors import InvalidInputError
from .streams import default_task_slots

STEADY, CYCLES = 8, 4
"""Requests a task slot that are played until a stream is steady, and those of them that tell its period."""


def checked_slots(requests: int | None, interval_us: int | None, task_slots: int | None) -> tuple[int, int]:
    """Return how many requests of an endless stream are played, and in how many task slots."""
    if requests is None:
        raise InvalidInputError("the stream is endless: say how many requests are played")
    slots = requests if task_slots is None else task_slots
    for name, value, least in (("requests", requests, 1), ("task_slots", slots, 1)):
        if value < least:
            raise InvalidInputError(f"{name} is {value}, must be at least {least}")
    if interval_us is not None and interval_us < 0:
        raise InvalidInputError(f"interval_us is {interval_us}, must be at least 0")
    return requests, slots


class Visit(NamedTuple):
    """One request that was served by one station; microseconds."""

    start_us: int
    end_us: int
    request: int
    station: int


def served(
    times_us: Sequence[int], arrivals_us: Sequence[int], slots: int, free_us: Sequence[int] = ()
) -> list[Visit]:
    """Serve requests in order of (time, request, station).

    `slots`: most requests on their way at once, at least 1. `free_us`: when each station is free for the
    first request; empty: from the beginning.
    """
    last = len(times_us) - 1
    free = list(free_us) or [0] * len(times_us)
    finished: list[int] = []
    visits = []
    queue = [(arrivals_us[request], request, 0) for request in range(min(slots, len(arrivals_us)))]
    heapq.heapify(queue)
    while queue:
        ready_us, request, station = heapq.heappop(queue)
        start = max(ready_us, free[station])
        end = free[station] = start + times_us[station]
        visits.append(Visit(start, end, request, station))
        if station < last:
            heapq.heappush(queue, (end, request, station + 1))
            continue
        finished.append(end)
        following = len(finished) - 1 + slots
        if following < len(arrivals_us):
            heapq.heappush(queue, (max(end, arrivals_us[following]), following, 0))
    return visits


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How stations share units: the unit of each station, and whose turn it is."""

    units: tuple[str, ...]
    cycle: Cycle


def served_in_turns(
    times_us: Sequence[int], arrivals_us: Sequence[int], slots: int, turns: Turns
) -> list[Visit]:
    """Serve requests at stations that share units, in the order of a cycle.

    A free unit takes the station whose turn it is. If nothing comes for it in time (`Order.patience_us`, or
    `Order.news_us` where its request could have come in and has not), it takes of what waits for its other
    stations that whose turn is next. The workers of a pipeline do the same.
    """
    return _Clock(times_us, arrivals_us, slots, turns).visits()


class _Clock:
    """The state of stations that share units, from event to event."""

    def __init__(self, times_us: Sequence[int], arrivals_us: Sequence[int], slots: int, turns: Turns) -> None:
        self.times, self.arrivals, self.slots = times_us, arrivals_us, slots
        self.order, self.units = turns.cycle.order(slots), turns.units
        self.own: dict[str, list[int]] = {}
        for station, unit in enumerate(turns.units):
            self.own.setdefault(unit, []).append(station)
        self.following = [0] * len(times_us)
        self.ready: list[deque[int]] = [deque() for _ in times_us]
        self.free = dict.fromkeys(self.own, 0)
        self.entered = self.left = 0
        self.events: list[tuple[int, int, int, str]] = []

    def visits(self) -> list[Visit]:
        """Return all visits, in the order of their starts."""
        found: list[Visit] = []
        for request in range(min(self.slots, len(self.arrivals))):
            self._let_in(0, request)
        while self.events:
            now = self.events[0][0]
            awake: dict[str, None] = {}
            while self.events and self.events[0][0] == now:
                _, station, request, unit = heapq.heappop(self.events)
                awake |= dict.fromkeys(self._arrived(now, station, request) if station >= 0 else (unit,))
            for unit in sorted(awake):
                chosen = self._chosen(unit, now) if self.free[unit] <= now else None
                if chosen is not None:
                    found.append(self._begin(unit, chosen, now))
        return sorted(found)

    def _let_in(self, now: int, request: int) -> None:
        heapq.heappush(self.events, (max(now, self.arrivals[request]), 0, request, self.units[0]))

    def _arrived(self, now: int, station: int, request: int) -> Iterator[str]:
        """Note that a request is done with the station before; yield the units that this may wake."""
        if station == 0:
            self.entered = request + 1
        else:
            yield self.units[station - 1]
        if station < len(self.times):
            self.ready[station].append(now)
            yield self.units[station]
            return
        self.left += 1
        following = self.left - 1 + self.slots
        if following < len(self.arrivals):
            self._let_in(now, following)

    def _chosen(self, unit: str, now: int) -> int | None:
        """Return the station that a free unit serves next; None: it waits."""
        going = [station for station in self.own[unit] if self.following[station] < len(self.arrivals)]
        waiting = [station for station in going if self.ready[station]]
        if not waiting:
            return None
        planned = min(going, key=self._turn)
        if planned in waiting:
            return planned
        late = self.entered <= self.following[planned] < self.left + self.slots
        since = max(self.free[unit], min(self.ready[station][0] for station in waiting))
        until = since + (self.order.news_us if late else self.order.patience_us)
        if now < until:
            heapq.heappush(self.events, (until, -1, 0, unit))
            return None
        return min(waiting, key=self._turn)

    def _turn(self, station: int) -> tuple[int, int]:
        behind, place = self.order.turns[station]
        return self.following[station] + behind, place

    def _begin(self, unit: str, station: int, now: int) -> Visit:
        request, end = self.following[station], now + self.times[station]
        self.following[station] += 1
        self.ready[station].popleft()
        self.free[unit] = end
        heapq.heappush(self.events, (end, station + 1, request, ""))
        return Visit(now, end, request, station)


def slots_in_line(chunks: int, stations: int) -> int:
    """Return the task slots of a line where none are given: at least one a station.

    Messages from and to a host are stations, too, for which two slots a chunk may be too few.
    """
    return max(default_task_slots(chunks), stations)


def visited(
    times_us: Sequence[int], arrivals_us: Sequence[int], slots: int, turns: Turns | None
) -> list[Visit]:
    """Serve requests at stations of their own, or where `turns` says so at stations that share units."""
    if turns is None:
        return served(times_us, arrivals_us, slots)
    return served_in_turns(times_us, arrivals_us, slots, turns)


def saturated(times_us: Sequence[int], slots: int, requests: int, turns: Turns | None = None) -> list[Visit]:
    """Serve requests that are all there from the beginning and wait for task slots."""
    return visited(times_us, (0,) * requests, slots, turns)


def steady_visits(
    times_us: Sequence[int], slots: int, turns: Turns | None = None
) -> tuple[float, list[Visit]]:
    """Return the period of a line that is never short of requests, and the visits of its last request."""
    # Where units are shared the last requests are faster: nobody comes behind them.
    tail = 0 if turns is None else 2 * slots
    visits = saturated(times_us, slots, STEADY * slots + tail, turns)
    outputs = [visit.end_us for visit in visits if visit.station == len(times_us) - 1]
    outputs = outputs[: STEADY * slots]
    last, cycle = len(outputs) - 1, CYCLES * slots
    period_us = (outputs[-1] - outputs[-1 - cycle]) / cycle
    return period_us, [visit for visit in visits if visit.request == last]
