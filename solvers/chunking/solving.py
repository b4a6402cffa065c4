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
   plateaus it settles the value and goes on with the next term; `boxes` turns bounds on plans
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

from ...formulations.chunking.tables import chain_of
from ...formulations.problem import Problem
from ..protocol import Claim, Deadline, SolveOptions, StopReason, Support
from .facts import Facts, is_known
from .instance import Instance, build_instance
from .pool import Pool
from .propagation import RulePruner
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
        self.deadline = Deadline(options.time_limit_s)
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
