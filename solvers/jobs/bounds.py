"""Lower bounds on the terms of single requests, in exact integers. They hold for every valid plan.

Prices of units (`solvers.contention`): a bound on the makespan that holds for all start times and orders, so
also where chunks start as early as they can, and for passages that are restricted.

Prices over windows: on a unit, chunks that cannot begin before h and have q behind them take at most
makespan - h - q together (`Reach.windows`). Whatever non-negative prices these windows have that add up to 1,

    makespan >= sum of price (h + q) + sum over requests of their cheapest way at d x prices of its windows.

Multiplicative updates find good prices: windows that are fuller than others at the cheapest ways get dearer.

Branch and price: the linear program behind the bound by prices takes shares of several passages for one
request. So a section of a request is decided both ways: it is passed on a unit, or not on it; the lower of
both bounds holds for all plans. What costs most and is mixed most is decided first, the part with the least
bound is split first, and programs begin with the sets and passages of the part that they come from. Requests
of one network are alike for this bound, which knows no releases: where any of them passes a section on a
unit, it may be the first of them. So the halves are "this one does" and "none of those like it does".
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from ...formulations.jobs.reach import Reach
from ...formulations.jobs.tables import JobTables, Option, tables_of
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ..contention import PRICE_SCALE, Floats, Ints, Priced, Program, Way, are_few
from ..protocol import NEVER, Deadline
from .passages import Instance, Passage, Passages, instance_of

_SCALE = 1 << 20
"""Prices are integers that add up to this."""

_ROUNDS, _FIRST_STEP, _DECAY = 300, 1.5, 0.98
"""Updates of the prices; exponent of the first one, and by how much it shrinks."""

_MOST_SECTIONS = 24
"""Networks of more sections have too many chunks for windows."""

_PASSES = 2
"""How often windows are taken anew: a better bound admits more of them."""

_MIXED = 1e-3
"""What is decided is mixed by more than this share."""

_MOST_PARTS = 2_000
"""Parts that are kept at most."""


def bound_of(problem: Problem, deadline: Deadline = NEVER) -> int:
    """Return a lower bound on the first term of the objective; 0 if there is no plan at all.

    Behind the deadline it is not improved any more.
    """
    tables = tables_of(problem)
    first = problem.objective.terms[0]
    if first == Term.MAKESPAN:
        priced = price_bound(instance_of(tables, range(tables.unit_count)), deadline)
        return 0 if priced is None else max(priced.bound_us, windows_bound(tables, deadline))
    reach = Reach(tables=tables)
    if reach.head_us is None:
        return 0
    if first == Term.WORK:
        return sum(_least_work_us(reach, request) for request in range(tables.request_count))
    found = 0
    for request, due_us, heads in zip(tables.jobs.requests, tables.due_us, reach.head_us, strict=True):
        late_us = 0 if due_us is None else max(0, heads[-1] - due_us)
        amounts = {Term.LATE: int(late_us > 0), Term.LATENESS: late_us}
        found += request.weight * amounts.get(Term(first), heads[-1] - request.release_us)
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
    kinds = list(map(_Free, instance.networks, instance.counts))
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


def shares_of(
    problem: Problem, deadline: Deadline = NEVER
) -> tuple[int, dict[str, dict[Passage, float]]] | None:
    """Return the bound of a problem, and by network which share of its requests takes each passage in it.

    None: some network cannot run.
    """
    tables = tables_of(problem)
    found = price_bound(instance_of(tables, range(tables.unit_count)), deadline)
    if found is None:
        return None
    shares = {
        chain.network: dict(zip(passages, own.tolist(), strict=True))
        for chain, passages, own in zip(tables.chains, found.passages, found.shares, strict=True)
    }
    return found.bound_us, shares


@dataclass(frozen=True, slots=True)
class _Free:
    """Requests of a network, each with any passage."""

    network: Passages
    count: int

    def cheapest(self, prices: Ints, discounts: Ints) -> tuple[int, Way]:
        """Return what a request pays at least, and for which passage; there is one."""
        found = self.network.cheapest(prices.tolist(), discounts.tolist())
        assert found is not None
        return int(found[0]), found[1]

    def times_us(self, way: Way) -> Ints:
        """Return the time of a passage on each unit."""
        return np.array(self.network.times_us(way), dtype=np.int64)

    def allows(self, way: Way) -> bool:
        """Return whether each unit can run its chunks."""
        return bool(way) and self.network.allows(way)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of all plans: which passages each request may take, and what their program found."""

    passages: tuple[Passages, ...]
    program: Priced


