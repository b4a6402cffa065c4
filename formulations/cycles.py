"""In which order units serve the chunks of a stream whose requests come back to them: a modulo schedule.

Chunk c starts at s_c on a circle of one period P, so that no two chunks of a unit overlap. Request i runs it
at T_c + i P, where T_c is the first time after the end of chunk c - 1 that is s_c on the circle. Any way to
pack the loads on their circles does, so there is a schedule for every P that is at least the largest load.
What differs is how long requests wait, and with that how many are on their way.

For a chunk between two others the waits before and after it are together either as short as they can be or
longer by P: it lies in the window from the end of the chunk before it to the start of the next one, or it
does not. So units are packed in turn, the others fixed: from every beginning of a window on, of what is there
the most urgent first (Jackson's rule). This is repeated from disturbed schedules; the best one is kept.

Two chunks of one unit whose times between them do not fit the circle make each request wait somewhere between
them; what such pairs ask for, as far as they are behind each other, is a bound (`least_latency_us`). A
schedule that attains it cannot be improved.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate, combinations, groupby
from typing import Any, ClassVar

from .errors import InvalidPlanError
from .validation import STRICT

_WORK, _FEW = 6000, 8
"""How many disturbed schedules are improved: times the number of chunks at most, over its square at most."""

_MOST_OTHERS = 8
"""Of units with at most this number of further chunks every subset of them is tried between two."""

_FAR = {24: 3.0, 100: 1.3}
"""A schedule that has to be short enough is given up if after a number of them it waits that many times too
long."""

NEWS = 50
"""A unit waits for a request that has not come in, though it could, for the period over this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """In which order units serve their chunks."""

    turns: tuple[tuple[int, int], ...]
    """For each chunk how many requests it is behind the first one, and when in the period its turn is."""
    patience_us: int
    """How long a unit waits for the chunk whose turn it is while another one could run. If at all, longer
    than any chunk of a cycle waits in its schedule, so that only drift makes it give way."""

    @property
    def news_us(self) -> int:
        """How long it waits where the request has not come in, though there is room for it."""
        return self.patience_us // NEWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """When each chunk of a stream starts, over and over.

    Attributes
    ----------
    period_us
        From one request to the next.
    starts_us
        When each chunk starts, from when its request comes in; ascending.
    latency_us
        From when a request comes in to when it leaves: times and waits.
    eager
        Whether a unit never waits for the chunk whose turn it is while another one could run. Where that
        keeps the period in simulation it is better (`flight.cycle_for`): times that vary stop nobody.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    period_us: int
    starts_us: tuple[int, ...]
    latency_us: int
    eager: bool = False

    def __post_init__(self) -> None:
        times = (0, *self.starts_us, self.latency_us)
        if self.period_us < 1 or list(times) != sorted(times):
            raise InvalidPlanError(
                f"a cycle needs a period of at least 1 us and starts that ascend up to its latency, not "
                f"{self.starts_us} of {self.latency_us} every {self.period_us} us"
            )

    @property
    def in_flight(self) -> int:
        """How many requests are on their way at once."""
        return -(-self.latency_us // self.period_us)

    def order(self, slots: int) -> Order:
        """Return in which order units serve chunks while at most `slots` requests are on their way.

        Where these are fewer than the cycle needs, it would come to a stop: then it is the oldest first.
        """
        if slots < self.in_flight:
            oldest = tuple((0, chunk) for chunk in range(len(self.starts_us)))
            return Order(turns=oldest, patience_us=0)
        turns = tuple(divmod(start, self.period_us) for start in self.starts_us)
        return Order(turns=turns, patience_us=0 if self.eager else self.period_us)


def cycle_of(
    times_us: Sequence[int],
    units: Sequence[int | str],
    *,
    period_us: int | None = None,
    rounds: int | None = None,
) -> Cycle:
    """Return a cycle whose requests wait little.

    Parameters
    ----------
    times_us, units
        Of each chunk, in order: how long it takes, at least 1, and which unit, or resource, runs it.
        Chunks in a row on one follow each other without a wait.
    period_us
        At least the largest load, which is the least period there is. None: that one. With a longer one
        requests may wait less.
    rounds
        How many disturbed schedules are improved. None: 6,000 over the number of chunks, and at most eight
        times its square; 27 take 0.7 s.
    """
    least = largest_load(times_us, units)
    if period_us is not None and period_us < least:
        raise InvalidPlanError(
            f"a cycle of {period_us} us: the busiest unit is busy for {least} us per request; no shorter "
            "period is possible"
        )
    rows, whole_us, alike = _merged(times_us, units)
    found = _cycle_of(whole_us, alike, period_us or least, _rounds(len(rows), rounds))
    if len(rows) == len(units):
        return found
    starts = (
        start + sum(times_us[row[0] : chunk])
        for start, row in zip(found.starts_us, rows, strict=True)
        for chunk in row
    )
    return replace(found, starts_us=tuple(starts))


def brief_latency_us(times_us: Sequence[int], units: Sequence[int], *, enough_us: int, patient: bool) -> int:
    """Return the latency of a cycle of the least period that is looked for until it is short enough.

    Without patience the search is given up early where it is far from that. `cycle_of` takes the same steps
    and more, so its latency is no longer. Nothing is kept.
    """
    rows, whole_us, alike = _merged(times_us, units)
    circles = _Circles(whole_us, alike, largest_load(times_us, units))
    return circles.latency(circles.best(_rounds(len(rows), None), enough_us, patient=patient))


def least_latency_us(times_us: Sequence[int], units: Sequence[int | str]) -> int:
    """Return what a request takes at least in any cycle of the least period; parameters as for `cycle_of`."""
    _, whole_us, alike = _merged(times_us, units)
    return sum(whole_us) + _Circles(whole_us, alike, largest_load(times_us, units)).least_waits()


def _rounds(chunks: int, most: int | None) -> int:
    """Return how many disturbed schedules are improved."""
    return min(_FEW * chunks**2, _WORK // chunks) if most is None else most


def largest_load(times_us: Sequence[int], units: Sequence[int | str]) -> int:
    """Return how long the busiest unit is busy per request."""
    loads: dict[int | str, int] = {}
    for time, unit in zip(times_us, units, strict=True):
        loads[unit] = loads.get(unit, 0) + time
    return max(loads.values())


def _merged(
    times_us: Sequence[int], units: Sequence[int | str]
) -> tuple[list[list[int]], tuple[int, ...], tuple[int, ...]]:
    """Return chunks in a row on one unit as one: which they are, their times, and their unit by number."""
    rows = [list(row) for _, row in groupby(range(len(units)), key=units.__getitem__)]
    whole_us = tuple(sum(times_us[chunk] for chunk in row) for row in rows)
    places: dict[int | str, int] = {}  # by name or by index: one cycle is looked for once
    return rows, whole_us, tuple(places.setdefault(units[row[0]], len(places)) for row in rows)


@lru_cache(maxsize=256)
def _cycle_of(times_us: tuple[int, ...], units: tuple[int, ...], period: int, rounds: int) -> Cycle:
    """Return the cycle of a plan: kept, because a plan is judged, played, shown and run one after another."""
    starts = _Circles(times_us, units, period).best(rounds)
    at, found = 0, []
    for index, start in enumerate(starts):
        at += (start - (starts[0] + at)) % period
        found.append(at)
        at += times_us[index]
    return Cycle(period_us=period, starts_us=tuple(found), latency_us=at)


class _Circles:
    """Starts of chunks on circles of one period."""

    def __init__(self, times_us: Sequence[int], units: Sequence[int | str], period_us: int) -> None:
        self.times, self.period = list(times_us), period_us
        self.last = len(self.times) - 1
        self.own: dict[int | str, list[int]] = {}
        for chunk, unit in enumerate(units):
            self.own.setdefault(unit, []).append(chunk)
        self.random = random.Random(0)

    def best(self, rounds: int, enough: int = 0, *, patient: bool = True) -> list[int]:
        """Return the starts with the shortest latency that was found, or the first that is short enough."""
        flowing = [at % self.period for at in accumulate(self.times[:-1], initial=0)]
        best = self._improved(flowing, noise=0)
        shortest = self.latency(best)
        if shortest <= enough or not rounds:
            return best
        whole, allowed = sum(self.times), max(enough - sum(self.times), 0)
        far = {turn: whole + times * allowed for turn, times in _FAR.items()}
        far = {} if patient else far
        enough = max(enough, whole + self.least_waits())
        for turn in range(rounds):
            if shortest <= enough or shortest > far.get(turn, math.inf):
                break
            base = flowing if turn % 4 == 3 else best
            found = self._improved(self._disturbed(base), noise=self.period // 4 if turn % 2 else 0)
            latency = self.latency(found)
            if latency <= shortest:
                best, shortest = found, latency
        return best

    def latency(self, starts: Sequence[int]) -> int:
        """Return times and waits of one request together."""
        ends = [start + time for start, time in zip(starts, self.times, strict=True)]
        waits = ((start - end) % self.period for end, start in zip(ends, starts[1:], strict=False))
        return sum(self.times) + sum(waits)

    def least_waits(self) -> int:
        """Return what each request waits at least: of disjoint stretches of its way, the most together."""
        waits: list[list[tuple[int, int]]] = [[] for _ in self.times]
        for own in self.own.values():
            slack = self.period - sum(self.times[chunk] for chunk in own)
            for first, second in combinations(own, 2):
                between = sum(self.times[first + 1 : second]) % self.period
                others = [self.times[chunk] for chunk in own if chunk not in (first, second)]
                wait = min(
                    0 if low <= between <= high else (low - between) % self.period
                    for low, high in _gaps(others, slack)
                )
                waits[second].append((first, wait))
        most = [0]
        for chunk in range(1, len(self.times)):
            most.append(max([most[-1], *(most[first] + wait for first, wait in waits[chunk])]))
        return most[-1]

    def _disturbed(self, starts: Sequence[int]) -> list[int]:
        moved = list(starts)
        for _ in range(1 + self.random.randrange(3)):
            moved[self.random.randrange(len(moved))] = self.random.randrange(self.period)
        return moved

    def _improved(self, starts: Sequence[int], *, noise: int) -> list[int]:
        """Pack unit after unit until that makes nothing better; from then on no two chunks overlap."""
        now, units = list(starts), list(self.own)
        self.random.shuffle(units)
        for unit in units:
            self._pack(now, unit, noise)
        shortest = self.latency(now)
        while True:
            for unit in units:
                self._pack(now, unit, 0)
            latency = self.latency(now)
            if latency >= shortest:
                return now
            shortest = latency

    def _pack(self, starts: list[int], unit: int | str, noise: int) -> None:
        """Place the chunks of a unit, the others fixed, in the best way that is found."""
        own = self.own[unit]
        windows = {chunk: self._window(starts, chunk) for chunk in own}
        origins = dict.fromkeys(window[0] for window in windows.values())
        packed = (self._packed(windows, origin, noise) for origin in origins)
        best = min(packed, key=lambda placed: self._waits(starts, placed))
        for chunk, start in best.items():
            starts[chunk] = start

    def _waits(self, starts: Sequence[int], placed: dict[int, int]) -> int:
        """Return how long requests wait before and after the chunks of one unit."""
        total, times, period, last = 0, self.times, self.period, self.last
        for chunk, start in placed.items():
            if chunk:
                total += (start - starts[chunk - 1] - times[chunk - 1]) % period
            if chunk < last:
                total += (starts[chunk + 1] - start - times[chunk]) % period
        return total

    def _window(self, starts: Sequence[int], chunk: int) -> tuple[int, int]:
        """Return when a chunk can start on the circle, and how long after that it has to be done."""
        time, period = self.times[chunk], self.period
        if chunk == 0:
            following = starts[1] if self.last else 0
            return (following - time) % period, time
        ready = (starts[chunk - 1] + self.times[chunk - 1]) % period
        if chunk == self.last:
            return ready, time
        return ready, time + (starts[chunk + 1] - ready - time) % period

    def _packed(self, windows: dict[int, tuple[int, int]], origin: int, noise: int) -> dict[int, int]:
        """Return the starts from one point of the circle on: of what is there, the most urgent first."""
        period, times = self.period, self.times
        later = []
        for chunk, (start, length) in windows.items():
            release = (start - origin) % period
            due = release + length + (self.random.randrange(noise) if noise else 0)
            later.append((release, due, chunk))
        later.sort(reverse=True)
        there: list[tuple[int, int]] = []
        at, order = 0, []
        while later or there:
            if not there:
                at = max(at, later[-1][0])
            while later and later[-1][0] <= at:
                _, due, chunk = later.pop()
                heappush(there, (due, chunk))
            _, chunk = heappop(there)
            order.append((chunk, at))
            at += times[chunk]
        end, placed = period, {}
        for chunk, start in reversed(order):
            end = min(start, end - times[chunk])
            placed[chunk] = (origin + end) % period
        return placed


def _gaps(others_us: Sequence[int], slack_us: int) -> list[tuple[int, int]]:
    """Return how long it can be from the end of a chunk to the start of another one of its unit, as ranges.

    Some of the other chunks of the unit are between them, and as much of its idle time as one likes. Of many
    chunks it is one range, which leaves nothing out.
    """
    if len(others_us) > _MOST_OTHERS:
        return [(0, sum(others_us) + slack_us)]
    sums = {0}
    for time_us in others_us:
        sums |= {before + time_us for before in sums}
    return [(between, between + slack_us) for between in sums]
