"""Requests in flight: which period a number of them gives, and what a slightly longer period saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .cycles import Cycle, cycle_of
from .serving import STEADY, Turns, saturated, steady_visits

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
