"""Schedules that do what the program behind the contention bound says."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.workload_instances import random_workload
from gapless.formulations.problem import Problem
from gapless.formulations.workload import RequestOrder
from gapless.solvers.flow_shop.measure import Measure
from gapless.solvers.flow_shop.search import JointSearch, guided_drafts
from gapless.solvers.protocol import NEVER, Deadline
from tests.workload_instances import workload_problem


def above_the_bound(problem: Problem) -> float:
    """Return by which share the best of the schedules is longer than the bound, played with slowdown."""
    context, bounds = JointSearch(problem).contexts[0]
    measure = Measure(problem)
    drafts = list(guided_drafts(context, bounds.contention, NEVER))
    assert drafts
    for draft in drafts:
        assert sorted(draft.order) == list(range(len(draft.places)))
    return (
        min(measure.of(context.schedule(draft)).key[1] for draft in drafts) / bounds.contention.bound_us - 1
    )


@pytest.mark.parametrize("slowdown", [False, True])
def test_many_requests_are_close_to_the_bound(slowdown: bool) -> None:
    assert above_the_bound(random_workload(400, 4, 3, slowdown=slowdown)) < 0.1


def test_a_unit_waits_for_the_turn_of_its_requests() -> None:
    """The first unit has little to do. Served at once, its "b" would leave the second unit without them."""
    problem = workload_problem({"a": [[None, 100]], "b": [[10, None], [None, 20]]}, ["a"] * 40 + ["b"] * 40)
    assert above_the_bound(problem) < 0.02
    context, bounds = JointSearch(problem).contexts[0]
    order = next(guided_drafts(context, bounds.contention, NEVER)).order
    for start in range(0, 80, 20):
        taken = Counter(request < 40 for request in order[start : start + 20])
        assert abs(taken[True] - 10) <= 2


def test_no_draft_where_the_time_is_up() -> None:
    context, bounds = JointSearch(random_workload(60, 4, 3)).contexts[0]
    assert not list(guided_drafts(context, bounds.contention, Deadline(0.0)))


def test_a_fixed_order_is_kept() -> None:
    problem = random_workload(12, 4, 3, order=RequestOrder.FIXED)
    context, bounds = JointSearch(problem).contexts[0]
    (draft,) = guided_drafts(context, bounds.contention, NEVER)
    assert draft.order == tuple(range(12))
