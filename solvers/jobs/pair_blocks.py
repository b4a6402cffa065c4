"""The ways of one request of a pair: chunks over blocks of layers (`solvers/jobs/pair_bound.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ..company import Ints
from ..contention import Way
from ..simplex import Floats
from .passages import Passages


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What a request can do from a border of blocks on, sorted by border and by `excess`.

    A step on the last unit, which is none, passes one block in several chunks.
    """

    count: int  # blocks
    first: Ints  # where the steps of a border begin, and their number at last
    unit: Ints
    stop: Ints  # the border behind it
    work: Floats
    less: Floats  # what it costs less, because a play rounds
    excess: Floats  # what it costs at prices beyond the cheapest way
    rest: Floats  # what the cheapest way costs at prices, by border
    last: Floats  # what the cheapest way costs while the other one does not run, by border


def blocks_of(network: Passages, short_us: float) -> tuple[int, ...]:
    """Return borders of runs of sections that the same units can run, one of them in a short time.

    Sections that take longer are blocks of their own.
    """
    units = range(network.unit_count)
    found, size = [0], network.size

    def able(border: int) -> tuple[bool, ...]:
        return tuple(network.reach[unit][border] > border for unit in units)

    for border in range(1, size):
        begin = found[-1]
        times = [
            network.until[unit][border + 1] - network.since[unit][begin]
            for unit in units
            if network.reach[unit][begin] > border
        ]
        if able(border) != able(begin) or min(times, default=inf) > short_us:
            found.append(border)
    return (*found, size)


Step = tuple[int, int, float, float]
"""Unit, the border behind it, work, and what it costs less, because a play rounds."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """A request of a pair as steps from border to border, with what a linear program of prices asks."""

    steps: tuple[tuple[Step, ...], ...]  # by border
    units: int  # with the one that is none
    count: int = 1  # requests

    @staticmethod
    def of(network: Passages, borders: Sequence[int], less: Floats) -> Blocks:
        """Return the steps of a network between some of its borders.

        A chunk that begins or ends within a block counts from the next border on, or to the one before; what
        is left of it belongs to the block that is passed in several chunks, which takes at least as long as
        the fastest of those ways. `less`: by how much a chunk is cheaper, by unit.
        """
        ends, none = _ends(network, borders), network.unit_count
        found: list[tuple[Step, ...]] = []
        for at, border in enumerate(borders[:-1]):
            steps: list[Step] = []
            for unit, (since, until) in enumerate(ends):
                for stop in range(at + 1, len(borders)):
                    if borders[stop] > network.reach[unit][border]:
                        break
                    steps.append((unit, stop, max(0.0, float(until[stop] - since[at])), float(less[unit])))
            inside = borders[at + 1] - border
            work = _several(network, borders, at, ends) if inside > 1 else inf
            if work < inf:
                steps.append((none, at + 1, work, inside * float(less.max())))
            found.append(tuple(steps))
        return Blocks(tuple(found), none + 1)

    def cheapest(self, prices: Ints, discounts: Ints) -> tuple[int, Way]:
        """Return what the request pays at least at some prices, and its steps."""
        least: list[float] = [inf] * len(self.steps) + [0.0]
        last: list[Step | None] = [None] * len(self.steps)
        own = [price - less for price, less in zip(prices.tolist(), discounts.tolist(), strict=True)]
        for at in reversed(range(len(self.steps))):
            for step in self.steps[at]:
                cost = own[step[0]] * step[2] + least[step[1]]
                if cost < least[at]:
                    least[at], last[at] = cost, step
        way, at = [], 0
        while at < len(self.steps):
            chosen = last[at]
            assert chosen is not None
            way.append(chosen)
            at = chosen[1]
        return int(least[0]), tuple(way)

    def times_us(self, way: Way) -> Ints:
        """Return the work of a way on each unit."""
        found = np.zeros(self.units, dtype=np.int64)
        for unit, _, work, _ in way:
            found[unit] += int(work)
        return found

    def allows(self, way: Way) -> bool:
        """Return whether a way is one of this request."""
        return bool(way)

    def priced(self, prices: Floats, alone: Floats) -> Steps:
        """Return the steps with what they cost at prices by unit.

        `alone`: what work costs while the other one waits.
        """
        rest, last = self._least(prices), self._least(alone)
        table = np.array(
            [
                (at, prices[step[0]] * step[2] - step[3] + rest[step[1]] - rest[at], *step)
                for at, own in enumerate(self.steps)
                for step in own
                if rest[step[1]] < inf
            ]
        ).reshape(-1, 6)
        table = table[np.lexsort((table[:, 1], table[:, 0]))]
        return Steps(
            count=len(self.steps),
            first=np.searchsorted(table[:, 0], np.arange(len(self.steps) + 2)),
            unit=table[:, 2].astype(np.int64),
            stop=table[:, 3].astype(np.int64),
            work=table[:, 4].copy(),
            less=table[:, 5].copy(),
            excess=np.maximum(table[:, 1], 0.0),
            rest=rest,
            last=last,
        )

    def _least(self, prices: Floats) -> Floats:
        found = np.full(len(self.steps) + 1, inf)
        found[-1] = 0.0
        for at in reversed(range(len(self.steps))):
            found[at] = min(
                (prices[unit] * work - less + found[stop] for unit, stop, work, less in self.steps[at]),
                default=inf,
            )
        return found


def _ends(network: Passages, borders: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Return for each unit since when and until when chunks count at the borders of blocks."""
    found = []
    for since, until in zip(network.since, network.until, strict=True):
        before = [borders[0], *borders[:-1]]
        behind = [*borders[1:], borders[-1]]
        found.append(
            (
                [
                    max(since[max(a + 1, 0) : b] + since[b : b + 1])
                    for a, b in zip(before, borders, strict=True)
                ],
                [min(until[b : max(b + 1, c)]) for b, c in zip(borders, behind, strict=True)],
            )
        )
    return found


def _several(
    network: Passages,
    borders: Sequence[int],
    at: int,
    ends: Sequence[tuple[list[int], list[int]]],
) -> float:
    """Return how long a block takes at least in several chunks, without what its neighbours have of them."""
    begin, end = borders[at], borders[at + 1]
    least = {begin: [inf] * 2}
    for stop in range(begin + 1, end + 1):
        best = [inf, inf]  # by one chunk, and by several
        for start in range(begin, stop):
            for unit in range(network.unit_count):
                if network.reach[unit][start] < stop:
                    continue
                row, since, until = network.reach[unit], network.since[unit][start], network.until[unit][stop]
                if start == begin and begin and row[begin - 1] >= begin:  # it may have begun before
                    since = ends[unit][1][at]
                if stop == end and end < network.size and row[end] > end:  # it may go on
                    until = ends[unit][0][at + 1]
                time = float(max(0, until - since))
                if start == begin:
                    best[0] = min(best[0], time)
                else:
                    best[1] = min(best[1], min(least[start]) + time)
        least[stop] = best
    return least[end][1]
