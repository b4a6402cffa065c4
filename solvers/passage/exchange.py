"""What a cap on the period says about everything else: time of units exchanged for hops, latency and balance.

Where no load may exceed C, the loads L of a plan keep w L <= C for all prices w. So for a quantity
f L + h (hops) and any rate of exchange m >= 0

    f L + h (hops)  >=  min over all plans of ((f + m w) L + h (hops))  -  m C,

which completions at the rates f + m w know for plans that have begun. Few hops, for instance, are not enough
for a short period; a unit that is slow at everything cannot get as much load as the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..chunking.ordering import Ints
from .completions import completions
from .table import Floats, Table

_EXPONENTS = np.arange(-3, 9)
"""Rates of exchange that are tried are powers of two of the quantity itself."""

_KEPT = 3
"""Rates that are kept for each quantity: those that prove most of whole plans."""

_SAFE, _SAFE_SHARE = 1e-6, 1e-12
"""What floating point may be off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A quantity f L + h (hops) that is bounded from below."""

    loads: tuple[float, ...]
    hop: float = 0.0


class Exchange:
    """Bounds on quantities of plans whose periods are capped.

    Parameters
    ----------
    table, prices
        The arrays, and prices that sum to 1.
    quantities
        What is bounded.
    """

    def __init__(self, table: Table, prices: Floats, quantities: Sequence[Quantity]) -> None:
        own, rates, hop, exchange = [], [], [], []
        # A period's worth of hops is as good a guess as any of what a hop is worth; that of a load is itself.
        long = max(1.0, float(table.time.sum(axis=0).min()))
        for place, quantity in enumerate(quantities):
            scale = max(map(abs, quantity.loads)) or 4.0 / long
            for rate in (scale * 2.0**_EXPONENTS).tolist():
                own.append(place)
                rates.append(np.array(quantity.loads) + rate * prices)
                hop.append(quantity.hop)
                exchange.append(rate)
        self._count, self._own = len(quantities), np.array(own)
        self._rates, self._hop, self._exchange = np.array(rates), np.array(hop), np.array(exchange)
        self._ahead = completions(table, self._rates, hop=self._hop)
        self._kept = np.arange(len(own))
        self._cap = 0

    def cap(self, period: int) -> None:
        """Bound plans of at most this period."""
        if period == self._cap:
            return
        proved = self._ahead[0].min(axis=1) - self._exchange * period
        best = [np.flatnonzero(self._own == place) for place in range(self._count)]
        self._kept = np.concatenate([rows[np.argsort(-proved[rows])[:_KEPT]] for rows in best])
        self._cap = period

    def least(self, at: int, unit: Ints, loads: Ints, hops: Ints) -> Ints:
        """Return lower bounds on the quantities of plans whose pieces up to a boundary are placed, by row."""
        rows = self._kept
        worth = self._rates[rows] @ loads + self._hop[rows, None] * hops
        worth += self._ahead[at][rows].take(unit, axis=1) - (self._exchange[rows] * self._cap)[:, None]
        most = worth.reshape(self._count, -1, len(unit)).max(axis=1)
        found: Ints = np.ceil(most - _SAFE - _SAFE_SHARE * np.abs(most)).astype(np.int64)
        return found
