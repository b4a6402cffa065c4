"""Distances of plans for a workload, plans that are the same to people, and lists without them."""

from __future__ import annotations

from itertools import permutations

import pytest

from gapless.formulations.flow_shop.space import (
    differs,
    groups_of,
    settled_plan,
    settling_rules,
    workload_distance,
)
from gapless.formulations.judge import check, rank_key, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, RuleFunction, named
from gapless.formulations.workload import Request, RequestOrder, Workload
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from tests.workload_instances import workload_problem

TABLES: dict[str, list[list[int | None]]] = {"a": [[3, 5], [4, 2]], "b": [[7, 3], [2, 9]]}
PROBLEM = workload_problem(TABLES, ["a", "b", "a"], slowdown=[[0, 300], [200, 0]])


def greedy(problem: Problem, distance: int) -> list[Plan]:
    """Return the whole list by brute force: settled plans in canonical order, far from all before."""
    settled = {settled_plan(problem, plan) for plan in all_plans(problem) if not check(problem, plan)}
    chosen: list[Plan] = []
    for plan in sorted(settled, key=lambda one: rank_key(problem, score(problem, one))):
        if all(workload_distance(plan, other) >= distance for other in chosen):
            chosen.append(plan)
    return chosen


def test_equal_requests_trade_places_and_nothing_else_does() -> None:
    assert groups_of(PROBLEM) == ((0, 2),)
    alone = named("first", "", lambda view: view.before("a0", "b1"))
    opaque = OpaqueRule(name="any", predicate=lambda plan: True)
    fixed = Workload(requests=(Request(name="a", network="a"),), order=RequestOrder.FIXED)
    given = workload_problem(TABLES, ["a", "a"], workload=fixed)
    for other in (PROBLEM.with_rules(alone), PROBLEM.with_rules(opaque), given):
        assert groups_of(other) == ()
        assert settling_rules(other) == ()


def test_a_settled_plan_is_as_good_and_first_of_its_kind() -> None:
    rules = PROBLEM.with_rules(*settling_rules(PROBLEM))
    for plan in all_plans(PROBLEM):
        settled = settled_plan(PROBLEM, plan)
        assert settled_plan(PROBLEM, settled) == settled
        assert (settled == plan) is not bool(check(rules, plan))
        own, other = score(PROBLEM, plan), score(PROBLEM, settled)
        assert other.makespan_us == own.makespan_us
        assert rank_key(PROBLEM, other) <= rank_key(PROBLEM, own)


def test_the_distance_is_a_metric_and_what_the_rule_says() -> None:
    plans = list(all_plans(PROBLEM))[::11]
    for first, second in permutations(plans, 2):
        apart = workload_distance(first, second)
        assert apart == workload_distance(second, first) > 0
        for least in (apart, apart + 1):
            broken = check(PROBLEM.with_rules(differs(first, least)), second)
            assert bool(broken) is (least > apart)
    assert all(workload_distance(plan, plan) == 0 for plan in plans)


@pytest.mark.parametrize("distance", [1, 2, 4])
@pytest.mark.parametrize("backend", ["exhaustive", "native", pytest.param("cpsat", marks=pytest.mark.slow)])
def test_lists_are_the_greedy_ones_without_the_same_plan_twice(backend: str, distance: int) -> None:
    result = solve(PROBLEM, backend, SolveOptions(top=6, distance=distance))
    wanted = greedy(PROBLEM, distance)[:6]

    def values(plans: list[Plan]) -> list[int]:
        return [score(PROBLEM, plan).makespan_us for plan in plans]

    found = [candidate.plan for candidate in result.candidates]
    if backend == "exhaustive":
        assert found == wanted
        assert result.proven == len(wanted)
    assert found == [settled_plan(PROBLEM, plan) for plan in found]
    assert all(workload_distance(*pair) >= distance for pair in permutations(found, 2))
    assert values(found)[:1] == values(wanted)[:1]
    if distance == 1:
        assert values(found) == values(wanted)


def test_a_rule_that_names_a_request_keeps_its_plans_apart() -> None:
    rules: tuple[RuleFunction, ...] = (named("a0", "", lambda view: view.uses("a0", "npu")),)
    problem = PROBLEM.with_rules(*rules)
    plans = [candidate.plan for candidate in solve(problem, options=SolveOptions(top=5)).candidates]
    assert plans == greedy(problem, 1)[:5]
