"""Task streams: against an event-by-event play, closed forms, and the paper's printed example."""

from __future__ import annotations

import random
from itertools import pairwise, product

import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.formulations.judge import score
from gapless.formulations.pipelines.quantities import PipelineValues
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.task_stream import PlanningTime, SpanKind, Task, play_stream, spread
from gapless.solvers.exhaustive import all_plans
from tests.pipeline_instances import drawn_problem


def drawn_plan(problem: Problem, rng: random.Random) -> Plan | None:
    plans = [plan for plan in all_plans(problem) if not score(problem, plan).violations]
    return rng.choice(plans) if plans else None


def values_of(problem: Problem, plan: Plan) -> PipelineValues:
    values = problem.formulation.numbers(problem, problem.formulation.code(problem, plan))
    assert isinstance(values, PipelineValues)
    return values


@pytest.mark.parametrize("seed", range(60))
def test_one_task_ends_as_the_closed_form_says_for_the_best_of_all_ways_to_spread(seed: int) -> None:
    rng = random.Random(seed)
    problem = drawn_problem(seed)
    plan = drawn_plan(problem, rng)
    if plan is None:
        return
    values, items = values_of(problem, plan), rng.randint(1, 7)
    latencies = [sum(s.compute_us + s.message_us for s in stages) for stages in values.stages]
    if not problem.data.overlap:
        assert latencies == [sum(s.stage_us for s in stages) for stages in values.stages]
    ways = (way for way in product(range(items + 1), repeat=len(latencies)) if sum(way) == items)
    best = min(
        max(
            latency + (count - 1) * period
            for count, latency, period in zip(way, latencies, values.periods_us, strict=True)
            if count
        )
        for way in ways
    )
    played = play_stream([Task(problem=problem, plan=plan, items=items)])
    assert played.makespan_us == best
    assert sum(played.tasks[0].items) == items


def test_the_next_task_starts_while_the_present_one_is_still_under_way() -> None:
    problem = next(p for p in map(drawn_problem, range(500)) if len(p.platform.units) >= 3 and long(p))
    plan = long(problem)
    assert plan is not None
    task = Task(problem=problem, plan=plan, items=40)
    alone = play_stream([task]).makespan_us
    ahead = play_stream([task, task])
    first, second = ahead.tasks
    assert second.start_us < first.end_us
    assert ahead.makespan_us < 2 * alone
    # Everybody goes on at once: the second task is 40 items more of the same pipeline.
    assert ahead.makespan_us == alone + 40 * values_of(problem, plan).period_us
    assert max(max(gaps) for gaps in ahead.switch_us.values()) <= values_of(problem, plan).period_us
    late = play_stream([task, task], PlanningTime(profile_us=1000, idle_us=500))
    assert late.makespan_us == 2 * (alone + 1500)
    waits = [span for span in late.spans if span.kind is not SpanKind.TASK]
    assert {span.kind for span in waits} == {SpanKind.PROFILE, SpanKind.IDLE}
    assert len(waits) == 2 * 2 * len(problem.platform.units)


def long(problem: Problem) -> Plan | None:
    """Return a plan with one pipeline of three devices, none of which waits for the input."""
    plans = (p for p in all_plans(problem) if len(p.chunks) == 3 and not p.order)
    found = (p for p in plans if not score(problem, p).violations and not problem.data.host)
    return next(found, None)


@pytest.mark.slow
def test_spans_of_a_device_do_not_overlap() -> None:
    rng = random.Random(5)
    problems = [drawn_problem(seed, devices=4, layers=4) for seed in range(400, 440)]
    plans = [(problem, drawn_plan(problem, rng)) for problem in problems]
    tasks = [Task(problem=p, plan=plan, items=rng.randint(1, 30)) for p, plan in plans if plan is not None]
    played = play_stream(tasks, PlanningTime(idle_us=3))
    for device in tasks[0].problem.platform.unit_names:
        spans = [span for span in played.spans if span.device == device]
        assert all(before.end_us <= after.start_us for before, after in pairwise(spans))
        assert all(span.busy_us <= span.end_us - span.start_us for span in spans)


def test_a_million_items_are_spread_by_their_results() -> None:
    fast, slow = ([step * k for k in range(1, 10)] for step in (10, 25))
    assert spread([fast, slow], 7) == (5, 2)  # the fifth of the first and the second of the other end at 50
    assert spread([slow, fast], 7) == (2, 5)


def test_what_planning_during_the_run_costs_in_pictures() -> None:
    """EPipe 2.1: 375.0 s of profiling and 18.1 s idle; a stage takes 64 pictures in 4.9 s; 5134 pictures."""
    planning = PlanningTime(profile_us=375_000_000, idle_us=18_100_000)
    assert planning.whole_us * 64 // 4_900_000 == 5134


@pytest.mark.parametrize("items", [0, 10**7])
def test_items_are_a_number_that_can_be_played(items: int) -> None:
    problem = drawn_problem(1)
    plan = drawn_plan(problem, random.Random(1))
    assert plan is not None
    with pytest.raises(InvalidInputError, match=rf"{items} items, must be from 1 to 100,000"):
        play_stream([Task(problem=problem, plan=plan, items=items)])


def test_tasks_share_their_devices() -> None:
    with pytest.raises(InvalidInputError, match="at least one task"):
        play_stream([])
    one, other = drawn_problem(1, devices=2), drawn_problem(2, devices=3)
    plans = [drawn_plan(problem, random.Random(1)) for problem in (one, other)]
    tasks = [Task(problem=p, plan=plan, items=1) for p, plan in zip((one, other), plans, strict=True) if plan]
    with pytest.raises(InvalidInputError, match="plan all of them for one platform"):
        play_stream(tasks)
