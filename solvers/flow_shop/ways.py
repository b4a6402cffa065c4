"""The ways to lay one network on the units: the best one for given prices, or for given gaps.

Both are recursions over (unit, boundary) of O(n K) steps: the least over all starts of a chunk is a
running minimum, because the time of a chunk is `head` at its start plus `tail` at its end. They are
vectorised over boundaries and over rows: many prices, or many places in the order, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from .arrays import FORBIDDEN, ChainArrays, Ints

UNREACHABLE = 2**61
"""Later than any plan ends; adding the time of a request to it does not overflow."""

_MOST_STRETCHES = 12
"""Units that run more separate stretches of a network than this are searched by doubling."""

_MOST_KNOWN = 100_000
"""Cuts whose times are remembered."""

_POOL = 48
"""Cuts that were good somewhere and are tried elsewhere: so many of the last ones."""


class Ways:
    """One network, and what its chunks take.

    `required`: units that have to run a chunk of it, as far as `least_priced` and `allows` are asked.
    """

    def __init__(self, arrays: ChainArrays, required: frozenset[int] = frozenset()) -> None:
        self.arrays, self.required = arrays, required
        self.size = arrays.size
        self.head, self.tail = arrays.head, arrays.tail
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._pool = _Pool()
        reaching = (arrays.last > np.arange(arrays.size + 1)).any(axis=1)
        self.units = tuple(np.flatnonzero(reaching).tolist())

    @cached_property
    def _reaches(self) -> dict[int, _Reach]:
        return {unit: _Reach(self.arrays.last[unit]) for unit in self.units}

    @cached_property
    def _chunks(self) -> dict[int, _Chunks]:
        return {unit: _Chunks(self.arrays.last[unit]) for unit in self.units}

    @cached_property
    def _lists(self) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
        return self.arrays.head.tolist(), self.arrays.tail.tolist(), self.arrays.last.tolist()

    @cached_property
    def _cuts(self) -> list[int]:
        cuts: list[int] = self.arrays.cuts.tolist()
        return cuts

    def times_us(self, places: tuple[int, ...]) -> tuple[int, ...]:
        """Return the time on each unit for cuts given as places among the boundaries."""
        if places not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            head, tail, _ = self._lists
            self._known[places] = tuple(
                tail[unit][stop] + head[unit][start] if start < stop else 0
                for unit, (start, stop) in enumerate(pairwise(places))
            )
        return self._known[places]

    def cuts_of(self, places: Sequence[int]) -> tuple[int, ...]:
        """Return cuts in layers from places among the boundaries."""
        return tuple(self._cuts[place] for place in places)

    @cached_property
    def runs(self) -> bool:
        """Whether there is any way to lay the network on the units."""
        prices = np.zeros((1, self.arrays.unit_count), dtype=np.int64)
        able = self.required.issubset(self.units)
        return able and bool(self.least_priced(prices)[0][0] < UNREACHABLE)

    def allows(self, places: Sequence[int]) -> bool:
        """Return whether the units can run these chunks, and those that are required do."""
        last = self._lists[2]
        return all(stop <= last[unit][start] for unit, (start, stop) in enumerate(pairwise(places))) and all(
            places[unit] < places[unit + 1] for unit in self.required
        )

    @cached_property
    def sure_units(self) -> frozenset[int]:
        """The units that run a chunk in any case: they are required, or alone can run some piece."""
        able = self.arrays.last[:, :-1] > np.arange(self.size)
        alone = able[:, able.sum(axis=0) == 1].argmax(axis=0).tolist()
        return self.required | frozenset(alone)

    @cached_property
    def outside_us(self) -> tuple[Ints, Ints]:
        """The least time on the units before the first, and after the last, chunk on each unit."""
        arrays, units = self.arrays, range(self.arrays.unit_count)
        heads, tails = np.full((2, len(units)), FORBIDDEN)
        before, after = (np.full(self.size + 1, FORBIDDEN) for _ in range(2))
        before[0] = after[-1] = 0
        for unit in units:
            heads[unit] = before[arrays.last[unit] > np.arange(self.size + 1)].min(initial=FORBIDDEN)
            before = (before[:, None] + arrays.unit_times(unit)).min(axis=0)
        for unit in reversed(units):
            times = arrays.unit_times(unit)
            ends = ((times > 0) & (times < FORBIDDEN)).any(axis=0)
            tails[unit] = after[ends].min(initial=FORBIDDEN)
            after = (times + after).min(axis=1)
        return heads, tails

    def slowed(self, rates_permille: Sequence[int]) -> Ways:
        """Return the same network with all times on each unit multiplied by a rate."""
        rates = np.array(rates_permille, dtype=np.int64)[:, None]
        other = Ways.__new__(Ways)
        other.__dict__.update(self.__dict__)
        # Rounded to opposite sides, so that a chunk of no layers never takes less than no time.
        other.head, other.tail = -(-self.head * rates // 1000), self.tail * rates // 1000
        # With slowdown, estimates are rough: known cuts brought nothing for 10 requests.
        other._pool = _Pool()
        return other

    def remember(self, places: tuple[int, ...]) -> None:
        """Let `known_ends` try these cuts, too."""
        self._pool.add(places, self.times_us(places))

    def known_ends(
        self, before: Ints, after: Ints, arrival_us: int
    ) -> tuple[Sequence[tuple[int, ...]], Ints]:
        """Return the cuts that are remembered, and when the plan can end with each of them.

        There are P cuts, and their ends by [place in the order][cuts] as far as the request itself matters.
        """
        if not self._pool.known:
            return [], np.empty((len(before), 0), dtype=np.int64)
        known, rows, skipped = self._pool.read()
        at = np.full((len(before), len(rows)), arrival_us)
        ends = np.zeros_like(at)
        for unit in self.units:
            np.maximum(at, before[:, unit, None] + skipped[:, unit], out=at)
            at += rows[:, unit]
            np.maximum(ends, at + (after[:, unit, None] + skipped[:, unit]), out=ends)
        return known, ends

    def least_priced(self, prices: Ints, discounts: Ints | None = None) -> tuple[Ints, Ints]:
        """Return the least sum over the units of price x time, for many prices at once.

        `prices`: not negative, shape (P, K). `discounts`: what a chunk on each unit costs less, shape (P, K);
        None: nothing.
        Sums and places have the shapes (P,) and (P, K + 1); `UNREACHABLE` where the network cannot be run.
        """
        rows = np.arange(len(prices))
        best = self._start(len(prices), 0)
        steps = []
        for unit in self.units:
            price = prices[:, unit, None]
            through, source = self._chunks[unit].least(best + price * self.head[unit])
            through += price * self.tail[unit]
            if discounts is not None:
                through -= discounts[:, unit, None]
            if unit in self.required:
                best = np.where(through < UNREACHABLE // 2, through, UNREACHABLE)
                steps.append(source)
            else:
                steps.append(np.where(through < best, source, np.arange(self.size + 1)))
                best = np.minimum(best, through)
        places = np.full((len(prices), self.arrays.unit_count + 1), self.size)
        at = places[:, -1]
        filled = self.arrays.unit_count
        for unit, step in zip(reversed(self.units), reversed(steps), strict=True):
            places[:, unit + 1 : filled + 1] = at[:, None]
            at, filled = step[rows, at], unit
        places[:, : filled + 1] = at[:, None]
        places[:, 0] = 0
        return best[:, -1], places

    def earliest(self, ready: Ints, after: Ints, arrival_us: int, limit_us: int) -> Ints:
        """Return when the request can be done at each of several places in the order.

        `ready`: when each unit is free before the request, shape (P, K); `after`: how long the others keep
        each unit busy after it, up to the end of the plan, shape (P, K).
        The result has the shape (P,); `UNREACHABLE` where the plan cannot end in time.
        """
        best = self._start(len(ready), arrival_us)
        for unit in self.units:
            done = np.maximum(best, ready[:, unit, None])
            done += self.head[unit]
            done = self._reaches[unit].minima(done)
            done += self.tail[unit]
            np.putmask(done, done > (limit_us - after[:, unit])[:, None], UNREACHABLE)
            np.minimum(best, done, out=best)
        return best[:, -1]

    def places_within(
        self, ready: Sequence[int], after: Sequence[int], arrival_us: int, limit_us: int
    ) -> tuple[int, ...]:
        """Return the cuts that `earliest` speaks of, for one place in the order that is in time."""
        levels = [self._start(1, arrival_us)[0]]
        for unit in self.units:
            done = np.maximum(levels[-1], ready[unit])
            done += self.head[unit]
            done = self._reaches[unit].minima(done[None, :])[0] + self.tail[unit]
            done[done > limit_us - after[unit]] = UNREACHABLE
            levels.append(np.minimum(levels[-1], done))
        places = [self.size] * (self.arrays.unit_count + 1)
        at = self.size
        for index in range(len(self.units) - 1, -1, -1):
            unit, before, done = self.units[index], levels[index], levels[index + 1]
            places[unit + 1] = at
            if done[at] < before[at]:
                first = self._reaches[unit].first[at]
                starts = np.maximum(before[first:at], ready[unit]) + self.head[unit, first:at]
                at = int(first + starts.argmin())
            for skipped in range(unit + 1):
                places[skipped] = at
        places[0] = 0
        return tuple(places)

    def _start(self, rows: int, at_us: int) -> Ints:
        best = np.full((rows, self.size + 1), UNREACHABLE, dtype=np.int64)
        best[:, 0] = at_us
        return best


class _Pool:
    """The last cuts that were good somewhere, and their times by [cuts][unit]."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._arrays: tuple[list[tuple[int, ...]], Ints, Ints] | None = None

    def add(self, places: tuple[int, ...], times_us: tuple[int, ...]) -> None:
        if places in self.known:
            return
        self.known[places] = times_us
        if len(self.known) > _POOL:
            del self.known[next(iter(self.known))]
        self._arrays = None

    def read(self) -> tuple[list[tuple[int, ...]], Ints, Ints]:
        """Return the places, the rows, and what keeps a unit without work from counting."""
        if self._arrays is None:
            rows = np.array(list(self.known.values()), dtype=np.int64)
            self._arrays = list(self.known), rows, np.where(rows > 0, 0, -UNREACHABLE)
        return self._arrays


