"""Prices of the time of units, and what they prove.

For prices w on the simplex the period of a plan is at least the sum of w_u times its loads, so that the
cheapest path bounds all periods from below. The best prices are those of a small linear program whose columns
are paths (Dantzig and Wolfe 1960): each round adds the cheapest path at its prices. With K units and N pieces
a path costs O(N K).

Away from the best prices there are others that prove more about plans that have begun badly: those that weigh
one unit more or less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..contention import Simplex
from ..protocol import Deadline
from .table import Floats, Table

_ROUNDS = 40
_CLOSE = 1e-4
"""How near the bound of the prices comes to the largest one that prices can prove."""

_MIXED = 0.7
"""Share of the newest prices in those that are tried; the rest is the best ones so far: fewer rounds."""

_TILTS = (0.05, 0.15, 0.4, 1.0)
"""By how much other prices weigh one unit more, or less."""

_PARTS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Parts of the prices that the latency is tried with."""


class Paths:
    """The cheapest path at given prices: scalars, because rows of few units are too short for arrays."""

    def __init__(self, table: Table) -> None:
        self._time = np.where(table.able, table.time, np.inf).tolist()
        self._enter, self._leave = table.enter.tolist(), table.leave.tolist()
        self._must = table.must.tolist()
        self._units = range(table.units)
        self._first = table.first.tolist()

    def cheapest(self, prices: Sequence[float]) -> tuple[float, list[int]]:
        """Return the least cost of a plan and the unit of each piece; infinite and none without a plan.

        `prices`: of resources, by their first units.
        """
        prices = [prices[first] for first in self._first]
        enter, leave, last = self._enter, self._leave, len(self._time)
        ahead = [price * copy for price, copy in zip(prices, leave[last], strict=True)]
        onward: list[list[int]] = [[]] * last
        start = 0
        for at in range(last - 1, -1, -1):
            run = [
                w * t + rest if t < math.inf else math.inf
                for w, t, rest in zip(prices, self._time[at], ahead, strict=True)
            ]
            begun = [w * copy + cost for w, copy, cost in zip(prices, enter[at], run, strict=True)]
            least = min(begun)
            first = begun.index(least)
            if at == 0:
                start, ahead = first, begun
                break
            begun[first] = math.inf
            second = min(begun)
            other = begun.index(second)
            must, left, ahead, there = self._must[at], leave[at], [], []
            for unit in self._units:
                away, to = (second, other) if unit == first else (least, first)
                away += prices[unit] * left[unit]
                if must or away < run[unit]:
                    ahead.append(away)
                    there.append(to)
                else:
                    ahead.append(run[unit])
                    there.append(unit)
            onward[at] = there
        if ahead[start] == math.inf:
            return math.inf, []
        units = [start]
        for at in range(1, last):
            units.append(onward[at][units[-1]])
        return ahead[start], units

    def loads(self, units: Sequence[int]) -> list[int]:
        """Return the load of each unit."""
        found, before = [0] * len(self._units), -1
        for at, unit in enumerate(units):
            if unit != before:
                found[unit] += self._enter[at][unit]
                if before >= 0:
                    found[before] += self._leave[at][before]
            found[unit] += int(self._time[at][unit])
            before = unit
        found[before] += self._leave[len(units)][before]
        return found

    def pooled(self, units: Sequence[int]) -> list[int]:
        """Return the load of each resource, by its first unit."""
        found = [0] * len(self._units)
        for first, load in zip(self._first, self.loads(units), strict=True):
            found[first] += load
        return found


@dataclass(kw_only=True, eq=False)
class Pricing:
    """What the rounds of pricing found; prices are those of resources, by their first units.

    Attributes
    ----------
    best
        The prices that prove most, whole numbers that sum to the scale.
    tried
        Other prices, those that prove most first.
    paths
        Plans, by the unit of each piece; none: there is no plan.
    """

    best: list[int] = field(default_factory=list)
    tried: list[list[int]] = field(default_factory=list)
    paths: list[list[int]] = field(default_factory=list)


