"""Proofs of small workloads by branch and bound: against all plans, one by one."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.workload_instances import random_workload
from gapless.formulations.flow_shop.rules import before, keep_off
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Request, RequestOrder, Workload
from gapless.solvers.exhaustive import ExhaustiveBackend
from gapless.solvers.flow_shop import solving
from gapless.solvers.flow_shop.arrays import ChainArrays, Ints
from gapless.solvers.flow_shop.branch_and_price import BranchAndPrice
from gapless.solvers.flow_shop.branching import places_within
from gapless.solvers.flow_shop.search import JointSearch
from gapless.solvers.flow_shop.ways import Ways
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import SolveOptions, SolveStatus
from tests.workload_instances import workload_problem

from .cutting import every_cut, networks

OPTIONS = SolveOptions(time_limit_s=60)
AMOUNTS = st.lists(st.integers(0, 9), min_size=4, max_size=4)


def drawn(seed: int) -> Problem:
    """Return a small workload, with whatever may be wrong with it."""
    rng = random.Random(seed)
    units = rng.randint(2, 3)
    tables: dict[str, list[list[int | None]]] = {
        name: [
            [None if unit and rng.random() < 0.1 else rng.randint(1, 30) for unit in range(units)]
            for _ in range(2 if units > 2 else 3)
        ]
        for name in "ab"
    }
    copies = {
        name: [[rng.randint(0, 5) for _ in range(units)] for _ in range(len(rows) + 1)]
        for name, rows in tables.items()
    }
    slowdown = [[0 if u == v else rng.choice((0, 100, 900)) for v in range(units)] for u in range(units)]
    workload = Workload(
        requests=(Request(name="any", network="a"),),
        order=rng.choice(list(RequestOrder)),
        task_slots=rng.choice((None, None, 1, 2)),
    )
    problem = workload_problem(
        tables,
        [rng.choice("ab") for _ in range(rng.randint(2, 3))],
        copies=copies,
        slowdown=rng.choice((None, slowdown)),
        objective=rng.choice(("makespan", "makespan,latency", "makespan,displacement")),
        workload=workload,
    )
    return _demanding(problem, rng)


def _demanding(problem: Problem, rng: random.Random) -> Problem:
    data = problem.data
    assert isinstance(data, Workload)
    if rng.random() < 0.5:
        requests = tuple(
            replace(r, arrival_us=rng.choice((0, 20)), deadline_us=rng.choice((None, rng.randint(30, 120))))
            for r in data.requests
        )
        problem = replace(problem, data=replace(data, requests=requests))
    if rng.random() < 0.3:
        problem = problem.with_rules(
            before(data.names[1], data.names[0]), keep_off(data.names[0], unit="npu")
        )
    return problem


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proved_is_what_all_plans_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "MOST_WALKED", 0)
    monkeypatch.setattr("gapless.solvers.flow_shop.search._STEPS", 60)
    problem = drawn(seed)
    claim, truth = NativeBackend().solve(problem, OPTIONS), ExhaustiveBackend().solve(problem, OPTIONS)
    assert (claim.status, claim.values) == (truth.status, truth.values)


def test_a_search_that_finds_nothing_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    search = JointSearch(random_workload(2, 3, 0, slowdown=True), counted=True)
    search.contexts  # noqa: B018 - no plan is known when the proof begins
    monkeypatch.setattr("gapless.solvers.flow_shop.branching._MOST_CUTS", 10)
    monkeypatch.setattr(BranchAndPrice, "applies", lambda shop: False)
    assert not search.prove()
    assert search.kept.best is None


@pytest.mark.slow
@given(arrays=networks(), prices=AMOUNTS, discounts=AMOUNTS, most=st.integers(0, 300))
def test_all_cuts_that_pay_little_are_listed(
    arrays: ChainArrays, prices: list[int], discounts: list[int], most: int
) -> None:
    units, required = arrays.unit_count, frozenset({arrays.unit_count - 1})
    rows = np.array(prices[:units]), np.array(discounts[:units])
    every = list(every_cut(arrays))
    for ways in (Ways(arrays), Ways(arrays, required)):
        found = places_within(ways, *rows, most)
        assert found is not None
        assert sorted(map(tuple, found.tolist())) == [
            places for places, times in every if ways.allows(places) and priced(places, times, *rows) <= most
        ]


def priced(places: tuple[int, ...], times: tuple[int, ...], prices: Ints, discounts: Ints) -> int:
    used = np.diff(np.array(places)) > 0
    return int(prices @ np.array(times) - discounts @ used)


def test_deadlines_without_time_are_found_on_large_workloads() -> None:
    problem = random_workload(10, 4, balanced=True, slowdown=True)
    data = problem.data
    assert isinstance(data, Workload)
    tight = tuple(replace(request, deadline_us=400_000) for request in data.requests)
    claim = NativeBackend().solve(replace(problem, data=replace(data, requests=tight)), OPTIONS)
    assert claim.status is SolveStatus.INFEASIBLE
    assert claim.exhausted
