"""What the native backend claims about workloads."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from benchmarks.workload_instances import random_workload
from gapless.formulations.flow_shop.rules import before
from gapless.formulations.judge import score
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.formulations.workload import Execution, RequestOrder
from gapless.solvers import rounds
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import Claim, RuleHandling, SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem


def claim_of(problem: Problem, **options: object) -> Claim:
    return NativeBackend().solve(problem, replace(SolveOptions(), **options))  # type: ignore[arg-type]


def test_a_makespan_that_meets_its_bound_is_proven() -> None:
    result = solve(random_workload(10, 4, seed=1), "native")
    assert result.status is SolveStatus.OPTIMAL
    assert result.objective == result.bound
    assert result.proven == 1


@pytest.mark.slow
def test_columns_in_a_fixed_order_are_proven() -> None:
    problem = random_workload(6, 3, seed=1, order=RequestOrder.FIXED, execution=Execution.COLUMNS)
    result = solve(problem, "native")
    assert result.status is SolveStatus.OPTIMAL


@pytest.mark.parametrize("objective", ["bottleneck", "work", "contention,displacement"])
def test_objectives_of_their_own_algorithms_are_proven(objective: str) -> None:
    problem = random_workload(9, 4, seed=2, slowdown=True).with_objective(objective)
    assert solve(problem, "native").status is SolveStatus.OPTIMAL


def test_no_time_at_all_is_honest() -> None:
    claim = claim_of(random_workload(9, 4, seed=0, balanced=True), time_limit_s=1e-9)
    assert claim.status is SolveStatus.FEASIBLE
    assert claim.stop is StopReason.TIME_LIMIT


def test_the_time_limit_is_kept() -> None:
    started = time.monotonic()
    claim = claim_of(random_workload(30, 4, seed=0, slowdown=True), time_limit_s=0.3)
    assert time.monotonic() - started < 60  # without the limit it takes far longer
    assert claim.stop is StopReason.TIME_LIMIT


def test_a_layer_that_no_unit_runs_is_infeasible() -> None:
    plain: list[int | None] = [3, 2]
    rows: list[list[int | None]] = [[4, 5], [None, None], *[plain] * 40]
    claim = claim_of(workload_problem({"a": rows}, ["a", "a", "a"]))
    assert claim.status is SolveStatus.INFEASIBLE
    assert claim.exhausted


def test_small_spaces_are_walked_whole() -> None:
    problem = workload_problem({"a": [[5, 3], [2, 7]]}, ["a", "a"], objective="gapness,makespan")
    claim = claim_of(problem.with_rules(before("a0", "a1")), top=50)
    assert claim.status is SolveStatus.OPTIMAL
    assert claim.exhausted


@pytest.mark.slow
def test_rules_are_said_to_be_checked() -> None:
    problem = random_workload(6, 3, seed=1).with_rules(before("r3", "r1"))
    assert claim_of(problem).handling == {"before(r3, r1)": RuleHandling.CHECKED}


def test_an_opaque_rule_that_turns_everything_down() -> None:
    never = OpaqueRule(name="never", predicate=lambda plan: not plan.chunks)
    claim = claim_of(random_workload(6, 3, seed=1).with_rules(never), max_rejections=20)
    assert claim.status is SolveStatus.NO_SOLUTION
    assert claim.stop is StopReason.REJECTION_LIMIT


def test_better_plans_are_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ALLOWANCE_S", float("inf"))
    problem = random_workload(10, 4, seed=0, balanced=True)
    claims: list[Claim] = []
    last = claim_of(problem, publish=claims.append)
    ends = [score(problem, claim.plans[0]).values(problem.objective.terms) for claim in claims]
    assert [claim.values for claim in claims] == ends
    assert ends == sorted(ends, reverse=True)
    assert len(ends) > 1
    assert last.values == ends[-1]
