"""How much work there is for so many parts: prices of units, and what they prove about the largest load.

With a price w_u >= 0 for each unit every plan has

    period * (sum of the prices of the units in use) >= sum over the blocks of min over units of w_u * t_bu,

which is the dual of the linear relaxation that gives shares of blocks to units (scheduling on unrelated
machines; Lenstra, Shmoys and Tardos 1990). Units that are alike have one price.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from ..bit_sets import members
from ..blocks import Blocks
from .tables import LayerGraph

_ROUNDS, _SCALE = 60, 10_000
"""Rounds in which prices are improved; prices are whole numbers up to the second."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """The blocks of a graph, priced.

    Attributes
    ----------
    prices
        The price of each unit, the largest first.
    block
        The work of each block: its least priced time.
    """

    prices: tuple[int, ...]
    block: tuple[int, ...]

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """Work that parts on so many units do in a microsecond, at most: by number of units from 0."""
        return tuple(accumulate(self.prices, initial=0))

    @cached_property
    def total(self) -> int:
        """The work of all blocks."""
        return sum(self.block)

    def least_us(self, units: int) -> int:
        """Return a lower bound on the period of plans on so many units."""
        return -(-self.total // max(1, self.reach[units]))


def work_of(graph: LayerGraph) -> Work:
    """Return the work of the blocks at the prices that prove most, as far as some rounds find them."""
    kinds = graph.alike()
    counts = [len(kind) for kind in kinds]
    rows = [[row[kind[0]] for kind in kinds] for row in graph.block_us]
    prices = [1.0] * len(kinds)
    best_value, best = -1.0, [*prices]
    for turn in range(1, _ROUNDS + 1 if len(kinds) > 1 else 2):
        value, loads = 0.0, [0.0] * len(kinds)
        for row in rows:
            least, chosen = min(
                ((prices[kind] * time, kind) for kind, time in enumerate(row) if time is not None),
                default=(0.0, 0),
            )
            value += least
            loads[chosen] += row[chosen] or 0
        value /= sum(map(float.__mul__, prices, map(float, counts)))
        if value > best_value:
            best_value, best = value, [*prices]
        even = max(sum(loads) / sum(counts), 1e-9)
        prices = [
            price * (1 + (load / count / even - 1) / (2 + turn) ** 0.5 / 2)
            for price, load, count in zip(prices, loads, counts, strict=True)
        ]
        prices = [max(price / max(prices), 1e-4) for price in prices]
    whole = [max(1, round(_SCALE * price / max(best))) for price in best]
    by_unit = sorted(
        (price for price, count in zip(whole, counts, strict=True) for _ in range(count)), reverse=True
    )
    return Work(
        prices=tuple(by_unit),
        block=tuple(
            min((price * time for price, time in zip(whole, row, strict=True) if time is not None), default=0)
            for row in rows
        ),
    )


def part_windows(blocks: Blocks, work: Work, parts: int, period_us: int) -> list[tuple[int, int]]:
    """Return the first and the last of some parts that each block can be in, where no load is above a period.

    All that has to come before a block needs parts before it, or its own, and so does what comes after it.
    """
    before, after = [0] * blocks.count, [0] * blocks.count
    for block, ancestors in enumerate(blocks.ancestors):
        for ancestor in members(ancestors):
            before[block] += work.block[ancestor]
            after[ancestor] += work.block[block]

    def needed(amount: int) -> int:
        return bisect_left(work.reach, -(-amount // max(1, period_us)), lo=1, hi=parts)

    return [
        (needed(before[block] + own) - 1, parts - needed(after[block] + own))
        for block, own in enumerate(work.block)
    ]
