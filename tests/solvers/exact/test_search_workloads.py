"""The search for schedules, with an engine that simply tries all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from gapless.formulations.errors import BackendFailedError
from gapless.formulations.expr import BoolExpr
from gapless.formulations.flow_shop.encoding import encode_workload
from gapless.formulations.flow_shop.space import all_schedules
from gapless.formulations.flow_shop.tables import Schedule, shop_of
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.exact.cp_sat import CpSatBackend
from gapless.solvers.exact.lowering import Lowering
from gapless.solvers.exact.search import PortAnswer, Query, Search, Space, Verdict, reader_of
from gapless.solvers.exhaustive import ExhaustiveBackend
from gapless.solvers.protocol import Claim, Deadline, SolveOptions, SolveStatus
from tests.workload_instances import workload_problem

TABLES: dict[str, list[list[int | None]]] = {"a": [[3, 5], [4, 2]], "b": [[2, 7], [9, 3]]}


@dataclass
class TryAll:
    """Answers from a list of all solutions, given by the values of their variables.

    `shave` is how much too little the model says of every objective: a relaxation.
    """

    solutions: list[Callable[..., int]]
    shave: int = 0
    conditions: list[BoolExpr] = field(default_factory=list)
    hints: list[bool] = field(default_factory=list)
    blind: bool = False

    def add(self, condition: BoolExpr) -> None:
        self.conditions.append(condition)

    def minimise(self, query: Query) -> PortAnswer:
        self.hints.append(query.hint is not None)
        every = (*self.conditions, *query.conditions)
        left = [v for v in self.solutions if all(condition.evaluate(v) for condition in every)]
        if self.blind or not left:
            return PortAnswer(verdict=Verdict.INFEASIBLE)
        best = min(left, key=query.objective.evaluate)
        bound = max(query.objective.evaluate(best) - self.shave, 0)
        return PortAnswer(verdict=Verdict.OPTIMAL, values=best, bound=bound)


def search(
    problem: Problem, options: SolveOptions = SolveOptions(), seed: Schedule | None = None, **engine: object
) -> tuple[Claim, TryAll]:
    shop = shop_of(problem)
    encoded = encode_workload(problem, top=2)
    assert encoded.assign is not None
    lowering = Lowering(encoded.model)
    solutions = [reader_of(encoded.assign(schedule)) for schedule in all_schedules(shop)]
    tries = TryAll(solutions, **engine)  # type: ignore[arg-type]
    space = Space(problem, encoded, lowering, CpSatBackend.largest_number)
    claim = Search(
        problem=problem,
        options=options,
        capabilities=CpSatBackend.capabilities,
        space=space,
        lowering=lowering,
        port=tries,
        deadline=Deadline(None),
        seed=seed,
    ).run()
    return claim, tries


PROBLEM = workload_problem(TABLES, ["a", "b"], objective="makespan,latency")


def oracle(problem: Problem, top: int = 1) -> Claim:
    return ExhaustiveBackend().solve(problem, SolveOptions(top=top))


def test_the_terms_are_minimised_in_order() -> None:
    claim, tries = search(PROBLEM)
    assert (claim.status, claim.values) == (SolveStatus.OPTIMAL, oracle(PROBLEM).values)
    assert claim.bound == claim.values[0] if claim.values else False
    assert claim.proven == 1
    assert not any(tries.hints)


def test_a_relaxation_is_closed_plan_by_plan() -> None:
    claim, _ = search(PROBLEM, shave=2)
    assert (claim.status, claim.values) == (SolveStatus.OPTIMAL, oracle(PROBLEM).values)
    assert int(claim.statistics["loose"]) > 0
    assert int(claim.statistics["calls"]) > 1


def test_a_good_start_is_handed_on_and_kept() -> None:
    best = shop_of(PROBLEM).schedule(oracle(PROBLEM).plans[0])
    claim, tries = search(PROBLEM, seed=best)
    assert tries.hints[0]
    assert claim.values == oracle(PROBLEM).values


def test_a_start_that_nothing_can_beat_needs_no_solver() -> None:
    problem = PROBLEM.with_objective("displacement")
    claim, tries = search(problem, seed=Schedule((0, 1), ((0, 0, 2), (0, 2, 2))))
    assert (claim.status, claim.values, claim.bound) == (SolveStatus.OPTIMAL, (0,), 0)
    assert tries.hints == []


def test_a_solver_that_denies_a_known_plan_is_not_believed() -> None:
    best = shop_of(PROBLEM).schedule(oracle(PROBLEM).plans[0])
    with pytest.raises(BackendFailedError, match="denies that there is the plan"):
        search(PROBLEM, seed=best, blind=True)
    claim, _ = search(PROBLEM, blind=True)
    assert claim.status is SolveStatus.INFEASIBLE


def test_lists_are_in_order_and_claim_what_is_known() -> None:
    every = oracle(PROBLEM, 10_000)
    for top in (2, 5, 1000):
        claim, _ = search(PROBLEM, SolveOptions(top=top))
        wanted = oracle(PROBLEM, top)
        scores = [shop_of(PROBLEM).schedule(plan) for plan in claim.plans]
        assert len(set(scores)) == len(wanted.plans)
        assert claim.plans[: claim.proven] == every.plans[: claim.proven]
        assert claim.exhausted is (top == 1000)
    assert claim.proven == len(every.plans)


def test_opaque_rules_cut_schedules_off() -> None:
    ruled = PROBLEM.with_rules(OpaqueRule(name="b first", predicate=lambda plan: plan.order[0] == "b1"))
    claim, _ = search(ruled)
    assert claim.values == oracle(ruled).values
    assert claim.plans[0].order[0] == "b1"
