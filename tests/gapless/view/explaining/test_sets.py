"""Explanations of pipelines against brute force: other units, other sets of units, the next best plan."""

from __future__ import annotations

import pytest

import gapless
from gapless.formulations.judge import check, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.remaining import other_devices
from gapless.solvers.exhaustive import all_plans
from gapless.view.explaining.explain import explain
from tests.pipeline_boards import one_board
from tests.pipeline_instances import drawn_problem


def worth(problem: Problem) -> dict[Plan, tuple[int, ...]]:
    judged = ((plan, score(problem, plan)) for plan in all_plans(problem))
    return {plan: found.values(problem.objective.terms) for plan, found in judged if found.valid}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 4, 6, 9, 12, 13])
def test_every_answer_is_the_best_of_its_kind(seed: int) -> None:
    problem = drawn_problem(seed, layers=3, devices=3)
    known = worth(problem)
    if not known:
        pytest.skip("no plan is valid")
    plan = min(known, key=lambda one: (known[one], str(one)))
    why = explain(problem, plan, time_limit_s=None)
    assert why.proven
    variants = dict(other_devices(problem))
    assert [reason.text for reason in why.sets] == list(variants)
    for reason in why.sets:
        values = worth(variants[reason.text])
        assert reason.otherwise.values == (min(values.values()) if values else None), reason.text
        assert reason.otherwise.plan is None or not check(variants[reason.text], reason.otherwise.plan)
    for unit in why.units:
        kept = [values for one, values in known.items() if _uses(one, unit.unit) is not unit.used]
        assert unit.otherwise.values == min(kept, default=None), unit.unit


def _uses(plan: Plan, unit: str) -> bool:
    return any(chunk.unit == unit for chunk in plan.chunks)


def test_a_better_plan_that_another_question_brings_up_is_used() -> None:
    problem = one_board()
    best = gapless.plan(problem, backend="exhaustive").plan
    assert best is not None
    why = explain(problem, best, time_limit_s=None)
    one, two = (reason.otherwise for reason in why.sets)
    assert one.plan is not None
    assert two.plan is not None
    assert len({chunk.unit for chunk in one.plan.chunks}) == 1
    assert two.values is not None
    assert one.values is not None
    assert two.values <= one.values


def test_other_formulations_ask_for_no_sets() -> None:
    problem = gapless.table_problem([[9, 2], [1, 8]], ["cpu", "gpu"])
    plan = gapless.plan(problem).plan
    assert plan is not None
    assert explain(problem, plan).sets == ()
