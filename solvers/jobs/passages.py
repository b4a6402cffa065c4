"""The passages of a network over the units: chunks in a row, each on any unit that can run it.

Borders are counted: 0, ..., m; a chunk [i, j) on unit u takes `until[u][j] - since[u][i]`, copies included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from ...formulations.chain import Chain
from ...formulations.jobs.tables import Visits

Part = tuple[int, int, int]
"""A chunk: first border, last border, unit."""

Passage = tuple[Part, ...]
"""The chunks of a request, in order."""

Step = tuple[int, int, int]
"""What counts of the units before a chunk (`Visits`), its unit, and what counts behind it."""


@dataclass(frozen=True, slots=True)
class Passages:
    """Times of the chunks of one network, and the cheapest passage at some prices."""

    until: tuple[tuple[int, ...], ...]  # by [unit][border]
    since: tuple[tuple[int, ...], ...]  # by [unit][border]
    reach: tuple[tuple[int, ...], ...]
    """The last border that a chunk can reach from a border on a unit, by [unit][border]; the border itself:
    it cannot start there."""
    steps: tuple[Step, ...]  # the chunks that may follow each other

    @staticmethod
    def of(
        chain: Chain, borders: Sequence[int], units: Collection[int], visits: Visits | None = None
    ) -> Passages:
        """Return the passages of a network over some units; it may be cut at some of its layers: 0, ..., n.

        `visits`: which units may follow each other; None: any.
        """
        until, since, reach = [], [], []
        for unit, prefix in enumerate(chain.prefix_us):
            until.append(tuple(prefix[at] + chain.transfer_out_us[at][unit] for at in borders))
            since.append(tuple(prefix[at] - chain.transfer_in_us[at][unit] for at in borders))
            reach.append(_reach(chain, borders, unit) if unit in units else tuple(range(len(borders))))
        steps = tuple(_steps(units, visits or Visits(once=False, rank=None)))
        return Passages(tuple(until), tuple(since), tuple(reach), steps)

    @property
    def size(self) -> int:
        """Number of sections between borders."""
        return len(self.until[0]) - 1

    @property
    def states(self) -> int:
        """One more than the largest number that says which units a request has visited."""
        return 1 + max(max(state, after) for state, _, after in self.steps)

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self.until)

    def time_us(self, part: Part) -> int:
        """Return how long a chunk takes without company."""
        start, stop, unit = part
        return self.until[unit][stop] - self.since[unit][start]

    def times_us(self, passage: Sequence[Part]) -> list[int]:
        """Return the time of a passage on each unit."""
        times = [0] * self.unit_count
        for part in passage:
            times[part[2]] += self.time_us(part)
        return times

    @property
    def alone(self) -> tuple[int, Passage] | None:
        """The least time of a passage, and it; None: there is none."""
        found = self.cheapest([1] * self.unit_count)
        return None if found is None else (int(found[0]), found[1])

    def allows(self, passage: Sequence[Part]) -> bool:
        """Return whether each unit can run its chunks."""
        return all(stop <= self.reach[unit][start] for start, stop, unit in passage)

    def without(self, section: int, units: Collection[int]) -> Passages:
        """Return the passages that do not pass a section on some units."""
        reach = list(self.reach)
        for unit in units:
            before = (min(last, section) for last in reach[unit][: section + 1])
            reach[unit] = (*before, *reach[unit][section + 1 :])
        return replace(self, reach=tuple(reach))

    def cheapest(
        self, prices: Sequence[float], discounts: Sequence[float] | None = None
    ) -> tuple[float, Passage] | None:
        """Return the least sum of time x price less the discount of each chunk, and its passage.

        None: no passage is possible. With whole numbers the sum is exact. Chunks are as long as they like
        to be: what the memory of a unit forbids counts only for single sections, so the sum may be too
        small, never too large.
        """
        units: list[tuple[list[float], list[float], tuple[int, ...]]] = []
        for unit, price in enumerate(prices):
            less = 0 if discounts is None else discounts[unit]
            begin = [-price * time - less for time in self.since[unit]]
            units.append((begin, [price * time for time in self.until[unit]], self.reach[unit]))
        steps = [(state, *units[on], after) for state, on, after in self.steps]
        states = self.states
        least: list[list[float]] = [[inf] * states for _ in range(self.size + 1)]
        least[0][0] = 0
        last = [[(0, 0)] * states for _ in range(self.size + 1)]
        runs: list[float] = [inf] * len(steps)
        starts = [0] * len(steps)
        for border, before in enumerate(least[:-1]):
            stop, now, ways = border + 1, least[border + 1], last[border + 1]
            for number, (state, begin, end, reach, after) in enumerate(steps):
                if reach[border] == border:
                    runs[number] = inf
                    continue
                started = before[state] + begin[border]
                if started < runs[number]:
                    runs[number], starts[number] = started, border
                total = runs[number] + end[stop]
                if total < now[after]:
                    now[after], ways[after] = total, (starts[number], number)
        best = min(least[-1])
        if best == inf:
            return None
        found: list[Part] = []
        border, after = self.size, least[-1].index(best)
        while border:
            start, number = last[border][after]
            after, unit, _ = self.steps[number]
            found.append((start, border, unit))
            border = start
        return best, tuple(reversed(found))


def _steps(units: Collection[int], visits: Visits) -> Iterator[Step]:
    """Yield the chunks that may follow each other, from a request that has none."""
    seen, open_ = {0}, [0]
    for state in open_:
        for unit in sorted(units):
            after = visits.after(state, unit)
            if after is not None:
                yield state, unit, after
                if after not in seen:
                    seen.add(after)
                    open_.append(after)


def _reach(chain: Chain, borders: Sequence[int], unit: int) -> tuple[int, ...]:
    """Return how far chunks come on a unit, limited by layers that it cannot run and by its memory."""
    found = [len(borders) - 1]
    for border in reversed(range(len(borders) - 1)):
        start, stop = borders[border], found[-1]
        if not chain.runs(start, borders[border + 1], unit):
            stop = border
        while stop > border and not chain.fits(start, borders[stop], unit):
            stop -= 1
        found.append(stop)
    return tuple(reversed(found))
