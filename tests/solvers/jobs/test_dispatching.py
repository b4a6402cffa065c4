"""Policies on single requests do what the simulation of coordination does; planners for workloads, too."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from gapless.formulations.coordination.play import play_jobs
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.hardware import UnitKind
from gapless.formulations.jobs.tables import jobs_of
from gapless.formulations.judge import score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules
from gapless.solvers.coordination.policies import make_policy
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve
from tests.jobs_instances import drawn_jobs, passing, slowed
from tests.workload_instances import workload_problem

POLICIES = ("lst", "sel", "shortest", "heft", "edf")


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_serves_what_the_simulation_serves(name: str) -> None:
    for seed in range(6):
        problem = drawn_jobs(seed)
        result = solve(problem, name, explain=False)
        record = play_jobs(Setting.of(problem), jobs_of(problem), make_policy(name))
        assert result.status is SolveStatus.FEASIBLE
        plan = result.candidates[0].plan
        ran = sorted((each.start_us, each.request, each.unit) for each in record.ran)
        names, units = jobs_of(problem).names, problem.platform.unit_names
        for unit in units:
            served = [name for name, chunk in _in_order(plan) if chunk == unit]
            assert served == [names[request] for _, request, u in ran if units[u] == unit]
        # The judge starts each chunk as soon as it can; a policy may have waited.
        ends = [request.end_us for request in record.requests]
        assert score(problem, plan).makespan_us <= max(end for end in ends if end is not None)


def _in_order(plan: Plan) -> list[tuple[str, str]]:
    """Return the unit of each chunk in the order of a plan, with the name of its request."""
    left = {name: iter(plan.of(name)) for name in set(plan.order)}
    return [(name, next(left[name]).unit) for name in plan.order]


def test_policies_differ() -> None:
    drawn = [drawn_jobs(seed, requests=6) for seed in range(40)]
    plans = {
        name: tuple(str(solve(each, name, explain=False).candidates[0].plan) for each in drawn)
        for name in POLICIES
    }
    assert len(set(plans.values())) == len(POLICIES)


def test_company_counts_for_the_judge_and_not_for_the_policy() -> None:
    later = 0
    for seed in range(8):
        problem = drawn_jobs(seed)
        alone, beside = (
            solve(each, "sel", explain=False).candidates[0] for each in (problem, slowed(problem, seed))
        )
        assert beside.plan.chunks == alone.plan.chunks
        assert beside.score.makespan_us >= alone.score.makespan_us
        later += beside.score.makespan_us > alone.score.makespan_us
    assert later


def test_what_a_passage_forbids_is_no_plan() -> None:
    found = [solve(passing(drawn_jobs(seed), "ordered"), "sel", explain=False) for seed in range(12)]
    refused = [result for result in found if result.status is SolveStatus.NO_SOLUTION]
    assert 0 < len(refused) < len(found)
    assert all("passage" in str(result.statistics["reason"]) for result in refused)


PLANNERS = ("serial", "band", "hungarian", "hetero2pipe", "pipe-it", "annealing")


def workload(seed: int) -> Problem:
    """Return three requests of two networks, one of which the first unit cannot run, with slowdown."""
    draw = random.Random(seed)
    tables: dict[str, list[list[int | None]]] = {
        "a": [[draw.randint(5, 40) for _ in range(3)] for _ in range(4)],
        "b": [[None, *(draw.randint(5, 40) for _ in range(2))] for _ in range(3)],
    }
    slowdown = [[0 if u == v else draw.choice((0, 200, 700)) for v in range(3)] for u in range(3)]
    problem = workload_problem(tables, ["a", "b", "a"], slowdown=slowdown, objective="makespan")
    units = tuple(replace(unit, kind=UnitKind.CPU) for unit in problem.platform.units)
    return replace(problem, platform=replace(problem.platform, units=units))


@pytest.mark.parametrize("name", PLANNERS)
def test_planners_for_workloads_find_the_same_plans_as_for_the_workload(name: str) -> None:
    for seed in range(3):
        problem = workload(seed)
        own = solve(problem, name, SolveOptions(seed=1), explain=False)
        for passage in ("any", "once", "ordered"):
            found = solve(as_schedules(problem, passage), name, SolveOptions(seed=1), explain=False)
            assert found.values == own.values
            assert found.candidates[0].plan.chunks == own.candidates[0].plan.chunks


def test_a_planner_whose_plans_a_passage_forbids_has_none() -> None:
    units = workload(0).platform.unit_names
    problem = as_schedules(workload(0), f"ordered:{','.join(reversed(units))}")
    found = solve(problem, "hungarian", explain=False)
    assert found.status is SolveStatus.NO_SOLUTION
    assert "passage" in str(found.statistics["reason"])
