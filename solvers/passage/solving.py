"""From a problem to a claim: the best plans of one network whose units may have several chunks.

The problem is that of `chunking` without "every unit at most once": over all sequences of chunks, neighbours
on different units, minimise lexicographically terms of the loads

    L_u = sum over the chunks (i, j) of u of (times of the layers + copy in at i + copy out at j),

where units that take turns on one resource count as one: their loads are added up (`Table.pooled`).

1. `chunking.facts` draws from the rules what they forbid outright; `table` holds what is left by piece.
2. `prices` finds prices of the units that bound the period, and first plans.
3. `sweep` grows labels over the boundaries, few at first, then more: each sweep gives plans and a bound.
   Sweeps for the first term alone come first, because most labels can replace others there.
4. A sweep that loses nothing has the best plans, in canonical order.

Why it is exact: a label goes only where its bounds say that no plan from it is wanted, where enough others
before it lead to better plans, or where it is counted among the lost.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

import numpy as np

from ...formulations.chain import Part
from ...formulations.chunking.quantities import PlanValues, Quantity, Term
from ...formulations.chunking.tables import chain_of
from ...formulations.expr import BoolVar, Variable, variables
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ...formulations.terms import PlanNumbers
from ..chunking.facts import Facts, is_known
from ..chunking.ordering import Flags, Ints
from ..chunking.pool import Pool
from ..chunking.propagation import ArrayInterval, interval
from ..chunking.search import StopSearch
from ..chunking.verdicts import Verdicts, claim_of, nothing
from ..families import Start
from ..protocol import (
    Claim,
    Deadline,
    RuleHandling,
    SolveOptions,
    SolveStatus,
    Statistics,
    StopReason,
    Support,
)
from .baselines import OneUnitBackend
from .dominance import Dominance
from .outlook import Bounds, Outlook, Ranking, needs_of
from .prices import Paths, Pricing, price, price_set
from .sweep import Growth, Labels, Meeting, Setting, Sweep, path_rows
from .table import Table, build_table

# Annealing: a window of a chunk goes to another unit, which also moves borders, and merges chunks.
#
# The largest load counts, and a little the mean: it says that units get lighter before the largest load does.
# A move changes sums at two borders, so that it takes a few microseconds whatever the network.

_MEAN = 0.02
"""What the sum of the loads counts beside the largest one."""

_HOT, _COLD = 0.01, 0.0001
"""Temperatures at first and at last, in shares of the period."""

_LOOK_EVERY = 256
"""Moves between two looks at the time."""


class Annealing:
    """Searches near one plan after the other.

    Parameters
    ----------
    table, seed
        The arrays, and the seed of everything that is drawn.
    """

    def __init__(self, table: Table, seed: int) -> None:
        self._count, self._units = table.count, table.units
        self._draw = random.Random(seed)
        self._until = [list(accumulate(column, initial=0)) for column in table.time.T.tolist()]
        self._blocked = [
            list(accumulate(column, initial=0)) for column in (~table.able).T.astype(int).tolist()
        ]
        self._enter, self._leave = table.enter.tolist(), table.leave.tolist()
        self._shared = [units for units in table.chain.pools.values() if len(units) > 1]

    def near(self, start: Sequence[int], loads: Sequence[int], moves: int, deadline: Deadline) -> list[int]:
        """Return the plan with the shortest period that a number of moves from a plan comes across."""
        draw = self._draw.random
        units, now = list(start), list(loads)
        cost = self._cost(now)
        best, best_us = list(start), self._longest(now)
        heat = _HOT * best_us
        cooling = (_COLD / _HOT) ** (1 / max(moves, 1))
        for move in range(moves):
            heat *= cooling
            if move % _LOOK_EVERY == 0 and deadline.passed:
                break
            window = self._window(units, now)
            if window is None:
                continue
            begin, end, unit = window
            changed = self._moved(units, now, begin, end, unit)
            price = self._cost(changed)
            if price <= cost or draw() < math.exp((cost - price) / heat):
                units[begin:end] = [unit] * (end - begin)
                now, cost = changed, price
                longest = self._longest(now)
                if longest < best_us:
                    best, best_us = list(units), longest
        return best

    def _cost(self, loads: list[int]) -> float:
        return self._longest(loads) + _MEAN * sum(loads) / self._units

    def _longest(self, loads: list[int]) -> int:
        """Return the largest load of a resource: of a unit, or of several that take turns."""
        longest = max(loads)
        for units in self._shared:
            longest = max(longest, sum(loads[unit] for unit in units))
        return longest

    def _window(self, units: list[int], loads: list[int]) -> tuple[int, int, int] | None:
        """Draw pieces of one chunk, often of the busiest unit, and another unit that can run them."""
        draw = self._draw.random
        piece = int(draw() * self._count)
        if draw() < 0.5:
            busiest = loads.index(max(loads))
            for _ in range(8):
                if units[piece] == busiest:
                    break
                piece = int(draw() * self._count)
        own, begin, end = units[piece], piece, piece + 1
        size = int(-math.log(1.0 - draw()) * (2.0 if draw() < 0.7 else self._count / 8))
        while size > 0 and end < self._count and units[end] == own:
            end, size = end + 1, size - 1
        if draw() < 0.5:  # to one side, so that a border moves
            if begin and draw() < 0.5:
                while begin and units[begin - 1] == own and piece - begin < 3:
                    begin -= 1
                unit = units[begin - 1] if begin else own
            else:
                unit = units[end] if end < self._count else own
        else:
            unit = int(draw() * self._units)
        blocked = self._blocked[unit]
        return None if unit == own or blocked[end] > blocked[begin] else (begin, end, unit)

    def _moved(self, units: list[int], loads: list[int], begin: int, end: int, unit: int) -> list[int]:
        """Return the loads when pieces of one chunk go to another unit."""
        found, own = list(loads), units[begin]
        found[own] -= self._until[own][end] - self._until[own][begin]
        found[unit] += self._until[unit][end] - self._until[unit][begin]
        enter, leave = self._enter[begin], self._leave[begin]
        before = units[begin - 1] if begin else -1
        if before != own:
            found[own] -= enter[own]
            if before >= 0:
                found[before] -= leave[before]
        if before != unit:
            found[unit] += enter[unit]
            if before >= 0:
                found[before] += leave[before]
        enter, leave = self._enter[end], self._leave[end]
        after = units[end] if end < self._count else -1
        if after != own:
            found[own] -= leave[own]
            if after >= 0:
                found[after] -= enter[after]
        if after != unit:
            found[unit] += leave[unit]
            if after >= 0:
                found[after] += enter[after]
        return found


class RulePruner:
    """Which labels may still keep all rules."""

    def __init__(self, table: Table, facts: Facts) -> None:
        self.table, self.facts = table, facts

    def __call__(self, at: int, labels: Labels, bounds: Bounds) -> Flags | None:
        """Return the verdicts, one per label."""
        placed = _Placed(self, at, labels, bounds)
        keep = np.ones(len(labels), dtype=np.bool_)
        for part in self.facts.open:
            keep &= interval(part, placed)[1] >= 1
        return keep

    @cached_property
    def piece(self) -> Ints:
        """The piece of each layer."""
        cuts = self.table.cuts
        return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))

    @cached_property
    def boundary(self) -> dict[int, int]:
        """The boundary at each layer where there is one."""
        return {cut: place for place, cut in enumerate(self.table.cuts.tolist())}


class _Placed:
    """Intervals of the variables on labels."""

    def __init__(self, rules: RulePruner, at: int, labels: Labels, bounds: Bounds) -> None:
        self._rules, self._at, self._labels, self._bounds = rules, at, labels, bounds
        self._whole = bounds.lonely is not None

    def __call__(self, variable: Variable) -> ArrayInterval:
        known = self._rules.facts.value(variable.key)
        if known is not None:
            value = np.full(len(self._labels), known)
            return value, value
        high = 1 if isinstance(variable, BoolVar) else variable.high
        match variable.name:
            case Quantity.CUT:
                least, most = self._cut(variable.args[0])
            case Quantity.ON:
                least, most = self._on(*variable.args)
            case Quantity.USES | Quantity.BUSY | Quantity.MEMORY | Quantity.CHUNKS:
                least = self._of_unit(variable.name, variable.args[0])
                most = least if self._whole else np.full_like(least, high)
            case _:
                return self._of_plan(variable.name, high)
        return least, most

    def _cut(self, layer: int) -> ArrayInterval:
        place, path = self._rules.boundary.get(layer), self._labels.path
        if place is None:
            return self._constant(0), self._constant(0)
        if place >= self._at:
            return self._constant(0), self._constant(1)
        there = (path[place - 1] != path[place]).astype(np.int64)
        return there, there

    def _on(self, layer: int, unit: int) -> ArrayInterval:
        piece = int(self._rules.piece[layer])
        if piece >= self._at:
            return self._constant(0), self._constant(int(self._rules.table.able[piece, unit]))
        there = (self._labels.path[piece] == unit).astype(np.int64)
        return there, there

    def _of_unit(self, name: str, unit: int) -> Ints:
        state, path = self._labels.state, self._labels.path
        found: Ints
        match name:
            case Quantity.USES:
                found = (state.mask >> unit) & 1
            case Quantity.BUSY:
                leave = self._rules.table.leave[-1][unit] if self._whole else 0
                found = state.loads[unit] + np.where(self._labels.unit == unit, leave, 0)
            case Quantity.MEMORY:
                found = state.bytes[unit]
            case _:
                own = path == unit
                found = own[0] + (own[1:] & ~own[:-1]).sum(axis=0)
        return found

    def _of_plan(self, name: str, high: int) -> ArrayInterval:
        bounds = self._bounds
        gapness = paper = np.maximum(bounds.period - bounds.least, 0)
        if bounds.lonely is not None:
            gapness = np.where(bounds.lonely, bounds.period, paper)
        least = {
            Quantity.PERIOD: bounds.period,
            Quantity.GAPNESS: gapness,
            Quantity.PAPER_GAPNESS: paper,
            Quantity.LATENCY: bounds.latency,
            Quantity.BUBBLES: bounds.bubbles,
            Quantity.PEAK: bounds.memory,
            Quantity.ENERGY: bounds.energy,
            Quantity.UNITS: bounds.units,
            Quantity.HOPS: bounds.hops,
        }[Quantity(name)]
        if self._whole:
            return least, least
        most = self._constant(high)
        return least, np.minimum(bounds.most_latency, high) if name == Quantity.LATENCY else most

    def _constant(self, value: int) -> Ints:
        return np.full(len(self._labels), value, dtype=np.int64)


# Lists of plans by what requests wait, from lists by what they take at least.
#
# Of a plan that has begun searches know that no request is faster than its busy times; how long it waits only
# finished plans tell (`cycles.py`). So lists are by these lower bounds, and their plans are judged. A plan is
# among the best ones if nothing behind the list can be before it by its bound; otherwise a longer list is
# asked for.

WAITS = frozenset((Term.STREAM_LATENCY, Term.IN_FLIGHT))
"""Terms that only finished plans tell."""


def least_values(numbers: PlanNumbers, terms: Sequence[str]) -> tuple[int, ...]:
    """Return the terms of a plan as if no request waited."""
    assert isinstance(numbers, PlanValues)
    least = {
        Term.STREAM_LATENCY: numbers.latency_us,
        Term.IN_FLIGHT: -(-numbers.latency_us // numbers.period_us),
    }
    return tuple(least[Term(term)] if term in WAITS else numbers.term(term) for term in terms)


def judged_claim(
    pool: Pool,
    listed: Sequence[tuple[Part, ...]],
    frontier: tuple[int, ...] | None,
    stop: StopReason,
    *,
    verdicts: Verdicts,
    problem: Problem,
    options: SolveOptions,
    handling: Mapping[str, RuleHandling],
    statistics: Statistics,
) -> Claim:
    """Return what a pool of plans by their lower bounds allows to claim; parameters as for `claim_of`."""
    found, count = [], len(problem.ranking)
    # What no plan that was not judged is before, by its bound and so by its terms.
    limit = frontier
    if frontier is None and pool.full:
        limit = tuple(pool.ranks[:, -1].tolist())
    for place, parts in enumerate(listed):
        if verdicts.exhausted:
            stop, left = StopReason.REJECTION_LIMIT, tuple(pool.ranks[:, place].tolist())
            limit = left if limit is None else min(left, limit)
            break
        plan = verdicts.ask(parts)
        if plan is not None:
            numbers = problem.formulation.numbers(problem, parts)
            path = pool.ranks[count:, place].tolist()
            found.append(((*numbers.values(problem.ranking), *path), plan))
    found.sort(key=lambda entry: entry[0])
    before = [limit is None or key[: len(limit)] < limit or key == limit for key, _ in found]
    proven = min([*before, False].index(False), options.top)
    best = found[0][0] if found else None
    exhausted = limit is None and stop is StopReason.COMPLETE
    firsts = [key[0] for key in (best, limit) if key]
    chosen = found[: options.top]
    status = SolveStatus.OPTIMAL if proven else SolveStatus.FEASIBLE
    nothing = SolveStatus.INFEASIBLE if exhausted else SolveStatus.NO_SOLUTION
    return Claim(
        status=status if found else nothing,
        stop=stop,
        plans=tuple(plan for _, plan in chosen),
        values=None if best is None else best[: len(problem.objective.terms)],
        bound=None if limit == () else min(firsts, default=None),
        proven=proven,
        exhausted=exhausted and len(found) <= options.top,
        handling=dict(handling),
        statistics={**statistics, "rejected_plans": verdicts.rejected},
    )


_FIRST_WIDTH, _WIDER = 32, 4
_WIDEST = 300_000
"""Labels per boundary: at first, how many times more in the next sweep, and at most."""

_FIRST_MOVES, _MOVES = 4_000, 20
"""Moves of the annealing before the first sweep, and after each one by its labels per boundary."""

_FIRST_MEETING, _MEETING, _MOST_MEETING = 128, 8, 2048
"""Labels from each end: at first, by those of the sweep before, and at most."""

_LONG = 80
"""With more pieces plans from both ends come before the first sweep: it takes about as long."""

_ENUMERABLE = 3_000
"""Spaces of at most this number of plans are swept without a limit at once."""

_DONE = object()

_LISTABLE = 4_000_000
"""Of larger spaces the least first term is proved before there are lists."""

_ONLY_PERIOD = frozenset(
    ("max_period_us", "max_hops", "max_units", "max_memory_bytes", "max_unit_memory_bytes")
)
"""Filters that loads below the least period do not matter for."""

_TOTALS = frozenset((Term.PERIOD, Term.HOPS, Term.LATENCY, Term.STREAM_LATENCY, Term.UNITS))
"""Terms that know loads only by the largest one and by their sum."""

_LONGER = 4
"""How many times more plans are asked for when finished plans are turned down."""

_MONOTONE = frozenset(
    (
        Term.PERIOD,
        Term.LATENCY,
        Term.STREAM_LATENCY,
        Term.HOPS,
        Term.ENERGY,
        Term.UNITS,
        Term.PEAK_MEMORY,
    )
)
"""Terms that never get better with more load, hops or bytes."""

_TWO_SIDED = (
    "min_units",
    "min_balance_permille",
    "max_gapness_us",
    "min_utilisation_permille",
    "max_bubbles_us",
    "max_in_flight",
)
"""Filters that more load may pass and less may not."""


def solve_passage(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return the best plans of one network whose units may have several chunks (see `PassageSolve`)."""
    return PassageSolve(problem, options, support).run()


