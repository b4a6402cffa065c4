"""The simulation against the judge and against the flow-shop recursion."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from gapless.api.problems import table_problem
from gapless.formulations.chunking.space import all_parts
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import InvalidInputError, InvalidPlanError
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from gapless.formulations.simulate import simulate


def instances() -> list[tuple[Problem, Plan]]:
    rng = random.Random(5)
    found = []
    for _ in range(6):
        times = [[rng.randint(1, 90) for _ in range(3)] for _ in range(5)]
        problem = table_problem(times, ["a", "b", "c"], network="net")
        plans = list(all_parts(chain_of(problem)))
        found += [(problem, chain_of(problem).plan(parts)) for parts in rng.sample(plans, 8)]
    return found


@pytest.mark.parametrize(("problem", "plan"), instances())
def test_steady_state_equals_the_judge(problem: Problem, plan: Plan) -> None:
    judged = score(problem, plan)
    trace = simulate(problem, plan, requests=7)
    assert trace.period_us == judged.period_us
    assert set(trace.latency_us) == {judged.latency_us}
    for unit, bubble in zip(problem.platform.unit_names, judged.bubble_us, strict=True):
        assert trace.bubble_us(unit) == (None if bubble is None else 6 * bubble)


@pytest.mark.parametrize(("problem", "plan"), instances())
def test_a_batch_equals_the_flow_shop_recursion(problem: Problem, plan: Plan) -> None:
    trace = simulate(problem, plan, requests=9, interval_us=0)
    busy = [chain_of(problem).busy_us(*part) for part in chain_of(problem).parts(plan)]
    free = [0] * len(busy)
    for _ in range(9):
        time = 0
        for chunk, work in enumerate(busy):
            time = free[chunk] = max(time, free[chunk]) + work
    assert trace.makespan_us == max(free)
    assert trace.period_us == max(busy)


@pytest.mark.parametrize(("problem", "plan"), instances())
def test_units_and_requests_do_one_thing_at_a_time(problem: Problem, plan: Plan) -> None:
    trace = simulate(problem, plan, requests=6, interval_us=3, task_slots=2)
    for unit in trace.units:
        events = trace.on(unit)
        assert all(a.end_us <= b.start_us for a, b in pairwise(events))
    moments = sorted({event.start_us for event in trace.events})
    for moment in moments:
        started = {e.request for e in trace.events if e.start_us <= moment}
        finished = {r for r, end in enumerate(trace.output_us) if end <= moment}
        assert len(started - finished) <= 2


def test_one_task_slot_is_serial() -> None:
    problem = table_problem([[3, 9], [9, 4]], ["a", "b"], network="net")
    plan = Plan(
        chunks=(
            Chunk(network="net", start=0, stop=1, unit="a"),
            Chunk(network="net", start=1, stop=2, unit="b"),
        )
    )
    trace = simulate(problem, plan, requests=5, interval_us=0, task_slots=1)
    assert trace.makespan_us == 5 * 7000


def test_bad_input_is_refused() -> None:
    problem = table_problem([[3, 9], [9, 4]], ["a", "b"], network="net")
    whole = Plan(chunks=(Chunk(network="net", start=0, stop=2, unit="a"),))
    for options in ({"requests": 0}, {"requests": 1, "task_slots": 0}, {"requests": 1, "interval_us": -1}):
        with pytest.raises(InvalidInputError, match="at least"):
            simulate(problem, whole, **options)
    half = Plan(chunks=(Chunk(network="net", start=0, stop=1, unit="a"),))
    with pytest.raises(InvalidPlanError, match="not covered"):
        simulate(problem, half, requests=1)
    assert simulate(problem, whole, requests=1).period_us is None
