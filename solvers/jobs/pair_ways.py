"""The ways of the requests of a pair over blocks of layers, and what they pay while they run.

What two requests pay while they run, and how fast they are (`pair_bound.py`). A mode is where the two are:
the first on unit u, the second on v, or one of them alone. Prices of all others that keep to the condition of
`solvers/contention.py` leave 1 - sum of price x rate of each instant to the two. So a mode costs at least
`cost` while each progresses at most at its `rate`, whoever runs beside them.

The last unit is none: there a request passes a block in several chunks. It takes no unit, and is as fast as
on the best one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import inf

import numpy as np
from numpy.typing import NDArray

from ..contention import Company, Floats, Ints, Way
from .passages import Instance, Passages


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


_MOST_SETS = 30_000
"""Most sets of the others that are listed."""

_REFERENCES = 12
"""Sets of the others whose rates are tried for those of a mode."""

_HALVINGS = 8
"""How exactly prices of the others are lowered."""

_TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Costs and rates of two requests, by [who][own unit][unit of the other]; the last unit is none."""

    cost: Floats  # of a microsecond beside each other; infinite where they cannot be so
    rate: Floats  # progress of `who` in it
    alone: Floats  # what work costs at least while the other one waits, and in any company; by [who][unit]
    dearest: Floats  # what it costs at most

    @property
    def units(self) -> int:
        """Number of units, with the one that is none."""
        return int(self.alone.shape[1])


def lowered(instance: Instance, prices: Floats, core: tuple[int, int]) -> Floats:
    """Return prices at which the others pay the same, each as low as it may be.

    Where they do not go they need no price, and pay less for what the two leave idle.
    """
    found = prices.copy()
    for number, network in enumerate(instance.networks):
        if number in core:
            continue
        own = found[number]
        dearest = network.cheapest(own.tolist())
        for unit in np.argsort(-own):
            low, high = 0.0, float(own[unit])
            for _ in range(_HALVINGS):
                own[unit] = (low + high) / 2
                cheapest = network.cheapest(own.tolist())
                if dearest is None or cheapest is None or cheapest[0] < dearest[0] * (1 - 1e-6):
                    low = float(own[unit])
                else:
                    high = float(own[unit])
            own[unit] = high
    return found


def modes_of(
    instance: Instance, company: Company, prices: Floats, core: tuple[int, int], *, fluid: bool
) -> Modes | None:
    """Return what requests of two networks pay; None: there are too many sets of others.

    `prices`: of networks on units, shape (N, K), which keep to the condition of `solvers/contention.py`.
    `fluid`: whether the others run beside the two; else there are none.
    """
    others = _others(instance, core, fluid=fluid)
    if others is None:
        return None
    units, able, sets = instance.unit_count, instance.able, _Sets(company, prices, others)
    cost, rate = np.full((2, units + 1, units + 1), inf), np.ones((2, units + 1, units + 1))
    alone = np.full((2, units + 1), inf)
    for u in range(units):
        for who, network in enumerate(core):
            if able[network, u]:
                alone[who, u] = sets.alone(u, network)
        for v in range(units):
            if u != v and v not in instance.exclusive[u] and able[core[0], u] and able[core[1], v]:
                cost[0, u, v], rate[0, u, v], rate[1, v, u] = sets.together((u, v), core)
                cost[1, v, u] = cost[0, u, v]
    return _completed(cost, rate, alone)


def _others(instance: Instance, core: tuple[int, int], *, fluid: bool) -> Ints | None:
    """Return the sets of other requests: the network on each unit, -1 for none, shape (Q, K)."""
    counts = [fluid * (count - core.count(network)) for network, count in enumerate(instance.counts)]
    able = instance.able
    choices = [
        [-1, *(n for n, count in enumerate(counts) if count and able[n, unit])]
        for unit in range(instance.unit_count)
    ]
    if np.prod([len(own) for own in choices], dtype=np.float64) > _MOST_SETS:
        return None
    found: Ints = np.array(list(product(*choices)), dtype=np.int64)
    possible = np.ones(len(found), dtype=np.bool_)
    for network, count in enumerate(counts):
        possible &= (found == network).sum(axis=1) <= count
    for unit, excluded in enumerate(instance.exclusive):
        for other in excluded:
            possible &= (found[:, unit] < 0) | (found[:, other] < 0)
    chosen: Ints = found[possible]
    return chosen


