"""Proofs of small workloads by branch and bound: against all plans, one by one."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.workload_instances import random_workload
from gapless.formulations.flow_shop.rules import before, keep_off
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Request, RequestOrder, Workload
from gapless.solvers.exhaustive import ExhaustiveBackend
from gapless.solvers.flow_shop import solving
from gapless.solvers.flow_shop.arrays import build_arrays
from gapless.solvers.flow_shop.branching import all_places
from gapless.solvers.flow_shop.search import JointSearch
from gapless.solvers.flow_shop.ways import Ways
from gapless.solvers.native import NativeBackend
from gapless.solvers.protocol import SolveOptions, SolveStatus
from tests.workload_instances import workload_problem

OPTIONS = SolveOptions(time_limit_s=60)


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
    assert not search.prove()
    assert search.kept.best is None


def test_all_cuts_are_listed() -> None:
    shop = shop_of(workload_problem({"a": [[5, 3], [None, 7], [2, 2]]}, ["a"]))
    found = all_places(Ways(build_arrays(shop.chains[0])))
    assert found is not None
    assert sorted(map(tuple, found.tolist())) == [(0, 0, 3), (0, 1, 3)]


def test_deadlines_without_time_are_found_on_large_workloads() -> None:
    problem = random_workload(10, 4, balanced=True, slowdown=True)
    data = problem.data
    assert isinstance(data, Workload)
    tight = tuple(replace(request, deadline_us=400_000) for request in data.requests)
    claim = NativeBackend().solve(replace(problem, data=replace(data, requests=tight)), OPTIONS)
    assert claim.status is SolveStatus.INFEASIBLE
    assert claim.exhausted
