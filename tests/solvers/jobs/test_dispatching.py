"""Policies as backends: they do what the simulation of coordination does, judged like any plan."""

from __future__ import annotations

import pytest

from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.stretch import play_jobs
from gapless.formulations.jobs.tables import jobs_of
from gapless.formulations.judge import score
from gapless.formulations.plan import Plan
from gapless.solvers.coordination.policies import make_policy
from gapless.solvers.protocol import SolveStatus
from gapless.solvers.session import solve
from tests.jobs_instances import drawn_jobs, passing, slowed

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
