"""From a problem to a claim: exact lists of the best plans of one network, in canonical order.

The problem is BetterTogether's (section III-D): consecutive layers on one unit each, every unit
at most once; with C(u, i, j) the busy time of the layers [i, j) on unit u,

    minimise lexicographically the terms over
    { (u_1, 0, j_1), (u_2, j_1, j_2), ..., (u_k, j_{k-1}, n) : the u are distinct }.

A prefix of a plan is characterised, for all that can follow, by the set of used units and the
boundary reached. That is a layered graph; here is how its best walks are found:

1. `facts` draws from the rules what they forbid outright; `tables` lists the chunks that fit a
   window of busy times, `lattice` the sets of used units.
2. `widening` bounds the first term and widens the bound until the best plans must be inside; on
   plateaus it settles the value and goes on with the next term; `facts` turns bounds on plans
   into windows of chunks.
3. `graph` builds the states and chunks of a window that lie on a walk, and completion tables.
4. `search` makes all walks if they are few, and else dives, tightens and searches best first.

Why it is exact: a box holds every plan up to its cap; the graph of a box holds every plan of the
box (only what provably lies on no such plan is left out); every key bound is at most the key of
every completion; and the path, the last part of the key, orders plans as the canonical order
does. So what best-first search leaves unexpanded, and what lies beyond the cap, comes after the
plans that are returned.

The worst case is exponential in the number of units, O(2^units x units x chunks in the window)
for each table; the number of prefixes expanded is about (plans wanted) x (units) when the tables
are exact, which they are for the period followed by gapness, latency, memory, idle time or
bubbles without rules that couple chunks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...formulations.chunking.space import whole_parts
from ...formulations.chunking.tables import chain_of
from ...formulations.costs import CostTable
from ...formulations.judge import examined
from ...formulations.parts import Part
from ...formulations.problem import Problem
from ...formulations.validation import MAX_COUNT
from ..families import Solve, Start, best_start
from ..protocol import Claim, Deadline, SolveOptions, StopReason, Support
from .facts import Facts, is_known
from .instance import Instance, build_instance
from .propagation import RulePruner
from .ranking import Pool
from .search import Setting, StopSearch
from .verdicts import Verdicts, claim_of, nothing
from .widening import Widening

_OPEN_BYTES = 400_000_000
_PUBLISH_S = 0.1
_LONGER = 4
"""How many times more plans are asked for when finished plans are turned down."""


def solve_chunking(problem: Problem, options: SolveOptions, support: Support) -> Claim:
    """Return the best plans of one network (see `ChainSolve`)."""
    return ChainSolve(problem, options, support).run()


class ChainSolve:
    """One solve of one problem.

    Rules that are expressions steer the search. Opaque rules are asked about finished plans in
    canonical order; when they turn down too many, the search is repeated for a longer list, so that
    every plan shown has been compared with all that come before it.
    """

    def __init__(self, problem: Problem, options: SolveOptions, support: Support) -> None:
        self.problem, self.options = problem, options
        self.deadline = Deadline(options.time_limit_s, options.clock)
        self.handling = support.handling(problem)
        rules = problem.expression_rules
        self.rules = tuple(rule for rule in rules if is_known(rule.expr))
        late = tuple(rule for rule in rules if not is_known(rule.expr))
        self.verdicts = Verdicts(problem, late, options.max_rejections)
        self._published_s = time.monotonic()

    def run(self) -> Claim:
        """Solve."""
        facts = Facts(chain_of(self.problem), [rule.expr for rule in self.rules])
        if facts.contradictory:
            return nothing(self.handling)
        instance = build_instance(self.problem, self.rules, facts)
        wanted = self.options.top
        while (claim := self._attempt(instance, wanted)) is None:
            wanted *= _LONGER
        return claim

    def _attempt(self, instance: Instance, wanted: int) -> Claim | None:
        """Return a claim, or None when a longer list has to be checked."""
        layout, facts = instance.layout, instance.facts
        pool = Pool(wanted, layout.rank.stop)
        pool.add(instance.lonely())
        setting = Setting(
            ranking=instance.ranking,
            layout=layout,
            exclusive=instance.chain.exclusive,
            pool=pool,
            prune=RulePruner(instance.chain, facts, layout, instance.tables.cuts) if facts.open else None,
            pause=lambda: self._pause(instance, pool, widening.frontier),
            most_open=_OPEN_BYTES // (8 * layout.rows),
            at_least=self.options.at_least or 0,
        )
        widening = Widening(instance.tables, instance.lattices, setting, instance.narrowing)
        try:
            if instance.narrowing.most_chunks > 1:  # plans of one chunk are in the pool already
                widening.run()
        except StopSearch as stop:
            return self._claim(instance, pool, stop.reason, widening.frontier)
        claim = self._claim(instance, pool, StopReason.COMPLETE, None)
        enough = len(claim.plans) == self.options.top or claim.exhausted
        return claim if enough or self.verdicts.exhausted else None

    def _pause(self, instance: Instance, pool: Pool, frontier: tuple[int, ...]) -> None:
        """Between two steps of the search: obey the deadline, and show what is there now and then."""
        if self.deadline.passed:
            raise StopSearch(StopReason.TIME_LIMIT)
        if time.monotonic() - self._published_s > _PUBLISH_S and not self.problem.opaque_rules:
            self._published_s = time.monotonic()
            self.options.publish(self._claim(instance, pool, StopReason.TIME_LIMIT, frontier))

    def _claim(
        self, instance: Instance, pool: Pool, stop: StopReason, frontier: tuple[int, ...] | None
    ) -> Claim:
        """Return what a pool and the frontier of the search allow to claim."""
        return claim_of(
            pool,
            instance.parts(pool.ranks),
            frontier,
            stop,
            verdicts=self.verdicts,
            problem=self.problem,
            options=self.options,
            handling=self.handling,
            statistics={"boundaries": instance.tables.last + 1},
        )


_SHARE = 0.1
"""Share of a time limit that the native search may take."""


def starts_of(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    """Yield what is known, more and more; see `native_starts`."""
    from . import FAMILY  # which names this module

    return native_starts(problem, options, solve_chunking, FAMILY.support)


def native_starts(
    problem: Problem, options: SolveOptions, solve: Solve, support: Support | None
) -> Iterator[Start]:
    """Yield what is known, more and more: the best valid plan of a single chunk, then what `native` finds.

    The first takes no time, so that there is an answer even if the time is up before a solver is loaded, or
    the search has begun. Without a limit the searches find better plans by themselves.
    """
    if options.time_limit_s is None:
        return
    known = best_start(problem, whole_parts(chain_of(problem)))
    if known.code is not None:
        yield known
    if support is None or support.missing(problem):
        return
    limited = SolveOptions(time_limit_s=_SHARE * options.time_limit_s, seed=options.seed)
    claim = solve(problem, limited, support)
    code = problem.formulation.code(problem, claim.plans[0]) if claim.plans else known.code
    if code is not None and examined(problem, code)[1]:
        code = known.code
    yield Start(code=code, at_least=claim.bound)


# Bounds of the first term for each set of units, by a few sums: which sets cannot have the best plan.
#
# Every unit in use is busy for at most a period. So with any weights w_u >= 0 of the units of a set S
#
#     period >= sum_u w_u busy_u / sum_u w_u >= sum_l min_{u in S} w_u t_lu / sum_u w_u ,
#
# whatever is cut where: copies cost at least nothing. The weights are raised where the units that attain the
# minima are busier than others (multiplicative weights), and the best bound is kept. With all weights 1 and
# without the division it is a bound of the latency.

_STEPS = 25
_PACE = 0.5
_FINE = 1000
"""Weights are whole numbers that add up to about this: bounds are exact."""


def cheap_bounds(problem: Problem) -> dict[Part, int]:
    """Return a lower bound on the first term of the objective for each part of a problem with costs by set.

    Nothing where costs do not depend on sets, or where nothing is known of the term.
    """
    term = problem.objective.first
    if not problem.by_set or term not in ("period", "latency"):
        return {}
    tables = {Part(table.units): table for table in problem.co_run_costs or ()}
    bound = _least_period if term == "period" else _least_latency
    found = {part: bound(_times(problem, table)) for part, table in tables.items()}
    alone = _times(problem, problem.costs).sum(axis=0)
    return {Part(1): int(min(alone.min(), MAX_COUNT)), **found}


def _times(problem: Problem, table: CostTable) -> NDArray[np.int64]:
    """Return times by [layer][unit]; where a layer cannot run, more than any plan may take."""
    layers = table.of(problem.network.name).layer_us
    whole = sum(max((time for time in row if time is not None), default=0) for row in layers)
    most = min(whole + 1, MAX_COUNT)
    return np.array([[most if time is None else time for time in row] for row in layers], dtype=np.int64)


def _least_latency(time_us: NDArray[np.int64]) -> int:
    return int(time_us.min(axis=1).sum())


def _least_period(time_us: NDArray[np.int64]) -> int:
    weight = 1.0 / time_us.sum(axis=0)
    best, chosen = 0.0, weight
    for _ in range(_STEPS):
        weight = weight / weight.sum()
        charged = time_us * weight
        unit = charged.argmin(axis=1)
        value = float(charged.min(axis=1).sum())
        if value > best:
            best, chosen = value, weight
        load = np.bincount(unit, time_us[np.arange(len(unit)), unit], time_us.shape[1])
        weight = weight * np.exp(_PACE * (load / max(load.max(), 1.0) - 1))
    whole = np.maximum(np.rint(_FINE * chosen), 1).astype(np.int64)
    return -(-int((time_us * whole).min(axis=1).sum()) // int(whole.sum()))
