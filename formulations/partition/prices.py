"""The work of blocks: prices of units, and what they prove about the largest load.

With a price w_u >= 0 for each unit every plan has

    period * (sum of the prices of the units in use) >= sum over the blocks of min over units of w_u * t_bu,

which is the dual of the linear relaxation that gives shares of blocks to units (scheduling on unrelated
machines; Lenstra, Shmoys and Tardos 1990). Units that are alike have one price.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from .tables import LayerGraph

_ROUNDS, _SCALE = 60, 10_000
"""Rounds in which prices are improved; prices are whole numbers up to the second."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """The blocks of a graph, priced.

    `prices`, `counts`: the price of each kind of units, and how many of them there are.
    """

    prices: tuple[int, ...]
    counts: tuple[int, ...]
    block: tuple[int, ...]  # the work of each block: its least priced time

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """Work that parts on so many units do in a microsecond, at most: by number of units from 0."""
        kinds = zip(self.prices, self.counts, strict=True)
        by_unit = sorted((price for price, count in kinds for _ in range(count)), reverse=True)
        return tuple(accumulate(by_unit, initial=0))

    @cached_property
    def total(self) -> int:
        """The work of all blocks."""
        return sum(self.block)


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
    return Work(
        prices=tuple(whole),
        counts=tuple(counts),
        block=tuple(
            min((price * time for price, time in zip(whole, row, strict=True) if time is not None), default=0)
            for row in rows
        ),
    )