class _Reach:
    """From which starts a chunk on one unit can end at each boundary; a chunk of no layers always can.

    `last`: the last boundary that a chunk from each boundary can reach, never decreasing.
    """

    def __init__(self, last: Ints) -> None:
        self._stay = np.arange(len(last))
        self.first = np.searchsorted(last, self._stay)
        edges = np.flatnonzero(self.first == self._stay).tolist()
        stretches = [slice(start, stop) for start, stop in pairwise([*edges, len(last)])]
        whole = all((self.first[part] == part.start).all() for part in stretches)
        longer = [part for part in stretches if part.stop - part.start > 1]
        self._stretches = longer if whole and len(longer) <= _MOST_STRETCHES else None

    def minima(self, values: Ints) -> Ints:
        """Return the least value among the starts of each boundary, along the last axis."""
        if self._stretches is None:
            return self._by_doubling(values)[0]
        if self._stretches == [slice(0, len(self._stay))]:
            return np.minimum.accumulate(values, axis=1)
        found = values.copy()
        for part in self._stretches:
            np.minimum.accumulate(values[:, part], axis=1, out=found[:, part])
        return found

    def least(self, values: Ints) -> tuple[Ints, Ints]:
        """Return these minima, and a start of each."""
        if self._stretches is None:
            return self._by_doubling(values)
        found = self.minima(values)
        return found, np.maximum.accumulate(np.where(values == found, self._stay, 0), axis=1)

    def _by_doubling(self, values: Ints) -> tuple[Ints, Ints]:
        """Cover each window by two windows whose length is a power of two."""
        best, source = values, np.broadcast_to(self._stay, values.shape)
        found, start = values.copy(), source.copy()
        lengths = self._stay - self.first + 1
        span = 1
        while span <= len(self._stay):
            now = np.flatnonzero((lengths >= span) & (lengths < 2 * span))
            left = self.first[now] + span - 1
            later = best[:, now] <= best[:, left]
            found[:, now] = np.where(later, best[:, now], best[:, left])
            start[:, now] = np.where(later, source[:, now], source[:, left])
            moved = np.maximum(self._stay - span, 0)
            later = best <= best[:, moved]
            best, source = np.where(later, best, best[:, moved]), np.where(later, source, source[:, moved])
            span *= 2
        return found, start


class _Chunks:
    """From which starts a chunk on one unit can end at each boundary: `_Reach` without chunks of no layers.

    `last`: as for `_Reach`. A start is looked up one boundary later, where its first chunk can end.
    """

    def __init__(self, last: Ints) -> None:
        places = np.arange(len(last))
        self._none = np.concatenate([[True], (last == places)[:-1]])
        self._reach = _Reach(np.maximum(np.concatenate([[0], last[:-1]]), places))

    def least(self, values: Ints) -> tuple[Ints, Ints]:
        """Return the least value among the starts of each boundary, along the last axis, and its start."""
        moved = np.concatenate([values[:, -1:], values[:, :-1]], axis=1)
        moved[:, self._none] = UNREACHABLE
        found, source = self._reach.least(moved)
        return found, np.maximum(source - 1, 0)
