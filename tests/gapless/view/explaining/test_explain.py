"""Explanations against brute force: every answer is the best plan of its kind, and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gapless
from gapless.formulations.demands import demands_of
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.judge import check, score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective
from gapless.solvers.exhaustive import all_plans
from gapless.view.explaining.explanation import Alternative, Explanation, UnitReason
from tests.instances import co_run_problems, ruled_problems, solvable
from tests.workload_instances import workload_problems

Values = tuple[int, ...]
Worth = dict[Plan, Values]


def valid_plans(problem: Problem) -> Worth:
    """Return the values of every valid plan."""
    judged = ((plan, score(problem, plan)) for plan in all_plans(problem))
    return {plan: found.values(problem.objective.terms) for plan, found in judged if found.valid}


def least(worth: Worth, suits: Callable[[Plan], bool] = lambda plan: True) -> Values | None:
    return min((values for plan, values in worth.items() if suits(plan)), default=None)


def uses(plan: Plan, unit: str) -> bool:
    return any(chunk.unit == unit for chunk in plan.chunks)


def otherwise(reason: UnitReason) -> Callable[[Plan], bool]:
    """Return whether a plan does with a unit what the explained one does not."""
    return lambda plan: uses(plan, reason.unit) != reason.used


def assert_best(found: Alternative, worth: Worth, expected: Values | None) -> None:
    """Check an answer against the best plan of its kind."""
    assert found.proven
    assert found.values == expected
    assert (found.plan is None) == (expected is None)
    assert bool(found.reason) == (expected is None)
    if found.plan is not None:
        assert worth[found.plan] == expected


def assert_cuts(problem: Problem, plan: Plan, why: Explanation) -> None:
    """Check that every cut is there, moved to its neighbours and judged."""
    inner = [chunk for chunk in plan.chunks if chunk.start > 0]
    assert [(cut.request, cut.boundary, cut.after) for cut in why.cuts] == [
        (chunk.request, chunk.start, chunk.unit) for chunk in inner
    ]
    legal = {network.name: network.legal_cuts for network in problem.networks}
    for cut in why.cuts:
        own = [chunk for chunk in plan.chunks if chunk.request == cut.request]
        before = next(chunk for chunk in own if chunk.stop == cut.boundary)
        after = next(chunk for chunk in own if chunk.start == cut.boundary)
        earlier = [at for at in legal[cut.network] if before.start < at < before.stop]
        later = [at for at in legal[cut.network] if after.start < at < after.stop]
        for moved, places in ((cut.earlier, earlier[-1:]), (cut.later, later[:1])):
            assert (moved is None) == (not places)
            if moved is not None:
                assert_moved(problem, plan, moved, cut.boundary, places[0])


def assert_moved(problem: Problem, plan: Plan, moved: Alternative, old: int, new: int) -> None:
    assert moved.plan is not None
    gone, come = set(plan.chunks) - set(moved.plan.chunks), set(moved.plan.chunks) - set(plan.chunks)
    assert len(gone) == len(come) == 2
    assert {at for c in gone for at in (c.start, c.stop)} - {old} | {new} == {
        at for c in come for at in (c.start, c.stop)
    }
    broken = check(problem, moved.plan)
    assert bool(moved.reason) == bool(broken)
    if moved.values is not None:
        assert moved.values == score(problem, moved.plan).values(problem.objective.terms)
    else:
        assert {violation.rule for violation in broken} == {"support"}


def assert_explained(problem: Problem, plan: Plan, worth: Worth, others: Iterable[Plan]) -> None:
    """Check a whole explanation, all of which is proven, against all valid plans."""
    why = gapless.explain(problem, plan, time_limit_s=None)
    best = least(worth)
    assert best is not None
    assert (why.terms, why.values) == (problem.objective.terms, worth[plan])
    assert why.proven == (worth[plan] == best)
    assert_cuts(problem, plan, why)
    assert [reason.unit for reason in why.units] == list(problem.platform.unit_names)
    for reason in why.units:
        assert reason.used == uses(plan, reason.unit)
        expected = least(worth, otherwise(reason))
        assert_best(reason.otherwise, worth, expected)
    demands = demands_of(problem)
    assert [binding.name for binding in why.bindings] == [demand.name for demand in demands]
    for binding, demand in zip(why.bindings, demands, strict=True):
        free = valid_plans(demand.without(problem))
        without = least(free)
        assert without is not None
        assert_best(binding.without, free, without)
        assert binding.binds == (without < best)
    other_values = least({other: worth[other] for other in others})
    assert why.next_best.values == other_values
    if why.next_best.plan is not None:
        assert why.next_best.plan in set(others)
    assert ("not the best plan" in why.summary) == (worth[plan] != best)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    data=st.data(),
    problem=st.one_of(ruled_problems(most_layers=5, most_units=3), co_run_problems(most_layers=4)).map(
        solvable
    ),
)
def test_one_network_agrees_with_brute_force(data: st.DataObject, problem: Problem) -> None:
    worth = valid_plans(problem)
    plan = data.draw(st.one_of(st.just(min(worth, key=worth.__getitem__)), st.sampled_from(list(worth))))
    assert_explained(problem, plan, worth, [other for other in worth if other != plan])


@settings(max_examples=25)
@given(data=st.data(), problem=workload_problems(most_requests=2, most_layers=2).map(solvable))
def test_small_workloads_agree_with_brute_force(data: st.DataObject, problem: Problem) -> None:
    worth = valid_plans(problem)
    plan = data.draw(st.one_of(st.just(min(worth, key=worth.__getitem__)), st.sampled_from(list(worth))))
    assert_explained(
        problem, plan, worth, [other for other in worth if shape(problem, other) != shape(problem, plan)]
    )


def shape(problem: Problem, plan: Plan) -> list[object]:
    """Return a plan without the names of its requests."""
    known = {request.name: request for request in workload_of(problem).requests}
    return [
        (replace(known[name], name="any"), [replace(chunk, request="any") for chunk in plan.of(name)])
        for name in plan.order
    ]


def slack(problem: Problem) -> Problem:
    return problem.with_objective(Objective(terms=("idle", "latency"), period_slack_permille=200))


@pytest.mark.slow
@settings(max_examples=25)
@given(data=st.data(), problem=ruled_problems(most_layers=4, most_units=3).map(slack).map(solvable))
def test_slack_mode_compares_plans_below_the_cap(data: st.DataObject, problem: Problem) -> None:
    every = valid_plans(problem)
    periods = {plan: score(problem, plan).period_us for plan in every}
    cap = min(periods.values()) * 1200 // 1000
    worth = {plan: values for plan, values in every.items() if periods[plan] <= cap}
    plan = data.draw(st.sampled_from(list(every)))
    why = gapless.explain(problem, plan, time_limit_s=None)
    assert why.values == every[plan]
    expected = least(worth, lambda known: known != plan)
    assert why.next_best.values == expected
    for reason in why.units:
        best = least(worth, otherwise(reason))
        assert_best(reason.otherwise, worth, best)
    slack = [binding for binding in why.bindings if binding.name == "slack"]
    given_us = problem.limits.max_period_us
    assert len(slack) == (given_us is None or given_us > cap)
    for binding in slack:
        assert binding.binds == (least(every) != least(worth))
        assert_best(binding.without, every, least(every))
