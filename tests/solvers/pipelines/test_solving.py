"""What the native backend claims about pipelines over devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.judge import check
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule
from gapless.solvers.families import starts_for
from gapless.solvers.native import NativeBackend
from gapless.solvers.pipelines import solving
from gapless.solvers.pipelines.large import interval_bound
from gapless.solvers.pipelines.samples import random_cluster
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus, StopReason
from gapless.solvers.session import solve
from tests.pipeline_instances import restricted_problem


def claim_of(problem: Problem, **options: object) -> Claim:
    return NativeBackend().solve(problem, replace(SolveOptions(), **options))  # type: ignore[arg-type]


@pytest.fixture
def few_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem has too many sets of devices."""
    monkeypatch.setattr(solving, "MOST_STATES", 4)
    monkeypatch.setattr(solving, "_FEW_STATES", 4)


@pytest.mark.parametrize(
    "objective",
    ["throughput", "period", "latency", "energy", "traffic", "throughput,period,devices", "latency,devices"],
)
def test_what_the_programs_settle_needs_no_search(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(solving, "Search")
    result = solve(random_cluster(30, [2, 2, 1], objective=objective), "native")
    assert result.status is SolveStatus.OPTIMAL
    assert result.objective == result.bound


def test_twelve_unlike_devices_are_proven() -> None:
    result = solve(random_cluster(96, [1] * 12), "native")
    assert result.status is SolveStatus.OPTIMAL
    assert result.statistics["sets"] == 2**12


def test_a_plan_that_rules_forbid_is_searched_for() -> None:
    problem = random_cluster(10, [2, 1])
    best = solve(problem, "native")
    ruled = problem.with_rules(lambda view: (view.pipelines() <= 1) & view.on("l4", "d1"))
    result = solve(ruled, "native")
    assert result.status is SolveStatus.OPTIMAL
    assert best.objective is not None
    assert result.objective is not None
    assert result.objective > best.objective
    assert solve(ruled, "exhaustive").values == result.values


@pytest.mark.slow
def test_too_many_sets_are_solved_all_the_same(few_sets: None) -> None:
    for seed in range(40):
        problem = restricted_problem(seed)
        result, oracle = (solve(problem, name, explain=False) for name in ("native", "exhaustive"))
        assert (result.status, result.values) == (oracle.status, oracle.values), f"seed {seed}"


@pytest.mark.slow
def test_large_problems_have_a_plan_and_a_bound(counted_time: None) -> None:
    problem = random_cluster(24, [1] * 18)
    claim = claim_of(problem, time_limit_s=80.0)  # looks at the clock / 100
    assert claim.status is SolveStatus.FEASIBLE
    assert claim.stop is StopReason.TIME_LIMIT
    assert claim.values is not None
    assert claim.bound is not None
    assert 0.5 * claim.values[0] < claim.bound <= claim.values[0]
    assert check(problem, claim.plans[0]) == ()


def test_prices_bound_the_rate_of_all_plans() -> None:
    for seed in range(60):
        problem = restricted_problem(seed).with_objective("throughput")
        bound, best = interval_bound(problem), solve(problem, "exhaustive", explain=False).objective
        assert bound is None or best is None or bound <= best, f"seed {seed}"
    wide = random_cluster(20, [3, 3])
    bound, best = interval_bound(wide), solve(wide, "native").objective
    assert bound is not None
    assert best is not None
    assert bound >= 0.8 * best


def test_no_time_at_all_is_honest(counted_time: None) -> None:
    claim = claim_of(random_cluster(20, [1] * 8, objective="gapness,latency"), time_limit_s=1e-9)
    assert claim.status in (SolveStatus.FEASIBLE, SolveStatus.NO_SOLUTION)
    assert claim.stop is StopReason.TIME_LIMIT


def test_a_layer_that_no_device_runs_is_infeasible() -> None:
    problem = random_cluster(4, [2])
    (own,) = problem.costs.networks
    rows = ((None, None), *own.layer_us[1:])
    problem = replace(problem, costs=replace(problem.costs, networks=(replace(own, layer_us=rows),)))
    assert claim_of(problem).status is SolveStatus.INFEASIBLE


def test_too_many_rejections_stop_the_search() -> None:
    never = OpaqueRule(name="never", predicate=lambda plan: False)
    claim = claim_of(random_cluster(12, [2, 2]).with_rules(never), max_rejections=5)
    assert claim.status is SolveStatus.NO_SOLUTION
    assert claim.stop is StopReason.REJECTION_LIMIT


def test_better_plans_are_published() -> None:
    seen: list[Claim] = []
    problem = random_cluster(8, [2, 1], objective="gapness,throughput").with_limits(min_units=2)
    claim = claim_of(problem, publish=seen.append)
    assert claim.status is SolveStatus.OPTIMAL
    assert seen
    assert all(not check(problem, plan) for each in seen for plan in each.plans)


@pytest.mark.parametrize("limit_s", [None, 1.0])
def test_starts_are_valid_plans_and_bounds(limit_s: float | None) -> None:
    for seed in range(40):
        problem = restricted_problem(seed)
        best = solve(problem, "exhaustive", explain=False).objective
        for start in starts_for(problem, SolveOptions(time_limit_s=limit_s)):
            if start.code is not None:
                assert check(problem, problem.formulation.plan(problem, start.code)) == ()
            if start.at_least is not None and best is not None:
                assert start.at_least <= best


def test_times_of_centuries_have_rates() -> None:
    problem = random_cluster(2, [2])
    slow = tuple(replace(link, bytes_per_second=1, latency_us=2**44) for link in problem.data.links)
    only = problem.with_rules(lambda view: (view.pipelines() <= 1) & (view.devices_used() >= 2))
    far = replace(only, data=replace(problem.data, links=slow))
    native, oracle = (solve(far, name) for name in ("native", "exhaustive"))
    assert native.values == oracle.values
    assert native.status is SolveStatus.OPTIMAL
