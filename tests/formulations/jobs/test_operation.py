"""Plans of single requests at work: history and judge say the same, and nothing claims to run them."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import pytest

from gapless.formulations.errors import InvalidInputError, InvalidPlanError
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.tables import jobs_of, tables_of
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate, trace_usage
from tests.jobs_instances import drawn_jobs


@pytest.mark.parametrize("seed", range(12))
def test_the_history_is_what_the_judge_says(seed: int) -> None:
    problem = drawn_jobs(seed)
    formulation = problem.formulation
    for code in islice(formulation.codes(problem), 0, 200, 40):
        plan, values = formulation.plan(problem, code), JobValues(tables_of(problem), code)
        played = simulate(problem, plan)
        assert played.makespan_us == values.makespan_us
        assert played.latency_us == values.request_latency_us
        for unit, name in enumerate(played.units):
            own = played.on(name)
            assert sum(e.end_ns - e.start_ns for e in own) // 1000 == values.busy_us.get(unit, 0)
            assert all(one.end_ns <= other.start_ns for one, other in pairwise(own))
        assert trace_usage(problem, played).peak_bytes == values.loaded_bytes


def test_it_is_played_over_and_over() -> None:
    problem = drawn_jobs(3)
    formulation, operation = problem.formulation, operation_of(problem)
    plan = formulation.plan(problem, next(iter(formulation.codes(problem))))
    arranged = operation.arrange(problem, plan)
    assert arranged.plan is not None
    assert formulation.code(problem, arranged.plan) == formulation.code(problem, plan)
    operation.check_deployment(problem, arranged)
    twice = operation.play(problem, arranged, 2)
    (state,) = operation.steady(problem, arranged)
    assert twice.makespan_us == 2 * state.period_us == 2 * simulate(problem, plan).makespan_us
    assert len(twice.events) == 2 * len(plan.chunks)
    thrice = operation.play(problem, arranged, 3)
    first, *later = (sorted(e.start_ns for e in thrice.events if e.request == number) for number in range(3))
    round_ns = 1000 * state.period_us
    assert later == [[start + number * round_ns for start in first] for number in (1, 2)]


def test_what_runs_has_the_order_of_the_plan() -> None:
    problem = next(found for found in map(drawn_jobs, range(20)) if not _waits(found))
    formulation, operation = problem.formulation, operation_of(problem)
    plan = formulation.plan(problem, next(iter(formulation.codes(problem))))
    operation.check_executable(problem)
    deployed = operation.deploy(problem, plan)
    assert [deployed.streams[stream].name for stream, _ in deployed.turns] == list(plan.order)
    assert len(set(deployed.turns)) == len(plan.chunks)
    assert deployed.rounds is not None
    with pytest.raises(InvalidPlanError, match="once for each of its chunks"):
        replace(deployed, rounds=replace(deployed.rounds, order=deployed.rounds.order[1:]))
    with pytest.raises(InvalidInputError, match="leave out"):
        simulate(problem, plan, requests=3)


def test_requests_that_wait_for_others_are_only_simulated() -> None:
    problem = next(found for found in map(drawn_jobs, range(20)) if _waits(found))
    formulation, operation = problem.formulation, operation_of(problem)
    plan = formulation.plan(problem, next(iter(formulation.codes(problem))))
    with pytest.raises(InvalidInputError, match="simulated"):
        operation.check_executable(problem)
    with pytest.raises(InvalidPlanError, match="simulated"):
        operation.deploy(problem, plan)


def _waits(problem: Problem) -> bool:
    return any(request.after for request in jobs_of(problem).requests)
