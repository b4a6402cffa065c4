"""Lower bounds on the terms of single requests, in exact integers. They hold for every valid plan.

Prices of units (`solvers.contention`): a bound on the makespan that holds for all start times and orders, so
also where chunks start as early as they can, and for passages that are restricted.

Prices over windows: on a unit, chunks that cannot begin before h and have q behind them take at most
makespan - h - q together (`Reach.windows`). Whatever non-negative prices these windows have that add up to 1,

    makespan >= sum of price (h + q) + sum over requests of their cheapest way at d x prices of its windows.

Multiplicative updates find good prices: windows that are fuller than others at the cheapest ways get dearer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from ...formulations.jobs.quantities import JobTerm
from ...formulations.jobs.reach import Reach
from ...formulations.jobs.tables import JobTables, Option, tables_of
from ...formulations.problem import Problem
from ..company import Ints
from ..contention import PRICE_SCALE, Program, Way
from ..protocol import NEVER, Deadline
from ..simplex import Floats
from .instance import Instance, instance_of
from .passages import Passage, Passages

_SCALE = 1 << 20
"""Prices are integers that add up to this."""

_ROUNDS, _FIRST_STEP, _DECAY = 300, 1.5, 0.98
"""Updates of the prices; exponent of the first one, and by how much it shrinks."""

_MOST_SECTIONS = 24
"""Networks of more sections have too many chunks for windows."""

_PASSES = 2
"""How often windows are taken anew: a better bound admits more of them."""


def bound_of(problem: Problem, deadline: Deadline = NEVER) -> int:
    """Return a lower bound on the first term of the objective; 0 if there is no plan at all.

    Behind the deadline it is not improved any more.
    """
    tables = tables_of(problem)
    first = problem.objective.terms[0]
    if first == JobTerm.MAKESPAN:
        priced = price_bound(instance_of(tables, range(tables.unit_count)), deadline)
        return 0 if priced is None else max(priced.bound_us, windows_bound(tables, deadline))
    reach = Reach(tables=tables)
    if reach.head_us is None:
        return 0
    if first == JobTerm.WORK:
        return sum(_least_work_us(reach, request) for request in range(tables.request_count))
    found = 0
    for request, due_us, heads in zip(tables.jobs.requests, tables.due_us, reach.head_us, strict=True):
        late_us = 0 if due_us is None else max(0, heads[-1] - due_us)
        amounts = {JobTerm.LATE: int(late_us > 0), JobTerm.LATENESS: late_us}
        found += request.weight * amounts.get(JobTerm(first), heads[-1] - request.release_us)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBound:
    """A lower bound, and what it says about good plans."""

    bound_us: int
    prices: Floats  # what a microsecond of a network on a unit costs the whole, at most 1; shape (N, K)
    passages: tuple[tuple[Passage, ...], ...]  # those that were looked at, by network
    shares: tuple[Floats, ...]  # which share of the requests of a network takes each of them


def price_bound(instance: Instance, deadline: Deadline = NEVER) -> PriceBound | None:
    """Return the bound with the best prices that are found in time; None: some network cannot run."""
    kinds = [_Free(network, count) for network, count in zip(instance.networks, instance.counts, strict=True)]
    if any(kind.network.alone is None for kind in kinds):
        return None
    program = Program(instance.company(), kinds, instance.unit_count)
    program.improve(deadline)
    found = program.result()
    return PriceBound(
        bound_us=max(instance.longest_us, -(-found.total // PRICE_SCALE)),
        prices=found.prices / PRICE_SCALE,
        passages=found.ways,
        shares=found.shares,
    )


@dataclass(frozen=True, slots=True)
class _Free:
    """Requests of a network, each with any passage."""

    network: Passages
    count: int

    def cheapest(self, prices: Ints, discounts: Ints) -> tuple[int, Way]:
        found = self.network.cheapest(prices.tolist(), discounts.tolist())
        assert found is not None
        return int(found[0]), found[1]

    def times_us(self, way: Way) -> Ints:
        return np.array(self.network.times_us(way), dtype=np.int64)

    def allows(self, way: Way) -> bool:
        return bool(way)


def windows_bound(tables: JobTables, deadline: Deadline = NEVER) -> int:
    """Return a lower bound on the makespan: the longest request alone, and prices over windows.

    0 where networks have too many chunks for that.
    """
    reach = Reach(tables=tables)
    if max(map(len, tables.sections)) > _MOST_SECTIONS or reach.head_us is None:
        return 0
    least_us = reach.longest_us
    for _ in range(_PASSES):
        if not deadline.passed:
            least_us = max(least_us, _Prices(reach, least_us, deadline).best_us(deadline))
    return least_us


def _least_work_us(reach: Reach, request: int) -> int:
    count = reach.tables.section_count(request)
    least = [0] + [reach.tables.horizon_us] * count
    for option in reach.of(request):  # in the order of their starts
        least[option.stop] = min(least[option.stop], least[option.start] + option.time_us)
    return least[count]


@dataclass(frozen=True, slots=True)
class _Kind:
    """Requests that have the same chunks in the same windows: how many, of how many sections, and where.

    `first` is where their chunks begin among those of all kinds.
    """

    count: int
    sections: int
    first: int
    options: tuple[Option, ...]


class _Prices:
    """Looks for the prices with the largest bound."""

    def __init__(self, reach: Reach, least_us: int, deadline: Deadline) -> None:
        heads, tails, chain_of = reach.head_us, reach.tail_us, reach.tables.chain_of
        assert heads is not None
        counts = Counter((chain_of[r], heads[r], tails[r]) for r in range(len(chain_of)))
        stands_for = {(chain_of[r], heads[r], tails[r]): r for r in range(len(chain_of))}
        self._kinds: list[_Kind] = []
        columns: dict[tuple[int, Option], int] = {}
        for key, request in stands_for.items():
            own = reach.of(request)
            self._kinds.append(_Kind(counts[key], reach.tables.section_count(request), len(columns), own))
            for option in own:
                columns[request, option] = len(columns)
        units = reach.windows(stands_for.values(), least_us, enough=lambda: deadline.passed)
        windows = [window for unit in units for window in unit]
        self._around: Ints = np.array([around for around, _ in windows], dtype=np.int64)
        self._works: Ints = np.zeros((len(windows), len(columns)), dtype=np.int64)
        for row, (_, inside) in enumerate(windows):
            for request, option in inside:
                self._works[row, columns[request, option]] = option.time_us

    def best_us(self, deadline: Deadline) -> int:
        """Return the largest bound found until the deadline."""
        best, step = 0, _FIRST_STEP
        if not len(self._around):
            return 0
        weights = np.full(len(self._around), 1.0 / len(self._around))
        mean = np.zeros(len(self._around))
        for _ in range(_ROUNDS):
            if deadline.passed:
                break
            prices: Ints = np.floor(weights * _SCALE).astype(np.int64)
            prices[int(np.argmax(prices))] += _SCALE - int(prices.sum())
            paid, chosen = self._cheapest(prices)
            best = max(best, paid)
            loads = self._around + self._works @ chosen
            mean = 0.6 * mean + 0.4 * loads if mean.any() else loads.astype(float)
            weights = weights * np.exp(step * (mean / mean.max() - 1.0))
            weights = np.maximum(weights / weights.sum(), 1e-7)
            weights /= weights.sum()
            step = max(step * _DECAY, 0.05)
        return -(-best // _SCALE)

    def _cheapest(self, prices: Ints) -> tuple[int, Ints]:
        """Return what all pay at some prices, and how often each chunk is chosen."""
        costs: list[int] = (prices @ self._works).tolist()
        chosen = np.zeros(len(costs), dtype=np.int64)
        paid = int(prices @ self._around)
        for kind in self._kinds:
            least: list[int | None] = [0] + [None] * kind.sections
            last = [0] * (kind.sections + 1)
            for place, option in enumerate(kind.options):
                begin = least[option.start]
                if begin is not None:
                    cost = begin + costs[kind.first + place]
                    known = least[option.stop]
                    if known is None or cost < known:
                        least[option.stop], last[option.stop] = cost, place
            border, total = kind.sections, least[kind.sections]
            assert total is not None
            paid += kind.count * total
            while border:
                chosen[kind.first + last[border]] += kind.count
                border = kind.options[last[border]].start
        return paid, chosen
