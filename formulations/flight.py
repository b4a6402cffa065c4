"""Requests that pass stations in line, each of which serves one at a time, and requests in flight.

Requests that pass stations in line, each of which serves one at a time: the clock of all streams.
Asynchronous model on an integer clock: a station begins with a request when the station before is done with
it and it is free itself; it serves requests in order; at most `slots` requests are on their way. Stations
that share a unit take turns (`served_in_turns`).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from .cycles import Cycle, cycle_of
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


_NUMBERS = (1, 2, 4, 8)
"""Requests in flight that are tried, beside the number that the plan needs."""

_LONGER_PERCENT = (1, 2, 5, 10, 15, 20, 30, 40)
"""How much longer periods are tried."""

_MOST_LONGER, _LEAST_SAVED, _WORTH = 0.1, 0.1, 5
"""Of these up to which share may pay. One does if requests take at least this share less time, and this
number of times as much of a share as the period is longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What a number of requests in flight gives, by simulation."""

    in_flight: int
    period_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Flight:
    """A plan of one network in its stream."""

    period_us: int  # the largest load
    latency_us: int  # of a request in the stream, waits included
    in_flight: int  # requests that the period needs
    paces: tuple[Pace, ...]  # what these and other numbers give, ascending
    calmer: Cycle | None  # a cycle of a longer period, in which requests wait much less, if there is one


def flight_of(times_us: Sequence[int], units: Sequence[str]) -> Flight:
    """Return what requests in flight do for chunks in a row; `times_us`, `units` as for `cycle_of`."""
    cycle = cycle_of(times_us, units)
    numbers = sorted({*_NUMBERS, cycle.in_flight})
    return Flight(
        period_us=cycle.period_us,
        latency_us=cycle.latency_us,
        in_flight=cycle.in_flight,
        paces=tuple(
            Pace(in_flight=number, period_us=_period_us(times_us, units, number)) for number in numbers
        ),
        calmer=next(
            (longer for longer in _longer(times_us, units, _MOST_LONGER) if _pays(cycle, longer)), None
        ),
    )


def cycle_for(times_us: Sequence[int], units: Sequence[str], slots: int | None) -> Cycle:
    """Return the cycle for a number of task slots; None: as many as it needs.

    Where there are fewer, it is one of a longer period that needs no more than these, if there is one that is
    faster than to serve the oldest request first (`Cycle.order`).
    """
    least = cycle_of(times_us, units)
    if slots is None or slots >= least.in_flight:
        numbers = (least.in_flight, least.in_flight + 1) if slots is None else (slots,)
        return _eager(tuple(times_us), tuple(units), least, numbers)
    shortest_us = -(-sum(times_us) // slots)  # even if nobody waits
    longer = _longer(times_us, units, least_us=shortest_us)
    fitting = next((cycle for cycle in longer if cycle.in_flight <= slots), least)
    oldest_us, _ = steady_visits(times_us, slots, Turns(units=tuple(units), cycle=least))
    if fitting.period_us >= oldest_us:
        return least
    return _eager(tuple(times_us), tuple(units), fitting, (slots,))


@lru_cache(maxsize=64)
def _eager(
    times_us: tuple[int, ...], units: tuple[str, ...], cycle: Cycle, numbers: tuple[int, ...]
) -> Cycle:
    """Return a cycle in which units never wait, if then no result is later than in the schedule.

    `numbers`: of task slots for which that has to be so. Results that come early at first must not come at
    longer distances than the period either: they would be late in the end.
    """
    eager = replace(cycle, eager=True)
    for slots in numbers:
        turns = Turns(units=units, cycle=eager)
        visits = saturated(times_us, slots, STEADY * slots, turns)
        ends = (visit.end_us for visit in visits if visit.station == len(times_us) - 1)
        late = any(end > place * cycle.period_us + cycle.latency_us for place, end in enumerate(ends))
        if late or steady_visits(times_us, slots, turns)[0] > cycle.period_us:
            return cycle
    return eager


def _longer(
    times_us: Sequence[int], units: Sequence[str], most: float = 1.0, *, least_us: int = 0
) -> Iterator[Cycle]:
    """Yield cycles of longer and longer periods, from a least one on and up to a share."""
    load_us = cycle_of(times_us, units).period_us
    for percent in _LONGER_PERCENT:
        period_us = load_us * (100 + percent) // 100
        if period_us > load_us and period_us >= least_us and percent <= 100 * most:
            yield cycle_of(times_us, units, period_us=period_us, rounds=_rounds(len(times_us)))


def _rounds(chunks: int) -> int:
    """Return how many disturbed schedules of a longer period are improved: there are several of them."""
    return min(200, 1500 // chunks)


def _pays(cycle: Cycle, longer: Cycle) -> bool:
    share = longer.period_us / cycle.period_us - 1
    saved = 1 - longer.latency_us / cycle.latency_us
    return saved >= max(_LEAST_SAVED, _WORTH * share)


def _period_us(times_us: Sequence[int], units: Sequence[str], slots: int) -> float:
    """Return the period that simulation gives with a number of task slots."""
    shared = len(set(units)) < len(units) and slots > 1
    turns = Turns(units=tuple(units), cycle=cycle_for(times_us, units, slots)) if shared else None
    return steady_visits(times_us, slots, turns)[0]