class _Master:
    """The linear program of the prices: the least period of a mixture of paths, and what loads are worth.

    Rows are the resources (period - load - slack = 0) and the sum of the mixture.
    """

    def __init__(self, loads: Sequence[int]) -> None:
        self._units, self._size = len(loads), float(max(*loads, 1))
        busiest = loads.index(max(loads))
        period = np.array([1.0] * self._units + [0.0])
        slacks = -np.eye(self._units + 1)[:, : self._units]
        basis = [period, self._column(loads), *(slacks[:, u] for u in range(self._units) if u != busiest)]
        right = np.zeros(self._units + 1)
        right[-1] = 1.0
        self._program = Simplex(np.array(basis).T, np.array([1.0] + [0.0] * self._units), right)
        self._program.add(slacks[:, busiest : busiest + 1], np.zeros(1))

    def add(self, loads: Sequence[int]) -> None:
        """Add a path."""
        self._program.add(self._column(loads)[:, None], np.zeros(1))

    def solve(self, deadline: Deadline) -> tuple[list[float], float]:
        """Return prices of the units, and the most that these paths leave prices to prove."""
        self._program.solve(deadline)
        prices = np.maximum(self._program.prices[: self._units], 0.0)
        prices = prices / prices.sum() if prices.any() else np.full(self._units, 1 / self._units)
        most = float(self._program.costs @ self._program.values) * self._size
        return prices.tolist(), most

    def _column(self, loads: Sequence[int]) -> Floats:
        return np.array([*(-load / self._size for load in loads), 1.0])


def price(table: Table, deadline: Deadline) -> Pricing:
    """Return prices that prove nearly as much about the period as prices can."""
    paths, scale = Paths(table), table.scale
    found, rounds, best = Pricing(), list[tuple[float, list[int]]](), 0.0
    master: _Master | None = None
    queries = [table.pools.diagonal().astype(float).tolist()]
    for _ in range(_ROUNDS):
        for query in queries:
            whole = _whole(query, scale)
            cost, units = paths.cheapest(whole)
            if not units:
                return Pricing()
            found.paths.append(units)
            rounds.append((cost, whole))
            if cost / scale > best or not found.best:
                best, found.best = cost / scale, whole
            loads = paths.pooled(units)
            if master is None:
                master = _Master(loads)
            else:
                master.add(loads)
        assert master is not None
        newest, most = master.solve(deadline)
        if most - best <= _CLOSE * most or deadline.passed:
            break
        mixed = [_MIXED * w + (1 - _MIXED) * b / scale for w, b in zip(newest, found.best, strict=True)]
        queries = [mixed, newest]
    found.tried = [whole for _, whole in sorted(rounds, reverse=True)]
    return found


def price_latency(pricing: Pricing, table: Table, periods: int) -> tuple[int, list[list[int]]]:
    """Return a bound on periods of plans whose latency is at most some periods, and plans that come of it.

    Such a period is at least the latency over that number, so the latency may have a part of the prices.
    """
    paths, least, found = Paths(table), 0.0, []
    for part in _PARTS:
        prices = [(1 - part) * price + part * table.scale / periods for price in pricing.best]
        cost, units = paths.cheapest(prices)
        if units:
            least = max(least, cost / table.scale)
            found.append(units)
    return math.ceil(least * (1 - 1e-12) - 1e-6), found


def price_set(pricing: Pricing, table: Table) -> Floats:
    """Return prices of units to bound unfinished plans by: the best ones, some near them, and tilted ones."""
    best = np.array(pricing.best, dtype=np.float64)
    rows = [best, *(np.array(whole, dtype=np.float64) for whole in pricing.tried[:4])]
    for unit in sorted(set(table.first.tolist())):
        only = np.zeros(table.units)
        only[unit] = table.scale
        for tilt in _TILTS:
            rows.append((1 - tilt) * best + tilt * only)
            less = best.copy()
            less[unit] *= 1 - tilt
            if less.any():
                rows.append(less * (table.scale / less.sum()))
    found = np.array(sorted({tuple(_whole(row, table.scale)) for row in rows}), dtype=np.float64)
    return found[:, table.first]


def _whole(prices: Sequence[float] | Floats, scale: int) -> list[int]:
    """Return prices as whole numbers of this sum."""
    found = [max(0, int(price * scale / sum(prices))) for price in prices]
    found[found.index(max(found))] += scale - sum(found)
    return found
