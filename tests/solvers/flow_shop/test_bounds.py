"""Bounds for a given order: by hand, next to the other bounds, and never above an optimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.flow_bound import optima
from benchmarks.workload_instances import random_workload, small_workload
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.problem import Problem
from gapless.formulations.workload import RequestOrder
from gapless.solvers.flow_shop.arrays import build_arrays
from gapless.solvers.flow_shop.bounds import path_bound_us
from gapless.solvers.flow_shop.contention_bound import Kind, kinds_of
from gapless.solvers.flow_shop.search import JointSearch, objective_bound
from gapless.solvers.flow_shop.ways import Ways
from gapless.solvers.protocol import Deadline
from tests.workload_instances import workload_problem


def in_order(problem: Problem) -> Problem:
    return replace(problem, data=replace(problem.data, order=RequestOrder.FIXED))


def kinds(problem: Problem) -> tuple[Kind, ...]:
    return kinds_of(problem, [Ways(build_arrays(chain)) for chain in shop_of(problem).chains])


def test_a_path_turns_where_a_request_must_use_both_units() -> None:
    """The second unit waits for the first request's 50 us; then it works for 40, and 30 of the second."""
    first = [[50, None], [None, 40]]
    second = [[1, None], [None, 30]]
    problem = in_order(workload_problem({"a": first, "b": second}, ["a", "b"]))
    assert optima(problem, ("makespan",)) == (120,)
    assert 0.98 * 120 <= path_bound_us(kinds(problem)) <= 120


def test_what_a_request_does_before_a_unit_that_it_may_skip_does_not_count() -> None:
    """The first request runs 10 us on the first unit alone; the second one waits for nothing."""
    problem = in_order(workload_problem({"a": [[10, 90]], "b": [[None, 40]]}, ["a", "b"]))
    assert optima(problem, ("makespan",)) == (40,)
    assert path_bound_us(kinds(problem)) <= 40


@pytest.mark.parametrize("seed", range(60))
def test_no_optimum_is_below(seed: int) -> None:
    problem = in_order(small_workload(seed))
    least = optima(problem, ("makespan",))
    if least is not None:
        assert objective_bound(problem) <= least[0]


def test_it_is_nearer_where_requests_wait_for_each_other() -> None:
    problem = random_workload(10, 4, 1, order=RequestOrder.FIXED)
    search = JointSearch(problem)
    ((_, bounds),) = search.contexts
    assert objective_bound(problem) > 1.05 * bounds.contention.bound_us


def test_any_time_gives_a_bound_and_large_workloads_none() -> None:
    problem = random_workload(6, 4, 0, order=RequestOrder.FIXED)
    assert 0 < path_bound_us(kinds(problem), Deadline(0)) <= path_bound_us(kinds(problem))
    assert path_bound_us(kinds(random_workload(65, 3, 0, order=RequestOrder.FIXED))) == 0
