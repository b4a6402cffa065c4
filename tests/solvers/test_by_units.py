"""Costs that depend on the number of used units: exact with every backend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.problems import load_problem, table_problem
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.formulations.judge import rank_key, score
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.protocol import Backend, SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve
from tests.instances import co_run_problems

from .agreement import in_one_child
from .brute import every, values_of

QUICK = settings(max_examples=30, suppress_health_check=list(HealthCheck))
SLOW = settings(max_examples=8, suppress_health_check=list(HealthCheck))
SPARSE = "pixel7a/alexnet-sparse"

THIRD_PARTY = ["cpsat", "z3", "pulp", "pulp-cbc"]


def check_against_brute_force(problem: Problem, backend: str | Backend, top: int) -> None:
    result, plans = solve(problem, backend, SolveOptions(top=top), explain=False), every(problem)
    listed = sorted(result.candidates, key=lambda c: rank_key(problem, c.score))
    assert [c.plan for c in listed] == plans[:top]
    assert [c.score for c in listed] == [score(problem, p) for p in plans[:top]]
    assert result.stop is StopReason.COMPLETE
    assert result.proven == len(listed)
    assert result.exhausted or len(plans) >= top
    assert not (result.exhausted and len(plans) > top)
    if plans:
        assert result.status is SolveStatus.OPTIMAL
        assert result.values == values_of(problem, plans[0])
        assert result.bound == result.objective
    else:
        assert result.status is SolveStatus.INFEASIBLE
        assert result.bound is None
    assert set(result.handling) == {rule.name for rule in problem.rules} or not plans


objectives = st.sampled_from([None, "period,gapness", "paper", "slack:100", "slack:30:gapness", "latency"])


@st.composite
def asked(draw: st.DrawFn, *, most_layers: int = 5, most_units: int = 4) -> Problem:
    problem = draw(co_run_problems(most_layers=most_layers, most_units=most_units))
    objective = draw(objectives)
    if draw(st.integers(0, 4)) == 0:
        odd = OpaqueRule(name="odd", predicate=lambda p: p.chunks[0].stop % 2 == 1)
        problem = problem.with_rules(odd)
    return problem if objective is None else problem.with_objective(objective)


@pytest.mark.slow
@QUICK
@given(problem=asked(), top=st.sampled_from([1, 5, 200]))
def test_the_best_plans_of_all_parts(problem: Problem, top: int) -> None:
    for backend in ("native", "exhaustive"):
        check_against_brute_force(problem, backend, top)


@pytest.mark.slow
@pytest.mark.parametrize("backend", THIRD_PARTY)
def test_third_party_backends_find_the_same(backend: str) -> None:
    def check(loose: Backend) -> None:
        @SLOW
        @given(problem=asked(most_layers=4, most_units=3))
        def agrees(problem: Problem) -> None:
            check_against_brute_force(problem, loose, top=3)

        agrees()

    in_one_child(backend, check)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["period,gapness", "paper", "slack:50", "latency,period"])
@pytest.mark.parametrize("name", [SPARSE, "jetson-orin-nano/octree"])
def test_shipped_problems(name: str, objective: str) -> None:
    problem = load_problem(name, costs="interpolated").with_objective(objective)
    check_against_brute_force(problem, "native", top=20)


def test_the_best_plan_may_leave_units_out() -> None:
    """With heavy costs both units pay off, with costs of its own number one unit is better."""
    problem = table_problem([[10, 30], [10, 30]], ["a", "b"], network="net")
    crowded = replace(
        problem.costs, networks=(replace(problem.costs.networks[0], layer_us=((25_000, 9_000),) * 2),)
    )
    assert str(solve(replace(problem, costs=crowded)).plan) == "0-1 b"
    whole = solve(replace(problem, co_run_costs=(crowded,)), options=SolveOptions(top=9))
    assert [(str(c.plan), c.score.period_us) for c in whole.candidates[:2]] == [
        ("0-1 a", 20_000),
        ("0-0 a | 1-1 b", 25_000),
    ]


def test_the_papers_encoding_knows_no_limits() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"limits \(co-run costs are solved for each number"):
        solve(load_problem(SPARSE, costs="interpolated").with_objective("paper"), "z3-paper")


def test_statistics_say_which_part_they_are_about() -> None:
    found = solve(load_problem("jetson-orin-nano/octree", costs="interpolated"))
    assert "1 unit: boundaries" in found.statistics
    assert "2 units: boundaries" in found.statistics


# ---- contradictory limits


@pytest.mark.parametrize("backend", ["native", "exhaustive"])
def test_limits_that_leave_no_number_of_units(backend: str) -> None:
    problem = load_problem("jetson-orin-nano/octree", costs="interpolated")
    few = solve(problem.with_limits(min_units=3), backend)
    assert few.status is SolveStatus.INFEASIBLE
    assert few.conflict is not None
    assert [item.text for item in few.conflict.items] == ["at least 3 units are used"]
    assert few.unfiltered is not None
    assert few.unfiltered.plan == solve(problem).plan
    both = solve(problem.with_limits(min_units=2, max_units=1), backend).conflict
    assert both is not None
    assert {item.name for item in both.items} == {"min_units", "max_units"}
    assert both.smallest


def test_a_limit_that_no_table_allows() -> None:
    problem = load_problem(SPARSE, costs="interpolated").with_limits(max_period_us=9000, max_units=3)
    assert solve(problem.with_limits(max_units=None)).status is SolveStatus.OPTIMAL
    conflict = solve(problem).conflict
    assert conflict is not None
    assert {item.name for item in conflict.items} == {"max_period_us", "max_units"}