class PassageSolve:
    """One solve of one problem.

    Rules that are expressions steer the search. Opaque rules, and what is asked of waits in the stream, are
    for finished plans, in canonical order; when they turn down too many, the search is repeated for a longer
    list.
    """

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self.problem, self.options = problem, options
        self.deadline = Deadline(options.time_limit_s, options.clock)
        self.handling = support.handling(problem)
        rules = problem.expression_rules
        known = {rule.name for rule in rules if is_known(rule.expr)} - problem.opaque_demands
        self.rules = tuple(rule for rule in rules if rule.name in known)
        late = tuple(rule for rule in rules if rule.name not in known)
        self.verdicts = Verdicts(problem, late, options.max_rejections)
        self._waits = not WAITS.isdisjoint(problem.ranking)

    def run(self) -> Claim:
        """Solve."""
        chain = chain_of(self.problem)
        facts = Facts(chain, [rule.expr for rule in self.rules])
        if facts.contradictory:
            return nothing(self.handling)
        searches = []
        for table in build_table(chain, facts.restrictions).compatible():
            pricing = price(table, self.deadline)
            if pricing.paths:
                search = Search(self.problem, self.options, facts, table, self.deadline)
                search.price(pricing)
                searches.append(search)
        if not searches:
            return nothing(self.handling)
        wanted = self.options.top
        while (claim := self._attempt(searches, wanted)) is None:
            wanted *= _LONGER
        return claim

    def _attempt(self, searches: Sequence[Search], wanted: int) -> Claim | None:
        """Return a claim, or None when a longer list has to be checked."""
        pool = Pool(wanted, searches[0].rows)
        stop, left = StopReason.COMPLETE, list[tuple[Search, Iterator[None]]]()
        try:
            left += [(search, search.begin(pool)) for search in searches]
            while left:
                for search, sweeps in tuple(left):
                    try:
                        done = next(sweeps, _DONE) is _DONE
                    except StopSearch as stopped:
                        if stopped.reason is StopReason.TIME_LIMIT:
                            raise
                        done, stop = True, stopped.reason
                    if done:
                        left.remove((search, sweeps))
                    if not (self.problem.opaque_demands or self._waits):
                        self.options.publish(self._claim(searches, StopReason.TIME_LIMIT))
        except StopSearch as stopped:
            stop = stopped.reason
        claim = self._claim(searches, stop)
        if stop is not StopReason.COMPLETE or self.verdicts.exhausted or claim.exhausted:
            return claim
        enough = claim.proven if self._waits else len(claim.plans)
        if enough < self.options.top and self._waits and wanted > self.options.max_rejections:
            return replace(claim, stop=StopReason.SPACE_LIMIT)
        return claim if enough == self.options.top else None

    def _claim(self, searches: Sequence[Search], stop: StopReason) -> Claim:
        """Return what the plans found and the frontiers of the searches allow to claim."""
        claim = judged_claim if self._waits else claim_of
        return claim(
            searches[0].pool,
            searches[0].listed(),
            min((s.frontier for s in searches if s.frontier is not None), default=None),
            stop,
            verdicts=self.verdicts,
            problem=self.problem,
            options=self.options,
            handling=self.handling,
            statistics={
                "sweeps": sum(search.count for search in searches),
                "widest": max(search.widest for search in searches),
            },
        )