@dataclass(frozen=True, slots=True)
class _Sets:
    company: Company
    prices: Floats
    others: Ints

    def alone(self, unit: int, network: int) -> float:
        """Return what a microsecond of work of a request costs at least while the other one does not run."""
        (rate,), left = self._rates((unit,), (network,))
        return float((left / rate).min())

    def together(self, units: tuple[int, int], core: tuple[int, int]) -> tuple[float, float, float]:
        """Return what a mode costs, and the rates of both in it.

        The rates are those beside one set of others; the cost is the least for the progress that any set
        allows of either. Any set will do; taken is that which makes the cost most for what is done.
        """
        rates, left = self._rates(units, core)
        worth = np.zeros(len(left))
        for unit, network, rate in zip(units, core, rates, strict=True):
            worth += self.prices[network, unit] * rate
        found = (-1.0, 0.0, 0.0, 0.0)
        for at in np.argsort(left / np.maximum(worth, _TINY))[:_REFERENCES]:
            pace = np.maximum(rates[0] / rates[0][at], rates[1] / rates[1][at])
            cost = float((left / pace).min())
            own, other = (float(rate[at]) for rate in rates)
            found = max(found, (cost / max(float(worth[at]), _TINY), cost, own, other))
        return found[1:]

    def _rates(self, units: tuple[int, ...], core: tuple[int, ...]) -> tuple[list[Floats], Floats]:
        """Return the rates of the two beside each set of others, and what is left for them to pay."""
        members = self.others[(self.others[:, list(units)] < 0).all(axis=1)]
        members[:, list(units)] = core
        rates, size = self.company.rates_of(members) / 1000, len(self.prices)
        paid = rates @ self.prices.T.ravel()
        own = [rates[:, unit * size + network] for unit, network in zip(units, core, strict=True)]
        for unit, network, rate in zip(units, core, own, strict=True):
            paid = paid - self.prices[network, unit] * rate
        return own, np.maximum(1 - paid, 0.0)


def _completed(cost: Floats, rate: Floats, alone: Floats) -> Modes:
    """Return the modes with those in which one or both are on no unit."""
    beside = np.isfinite(cost)
    swift = np.where(beside, rate / np.maximum(np.where(beside, cost, 1.0), _TINY), 0.0)  # by what is paid
    for who in (0, 1):
        most = swift[who].max(axis=1)
        alone[who] = np.minimum(alone[who], np.where(most > 0, 1 / np.maximum(most, _TINY), inf))
        alone[who, -1] = alone[who, :-1].min()
        rate[who, -1, :-1] = swift[who, :-1, :-1].max(axis=0)
        rate[who, :-1, -1] = most[:-1]
        rate[who, -1, -1] = most.max()
    rate = np.where(rate > 0, rate, 1.0)
    cost[:, -1, :] = cost[:, :, -1] = 1.0
    for who in (0, 1):
        gone = ~np.isfinite(alone[who])
        cost[who][gone] = cost[1 - who][:, gone] = inf
    there = np.isfinite(cost)
    dearest = np.where(there, np.where(there, cost, 0.0) / rate, 0.0).max(axis=2)
    dearest = np.maximum(dearest, np.where(np.isfinite(alone), alone, 0.0))
    return Modes(cost=cost, rate=rate, alone=alone, dearest=dearest)


@dataclass(frozen=True)
class ModeSets:
    """Modes as what a linear program of prices asks of those who run (`solvers.contention.Company`).

    A pair is (unit, who).
    """

    modes: Modes

    @cached_property
    def rates(self) -> Floats:
        """Progress in permille for what a microsecond costs at most, by mode; shape (Q, 2 K)."""
        found, modes = [], self.modes
        for who, unit in zip(*np.nonzero(np.isfinite(modes.alone)), strict=True):
            row = np.zeros((modes.units, 2))
            row[unit, who] = 1000 / max(modes.alone[who, unit], _TINY)
            found.append(row.ravel())
        for u, v in zip(*np.nonzero(np.isfinite(modes.cost[0])), strict=True):
            row = np.zeros((modes.units, 2))
            row[u, 0], row[v, 1] = modes.rate[0, u, v], modes.rate[1, v, u]
            found.append(1000 * row.ravel() / max(modes.cost[0, u, v], _TINY))
        return np.array(found)

    @property
    def able(self) -> NDArray[np.bool_]:
        """Whether each can be on a unit."""
        return np.isfinite(self.modes.alone).T.ravel()

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Whether each can run while the other one does not."""
        return self.able

    @property
    def rounding(self) -> Ints:
        """Nothing is rounded here: steps know what a play rounds."""
        return np.zeros((2 * self.modes.units, 2 * self.modes.units), dtype=np.int64)

    def best(self, prices: Floats, most: int) -> tuple[Floats, float]:
        """Return the modes that are worth most at some prices, and what the first one is worth."""
        worth = self.rates @ prices
        return self.rates[np.argsort(-worth)[:most]], float(worth.max())
