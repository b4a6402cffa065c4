"""The passages of a network over the units: chunks in a row, each on any unit that can run it.

Borders are counted: 0, ..., m; a chunk [i, j) on unit u takes `until[u][j] - since[u][i]`, copies included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TypeVar

from ...formulations.chain import Chain

Part = tuple[int, int, int]
"""A chunk: first border, last border, unit."""

Passage = tuple[Part, ...]
"""The chunks of a request, in order."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Passages:
    """Times of the chunks of one network, and the cheapest passage at some prices."""

    until: tuple[tuple[int, ...], ...]  # by [unit][border]
    since: tuple[tuple[int, ...], ...]  # by [unit][border]
    reach: tuple[tuple[int, ...], ...]
    """The last border that a chunk can reach from a border on a unit, by [unit][border]; the border itself:
    it cannot start there."""

    @staticmethod
    def of(chain: Chain, borders: Sequence[int]) -> Passages:
        """Return the passages of a network that is cut at some of its layers: 0, ..., n."""
        until, since, reach = [], [], []
        for unit, prefix in enumerate(chain.prefix_us):
            until.append(tuple(prefix[at] + chain.transfer_out_us[at][unit] for at in borders))
            since.append(tuple(prefix[at] - chain.transfer_in_us[at][unit] for at in borders))
            reach.append(_reach(chain, borders, unit))
        return Passages(tuple(until), tuple(since), tuple(reach))

    @property
    def size(self) -> int:
        """Number of sections between borders."""
        return len(self.until[0]) - 1

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

    def cheapest(
        self, prices: Sequence[Number], discounts: Sequence[Number] | None = None
    ) -> tuple[Number, Passage] | None:
        """Return the least sum of time x price less the discount of each chunk, and its passage.

        None: no passage is possible. Chunks are as long as they like to be: what the memory of a unit
        forbids counts only for single sections, so the sum may be too small, never too large.
        """
        least: list[Number | float] = [0] + [inf] * self.size
        last: list[tuple[int, int]] = [(0, 0)] * (self.size + 1)
        units = []
        for unit, price in enumerate(prices):
            less = 0 if discounts is None else discounts[unit]
            begin = [-price * time - less for time in self.since[unit]]
            end = [price * time for time in self.until[unit]]
            units.append((unit, begin, end, self.reach[unit]))
        runs: list[Number | float] = [inf] * self.unit_count
        starts = [0] * self.unit_count
        for border in range(self.size):
            stop, before, best = border + 1, least[border], inf
            for unit, begin, end, reach in units:
                if reach[border] == border:
                    runs[unit] = inf
                    continue
                started = before + begin[border]
                if started < runs[unit]:
                    runs[unit], starts[unit] = started, border
                total = runs[unit] + end[stop]
                if total < best:
                    best, last[stop] = total, (starts[unit], unit)
            least[stop] = best
        if least[-1] == inf:
            return None
        found: list[Part] = []
        border = self.size
        while border:
            start, unit = last[border]
            found.append((start, border, unit))
            border = start
        return least[-1], tuple(reversed(found))  # type: ignore[return-value]  # finite


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