class Search:
    """Sweeps for one problem, and what they found.

    Attributes
    ----------
    pool
        The best plans so far.
    frontier
        What no other plan comes before, by its key or its first terms; None: there are none but worse ones.
    count, widest
        Sweeps, and the most labels per boundary of one of them.
    """

    def __init__(
        self, problem: Problem, options: SolveOptions, facts: Facts, table: Table, deadline: Deadline
    ) -> None:
        self._problem, self._options, self._facts, self.table = problem, options, facts, table
        self._deadline = deadline
        self.ranking = Ranking(
            terms=problem.ranking,
            limits=problem.limits,
            resources=len(table.chain.pools),
            device_memory=table.chain.device_memory,
        )
        self._spoken = frozenset(key[0] for part in facts.open for key in variables(part))
        self._memory = self._weighs()
        self._needs = needs_of(self.ranking, self._spoken, memory=self._memory)
        self._growth = Growth(table, memory=self._memory, paths=bool(facts.open))
        self._prune = RulePruner(table, facts) if facts.open else None
        self.count = self.widest = 0
        self._annealing, self._paths = Annealing(table, options.seed), Paths(table)
        self.frontier: tuple[int, ...] | None = ()

    def price(self, pricing: Pricing) -> None:
        """Bound periods by these prices, and those near them."""
        self._pricing = pricing
        powers = self.table.chain.powers if self._needs.energy else None
        self._outlook = Outlook(
            self.table,
            price_set(pricing, self.table),
            self._needs,
            best=np.array(pricing.best)[self.table.first] / self.table.scale,
            idle_mw=0 if powers is None else powers.idle_mw,
            extra_mw=(0,) * self.table.units if powers is None else powers.extra_mw,
        )

    @property
    def rows(self) -> int:
        """Rows of a pool: terms, and a number per piece."""
        return len(self.ranking.terms) + self.table.count

    def begin(self, pool: Pool) -> Iterator[None]:
        """Look for the plans that belong into a pool; return the sweeps (see `_sweeps`)."""
        self.pool = pool
        self.frontier = (max(self._outlook.root(self.ranking.terms[0]), self._options.at_least or 0),)
        for units in {tuple(path) for path in self._pricing.paths} | set(single_units(self.table)):
            self.offer(units)
        return self._sweeps()

    def offer(self, units: tuple[int, ...]) -> None:
        """Keep a plan if it is valid and wanted."""
        numbers, broken = examined(self._problem, self.table.parts_of(units))
        if not broken and self._keeps_facts(units):
            path = path_rows(np.array(units, dtype=np.int64)[:, None], self.table.units)
            terms = np.array(least_values(numbers, self.ranking.terms), dtype=np.int64)[:, None]
            self.pool.add(np.concatenate([terms, path]))

    def _sweeps(self) -> Iterator[None]:
        """Sweep with more and more labels until the best plans are proved to be in the pool."""
        space = self._problem.formulation.count(self._problem)
        if space > _LISTABLE:
            yield from self._first()
        width = _WIDEST if space <= _ENUMERABLE else max(_FIRST_WIDTH, self.widest // _WIDER)
        while True:
            sweep = self._sweep(self._setting(self.ranking, self.pool), width)
            worst = self.pool.worst
            if sweep.lost is None or (
                worst is not None and tuple(worst[: len(sweep.lost)].tolist()) < sweep.lost
            ):
                self.frontier = None
                return
            self.frontier = max(self.frontier or (), sweep.lost)
            yield
            width = self._wider(width)

    def _first(self) -> Iterator[None]:
        """Sweep for the least first term alone, until it is proved."""
        ranking = replace(self.ranking, terms=self.ranking.terms[:1])
        best, width = Pool(1, 1 + self.table.count), _FIRST_WIDTH
        meeting = None
        if ranking.terms[0] == Term.PERIOD:
            meeting = Meeting(self._outlook, ranking, self._pause)
            self._anneal(_FIRST_MOVES)
        self._keep_best(best)
        if meeting is not None and self.table.count > _LONG:
            self._meet(meeting, best, _FIRST_MEETING)
            yield
        while True:
            sweep = self._sweep(self._setting(ranking, best), width)
            if len(best):
                self.offer(tuple((best.ranks[1:, 0] % self.table.units).tolist()))
            least = min(int(best.ranks[0, 0]) if len(best) else sys.maxsize, *(sweep.lost or ()), sys.maxsize)
            if least < sys.maxsize:
                self.frontier = max(self.frontier or (), (least,))
            yield
            if sweep.lost is None or (len(best) and sweep.lost[0] >= best.ranks[0, 0]):
                return
            if meeting is not None:
                self._meet(meeting, best, min(_MEETING * width, _MOST_MEETING))
                self._anneal(_MOVES * width)
                self._keep_best(best)
                yield
            width = self._wider(width)

    def _meet(self, meeting: Meeting, best: Pool, width: int) -> None:
        """Look for plans from both ends that are better than the best one."""
        floor = (self.frontier or (0,))[0]
        for units in meeting.plans(best, floor, width):
            self.offer(units)
        self._keep_best(best)

    def _anneal(self, moves: int) -> None:
        """Search near the best plan."""
        if not len(self.pool) or self.table.must.any() or self.table.units == 1:
            return
        units = (self.pool.ranks[len(self.ranking.terms) :, 0] % self.table.units).tolist()
        if not self._keeps_facts(units):  # the best plan is one of other units
            units = min(self._pricing.paths, key=lambda path: max(self._paths.pooled(path)))
        self.offer(tuple(self._annealing.near(units, self._paths.loads(units), moves, self._deadline)))

    def _keep_best(self, best: Pool) -> None:
        """Let the best plan known be the one that has to be beaten."""
        if len(self.pool):
            path = self.pool.ranks[len(self.ranking.terms) :, :1]
            best.add(np.concatenate([self.pool.ranks[:1, :1], path]))

    def _sweep(self, setting: Setting, width: int) -> Sweep:
        sweep = Sweep(setting, width)
        self.count, self.widest = self.count + 1, max(self.widest, width)
        sweep.run()
        return sweep

    @staticmethod
    def _wider(width: int) -> int:
        if width >= _WIDEST:
            raise StopSearch(StopReason.MEMORY_LIMIT)
        return min(_WIDER * width, _WIDEST)

    def listed(self) -> list[tuple[Part, ...]]:
        """Return the plans of the pool, best first."""
        rows: Ints = self.pool.ranks[len(self.ranking.terms) :]
        return [self.table.parts_of(column) for column in (rows % self.table.units).T.tolist()]

    def _setting(self, ranking: Ranking, pool: Pool) -> Setting:
        """Return what sweeps share that look for plans of some terms."""
        limits = self._problem.limits.in_use()
        monotone = _MONOTONE.issuperset(ranking.terms) and not any(name in limits for name in _TWO_SIDED)
        alone = ranking is not self.ranking
        most = None if alone else self._most_period()
        self._outlook.cap(most)
        floor = (self.frontier or (0,))[0]
        clipped = monotone and ranking.terms[0] == Term.PERIOD and _ONLY_PERIOD.issuperset(limits)
        settled = clipped and not alone and most == floor and _TOTALS.issuperset(ranking.terms)
        clipped = clipped and alone
        return Setting(
            table=self.table,
            growth=self._growth,
            outlook=self._outlook,
            ranking=ranking,
            pool=pool,
            dominance=Dominance(
                enough=0 if self._prune else pool.size,
                monotone=monotone,
                sets=not monotone
                or bool(self.table.conflicts.any())
                or Term.UNITS in ranking.terms
                or "max_units" in limits,
                hops=not alone or Term.HOPS in ranking.terms or "max_hops" in limits,
                idle_below=self._outlook.idle_below(floor) if settled or clipped else None,
                by_unit=self._needs.energy,
                settled=settled,
            ),
            prune=self._prune,
            pause=self._pause,
            floor=floor,
            better=alone,
        )

    def _most_period(self) -> int | None:
        """Return what the periods of all plans that are wanted do not exceed, if that is known."""
        found = [self._problem.limits.max_period_us]
        if self.ranking.terms[0] == Term.PERIOD and self.pool.worst is not None:
            found.append(int(self.pool.worst[0]))
        return min((period for period in found if period is not None), default=None)

    def _pause(self) -> None:
        if self._deadline.passed:
            raise StopSearch(StopReason.TIME_LIMIT)

    def _weighs(self) -> bool:
        """Return whether bytes of plans matter: whether a capacity can be exceeded, or somebody asks."""
        chain, table = self.table.chain, self.table
        most = table.weights.copied + int(table.working.sum())
        asked = Term.PEAK_MEMORY in self.ranking.terms or bool(
            self._spoken & {Quantity.MEMORY, Quantity.PEAK}
        )
        tight = int(table.most_bytes.min()) < most
        return asked or tight or (chain.device_memory is not None and chain.device_memory < most)

    def _keeps_facts(self, units: Sequence[int]) -> bool:
        return bool(self.table.able[np.arange(self.table.count), list(units)].all())


def single_units(table: Table) -> Iterator[tuple[int, ...]]:
    """Yield the plans of a single chunk."""
    for unit in np.flatnonzero(table.able.all(axis=0) & ~table.must.any()).tolist():
        yield (unit,) * table.count


_SHARE = 0.1
"""Share of a time limit that the native search may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more: the best valid plan of a single chunk, then what `native` finds.

    The first takes no time, so that there is an answer even if the time is up before a solver is loaded.
    Without a limit the searches find better plans by themselves.
    """
    if options.time_limit_s is None:
        return
    rated = [(code, *examined(problem, code)) for code in OneUnitBackend().place(problem)]
    valid = [(numbers.values(problem.objective.terms), code) for code, numbers, broken in rated if not broken]
    known = min(valid)[1] if valid else None
    if known is not None:
        yield Start(code=known)
    from . import FAMILY  # which names this module

    support = FAMILY.support
    if support is None or support.missing(problem):
        return
    limited = SolveOptions(time_limit_s=_SHARE * options.time_limit_s, seed=options.seed)
    claim = solve_passage(problem, limited, support)
    code = problem.formulation.code(problem, claim.plans[0]) if claim.plans else known
    yield Start(code=known if code is None or examined(problem, code)[1] else code, at_least=claim.bound)
