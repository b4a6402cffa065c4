"""What no plan is better than: the work that so many parts can hold in a time, messages included."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..bit_sets import members
from .prices import Work, work_of
from .separators import NEVER, Stretches, stretches_of
from .tables import LayerGraph

_MOST_STATES, _MOST_ENTRIES = 200, 40_000
"""Numbers of units in use by kind, at most, that are told apart; times the stretches of a graph."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartBounds:
    """Bounds on the parts of a graph."""

    graph: LayerGraph
    parts: int  # how many parts there are at most
    work: Work  # the work of its blocks
    stretches: Stretches | None
    """What divides it, and what that costs. None, where there are too many kinds of units: messages count
    nothing."""

    def ahead(self, period_us: int) -> tuple[int, ...]:
        """Return the most work of the first parts, by their number from 0, if no load is above a period."""
        return self._most_work(self.stretches, period_us)

    def behind(self, period_us: int) -> tuple[int, ...]:
        """Return the same of the last parts."""
        stretches = self.stretches
        return self._most_work(stretches and stretches.reversed(self.work.total), period_us)

    def _most_work(self, stretches: Stretches | None, period_us: int) -> tuple[int, ...]:
        """Return the most work of the first parts: a program over the numbers of units in use by kind."""
        work = self.work
        if stretches is None:
            return tuple(min(work.total, each * period_us) for each in work.reach[: self.parts + 1])
        level = {(0,) * len(work.prices): [0] + [NEVER] * (len(stretches.low) - 1)}
        most = [0]
        for _ in range(self.parts):
            following: dict[tuple[int, ...], list[int]] = {}
            for counts, done in level.items():
                for kind, price in enumerate(work.prices):
                    if counts[kind] < work.counts[kind]:
                        state = (*counts[:kind], counts[kind] + 1, *counts[kind + 1 :])
                        found = stretches.further(done, kind, price, period_us)
                        known = following.get(state)
                        following[state] = found if known is None else [*map(max, known, found)]
            level = following
            most.append(max(most[-1], *map(max, level.values())))
        return tuple(most)

    @cached_property
    def least_us(self) -> int:
        """A lower bound on the period."""
        total = self.work.total
        longest = [min(filter(None, row), default=0) for row in self.graph.block_us if 0 not in row]
        low = max(-(-total // max(1, self.work.reach[self.parts])), *longest, 0)
        high = low
        while self.ahead(high)[-1] < total:
            low, high = high + 1, 2 * high + 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.ahead(middle)[-1] >= total else (middle + 1, high)
        return low

    def windows(self, period_us: int) -> list[tuple[int, int]]:
        """Return the first and the last part that each block can be in, where no load is above a period.

        What has to come before a block needs parts before it, or its own, and so does what comes after it.
        """
        blocks, own = self.graph.blocks, self.work.block
        before, after = [*own], [*own]
        for block, ancestors in enumerate(blocks.ancestors):
            for ancestor in members(ancestors):
                before[block] += own[ancestor]
                after[ancestor] += own[block]
        ahead, behind = self.ahead(period_us), self.behind(period_us)
        return [
            (_needed(ahead, before[block]) - 1, self.parts - _needed(behind, after[block]))
            for block in range(blocks.count)
        ]


def bounds_of(graph: LayerGraph, parts: int) -> PartBounds:
    """Return the bounds of a graph in a given number of parts at most."""
    work = work_of(graph)
    states = prod(count + 1 for count in work.counts)
    stretches = stretches_of(graph, work, _MOST_ENTRIES // states) if states <= _MOST_STATES else None
    return PartBounds(graph=graph, parts=parts, work=work, stretches=stretches)


def _needed(most: Sequence[int], amount: int) -> int:
    """Return the least number of parts, 1 or more, that hold an amount of work."""
    return min(bisect_left(most, amount, lo=1), len(most) - 1)
