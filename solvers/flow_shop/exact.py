"""Workloads in the exact backends: formulation, start, and the search for the best schedules.

The formulations of `formulations/flow_shop/encoding.py` are relaxations that are mostly exact. Every
schedule that a solver returns is judged; if the judge refuses it, or finds it worse than the model said,
it is barred, and the search goes on until the bound of the solver reaches the best schedule. So the
result is exact in any case; `loose` in the statistics counts the schedules that cost a further round.
"""

from __future__ import annotations

from functools import partial

from ...formulations.expr import BoolExpr
from ...formulations.flow_shop.encoding import EncodedWorkload, encode_workload
from ...formulations.flow_shop.needs import needs_of
from ...formulations.flow_shop.quantities import WorkloadValues
from ...formulations.flow_shop.tables import Schedule
from ...formulations.flow_shop.totals import idle_excess, term_expr
from ...formulations.judge import check
from ...formulations.objective import Term
from ...formulations.problem import Problem
from ..exact.levels import IdleLevel, Level, TermLevel
from ..exact.lowering import Lowering
from ..exact.port import Engine
from ..exact.search import Search, add_model
from ..exact.space import Key
from ..protocol import Capabilities, Claim, Deadline, SolveOptions
from .bounds import makespan_bound
from .search import best_schedule

_EASY = 100
"""Cuts to place, counted by places, up to which exact backends are quick without a plan to start from."""

_UNHURRIED_S = 10.0
"""With a shorter limit the native search for a plan to start from is limited, too."""

_SHARE = 0.1
"""Share of a short limit that it may take."""


def enumerate_schedules(
    problem: Problem,
    options: SolveOptions,
    capabilities: Capabilities,
    engine: Engine,
    *,
    deadline: Deadline,
) -> Claim:
    """Return the best plans for a workload.

    Parameters
    ----------
    problem, options, capabilities
        What is asked, and of whom.
    engine
        An empty solver.
    deadline
        When to stop.
    """
    seed, least = _start(problem, options)
    horizon_us = _horizon_us(problem, seed if options.top == 1 else None)
    encoded = encode_workload(problem, top=options.top, horizon_us=horizon_us)
    lowering = Lowering(encoded.model)
    space = WorkloadSpace(problem, encoded, lowering)
    add_model(encoded.model, lowering, engine, deadline)
    search = Search(
        problem=problem,
        options=options,
        capabilities=capabilities,
        space=space,
        lowering=lowering,
        engine=engine,
        deadline=deadline,
        seed=None if seed is None else encoded.settle(seed),
        at_least=least,
    )
    return search.run()


class WorkloadSpace:
    """Schedules of a workload; equal terms are not told apart by the levels, only by the keys."""

    levels_decide = False

    def __init__(self, problem: Problem, encoded: EncodedWorkload, lowering: Lowering) -> None:
        shop = problem.flow_shop
        self.name = encoded.name
        self.complete = encoded.complete
        self.levels: tuple[Level[WorkloadValues], ...] = tuple(
            IdleLevel(lowering, partial(idle_excess, shop))
            if term is Term.IDLE
            else TermLevel(lowering, term, term_expr(shop, term))
            for term in problem.objective.terms
        )
        self.decode = encoded.decode
        self.hint = encoded.assign
        self.plan = shop.plan
        self._problem, self._encoded, self._lowering = problem, encoded, lowering

    def exclude(self, code: Schedule) -> BoolExpr:
        """Return the condition that the schedule is another one."""
        return self._lowering.truth(self._encoded.exclude(code))

    def judge(self, code: Schedule) -> tuple[Key, frozenset[str]]:
        """Return terms, order and cuts of a schedule, and what it breaks."""
        broken = frozenset(violation.rule for violation in check(self._problem, self.plan(code)))
        if broken:
            return (), broken
        values = WorkloadValues(self._problem.flow_shop, code)
        terms = values.terms(self._problem.objective.terms)
        return (*terms, *code.order, *(cut for cuts in code.cuts for cut in cuts)), broken


def _start(problem: Problem, options: SolveOptions) -> tuple[Schedule | None, int | None]:
    """Return what the native search knows: a valid plan, and a lower bound on the first term.

    Unless time is short the search takes a fixed number of steps: equal questions have equal answers.
    """
    shop, limit_s = problem.flow_shop, options.time_limit_s
    least = makespan_bound(shop) if problem.objective.terms[0] is Term.MAKESPAN else None
    places = sum(len(shop.chains[chain].cuts) for chain in shop.chain_of) * (shop.unit_count - 1)
    if places <= _EASY or not needs_of(problem).clocks:
        return None, least
    hurried_s = None if limit_s is None or limit_s >= _UNHURRIED_S else _SHARE * limit_s
    found = best_schedule(problem, time_limit_s=hurried_s, seed=options.seed)
    if found is None or check(problem, shop.plan(found)):
        return None, least
    return found, least


def _horizon_us(problem: Problem, seed: Schedule | None) -> int:
    """Return a time by which every plan that is at least as good as the seed is done."""
    shop = problem.flow_shop
    if seed is None:
        return shop.horizon_us
    values = WorkloadValues(shop, seed)
    latest_us = max(request.arrival_us for request in shop.workload.requests)
    ends = {Term.MAKESPAN: values.makespan_us, Term.LATENCY: latest_us + values.latency_us}
    return min(shop.horizon_us, ends.get(problem.objective.terms[0], shop.horizon_us))