class PassageTree:
    """The bound of all plans, by parts of them.

    `bound_us`: a bound that is known; it rises in `improve`. `programs`: how many were solved.
    """

    def __init__(self, instance: Instance, bound_us: int) -> None:
        self.bound_us, self.programs = bound_us, 0
        who = instance.network_of
        losses = instance.losses
        if losses is not None:
            layer_us = tuple(losses.layer_us[number] for number in who) if losses.layer_us else ()
            losses = replace(losses, networks=tuple(losses.networks[n] for n in who), layer_us=layer_us)
        self._instance = replace(
            instance,
            networks=tuple(instance.networks[number] for number in who),
            network_of=tuple(range(len(who))),
            borders=tuple(instance.borders[number] for number in who),
            losses=losses,
        )
        self._alike = who
        self._company = self._instance.company()
        self._apart = np.zeros((len(self._company.losses) + 1,) * 2, dtype=np.bool_)
        self._open: list[tuple[int, int, _Part]] = []

    @staticmethod
    def applies(instance: Instance) -> bool:
        """Return whether the sets of requests that run together are few enough to be listed."""
        return are_few(len(instance.network_of), instance.unit_count)

    def improve(self, best_us: int, deadline: Deadline, most: int | None = None) -> None:
        """Split parts that may hold a plan below `best_us` until the deadline, or until nothing is mixed.

        `most`: after this number of linear programs it ends, too.
        """
        if not self.programs:
            self._add(self._instance.networks, None, 0, best_us, deadline)
        while not deadline.passed and len(self._open) < _MOST_PARTS:
            self.bound_us = max(self.bound_us, min(best_us, self._open[0][0] if self._open else best_us))
            if self.bound_us >= best_us or (most is not None and self.programs >= most):
                return
            least_us, _, part = self._open[0]
            halves = self._halves(part)
            if halves is None:
                return
            heapq.heappop(self._open)
            for passages in halves:
                self._add(passages, part, least_us, best_us, deadline)

    def _add(
        self,
        passages: tuple[Passages, ...],
        known: _Part | None,
        least_us: int,
        best_us: int,
        deadline: Deadline,
    ) -> None:
        """Bound a part, and keep it if it may hold a better plan."""
        if any(own.alone is None for own in passages):
            return
        able = replace(self._instance, networks=passages).able
        company = self._company.within(able, self._apart)
        program = Program(company, [_Free(own, 1) for own in passages], self._instance.unit_count)
        if known is not None:
            program.recall(known.program.sets, known.program.ways)
        program.improve(deadline)
        self.programs += 1
        found = program.result()
        bound_us = max(least_us, -(-found.total // PRICE_SCALE))
        if bound_us < best_us:
            heapq.heappush(self._open, (bound_us, self.programs, _Part(passages, found)))

    def _halves(self, part: _Part) -> tuple[tuple[Passages, ...], tuple[Passages, ...]] | None:
        """Return the passages of both halves of a part; None: nothing is mixed in it."""
        most, chosen = 0.0, None
        for request, (own, ways, shares) in enumerate(
            zip(part.passages, part.program.ways, part.program.shares, strict=True)
        ):
            on = np.zeros((own.unit_count, own.size))
            for way, share in zip(ways, shares.tolist(), strict=True):
                for start, stop, unit in way:
                    on[unit, start:stop] += share
            mixed = np.minimum(on, 1 - on)
            until, since = np.array(own.until), np.array(own.since)
            worth = np.where(mixed > _MIXED, mixed * (until[:, 1:] - since[:, :-1]), 0.0)
            unit, section = np.unravel_index(worth.argmax(), worth.shape)
            if worth[unit, section] > most:
                most, chosen = float(worth[unit, section]), (request, section, unit)
        if chosen is None:
            return None
        request, section, unit = chosen
        own = part.passages[request]
        with_it, without = list(part.passages), list(part.passages)
        with_it[request] = own.without(int(section), [u for u in range(own.unit_count) if u != unit])
        for other, passages in enumerate(part.passages):
            if self._alike[other] == self._alike[request] and passages == own:
                without[other] = own.without(int(section), [int(unit)])
        return tuple(with_it), tuple(without)


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
