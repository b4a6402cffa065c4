"""Repairs of plans that break something: what is a change away, and what heuristics make of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gapless.formulations.judge import check
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, RuleFunction, named
from gapless.solvers.protocol import Deadline, RuleHandling, SolveStatus
from gapless.solvers.repairing import repair
from gapless.solvers.session import solve
from tests import cooperation_instances, pipeline_instances
from tests.workload_instances import workload_problem


def small_workload(seed: int = 0) -> Problem:
    return workload_problem({"a": [[3, 5, 9]] * 4, "b": [[None, 7, 6], [4, 2, 9]]}, ["a", "b", "a"])


DRAWN: tuple[Callable[[int], Problem], ...] = (
    small_workload,
    pipeline_instances.drawn_problem,
    cooperation_instances.drawn_problem,
    cooperation_instances.stepping_problem,
)


@pytest.mark.parametrize("drawn", DRAWN, ids=["workload", "pipelines", "groups", "groups in steps"])
def test_what_is_a_change_away_is_another_plan(drawn: Callable[[int], Problem]) -> None:
    tried = 0
    for seed in range(6):
        problem = drawn(seed)
        formulation = problem.formulation
        codes = list(formulation.codes(problem))
        for code in codes[:: max(1, len(codes) // 5)]:
            for other in formulation.neighbours(problem, code):
                assert other != code
                assert formulation.code(problem, formulation.plan(problem, other)) == other
                tried += 1
    assert tried > 50


def not_on_npu(view: object) -> object:
    return ~view.uses("a0", "npu") & ~view.uses("a2", "npu")  # type: ignore[attr-defined]


RULES: tuple[RuleFunction | OpaqueRule, ...] = (
    named("no a on npu", "", not_on_npu),  # type: ignore[arg-type]
    OpaqueRule(name="a0 stays whole", predicate=lambda plan: len(plan.of("a0")) == 1),
)


@pytest.mark.parametrize("backend", ["hetero2pipe", "annealing", "serial", "band"])
def test_heuristics_repair_their_plans_and_say_so(backend: str) -> None:
    problem = small_workload().with_rules(*RULES)
    result = solve(problem, backend)
    assert result.status is SolveStatus.FEASIBLE
    assert result.plan is not None
    assert not check(problem, result.plan)
    assert set(result.handling.values()) == {RuleHandling.REPAIRED}
    if solve(small_workload(), backend).plan != result.plan and backend != "annealing":
        assert result.statistics["repaired"]


def test_repairs_end_at_the_deadline_and_where_nothing_helps() -> None:
    problem = small_workload().with_limits(max_period_us=1)
    codes = list(problem.formulation.codes(problem))[:3]
    kept: list[object] = []
    assert repair(problem, codes, Deadline(None), kept.append) == 0
    assert repair(problem.with_limits(max_period_us=None), codes, Deadline(0), kept.append) == 0
    assert not kept
