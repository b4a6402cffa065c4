"""Layers side by side: backends equal brute force, lists and moves know the times of the judge."""

from __future__ import annotations

import random

import pytest

import gapless
from gapless.formulations.jobs.reach import Reach
from gapless.formulations.jobs.tables import tables_of as job_tables_of
from gapless.formulations.jobs.tasks import ScheduleValues, tables_of
from gapless.formulations.judge import check, examined
from gapless.solvers.jobs.passages import unit_sets
from gapless.solvers.jobs.samples import samples as job_samples
from gapless.solvers.protocol import NEVER, Claim, SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.samples import with_shared_core
from gapless.solvers.sandbox import call_in_child
from gapless.solvers.task_graph.samples import random_tasks, samples
from gapless.solvers.task_graph.solving import (
    Critical,
    Moves,
    ScheduleSearch,
    first_schedules,
    latency_bound,
    list_schedule,
    upward_ranks,
)
from gapless.solvers.topological_orders import by_priority
from tests.task_graph_instances import least_latency, small_tasks

_SEEDS = 40


@pytest.mark.slow
@pytest.mark.usefixtures("short_walks")
@pytest.mark.parametrize("backend", ["exhaustive", "cpsat", "z3", "pulp"])
def test_exact_backends_equal_brute_force(backend: str) -> None:
    problems = [small_tasks(seed) for seed in range(_SEEDS)]
    worker = get_backend(backend)

    def answers() -> list[Claim]:
        return [worker.solve(problem, SolveOptions()) for problem in problems]

    claims = call_in_child(answers, backend) if worker.capabilities.isolated else answers()
    statuses = set()
    for problem, claim in zip(problems, claims, strict=True):
        best = least_latency(problem)
        assert claim.status is (SolveStatus.INFEASIBLE if best is None else SolveStatus.OPTIMAL)
        statuses.add(claim.status)
        if claim.plans:
            assert check(problem, claim.plans[0]) == ()
            assert gapless.score(problem, claim.plans[0]).value("latency") == best
    assert len(statuses) == 2  # some have no room for their layers


@pytest.mark.slow
def test_the_native_search_finds_the_best_plan_of_small_problems() -> None:
    missed = 0
    for seed in range(_SEEDS):
        problem = small_tasks(seed)
        search = ScheduleSearch(problem, seed=0)
        search.begin(NEVER)
        for number, _ in enumerate(search.rounds(NEVER)):
            if number > 4:
                break
        best = least_latency(problem)
        if best is None:
            assert not search.pool.codes
            continue
        found = problem.formulation.numbers(problem, search.pool.codes[0]).term("latency")
        assert search.least is not None
        assert search.least <= best <= found
        missed += found > best
    assert missed == 0


@pytest.mark.parametrize("seed", range(6))
def test_lists_and_moves_know_the_times_of_the_judge(seed: int) -> None:
    problem = random_tasks(24, 3, seed=seed)
    tables = tables_of(problem)
    paths = Reach(tables=tables)
    bound = latency_bound(tables, paths)
    rng = random.Random(seed)
    for code in first_schedules(tables, paths):
        numbers, broken = examined(problem, code)
        assert broken == ()
        assert bound <= numbers.term("latency")
        critical = Critical(tables, [*code.units], [*code.order])
        assert {name: numbers.term(name) for name in critical.terms} == critical.terms
        path = critical.path()
        assert not tables.before[path[-1]] or critical.waits_for[path[-1]] < 0
    moves = Moves(tables, ("latency",), range(3), seed=seed)
    best = first_schedules(tables, paths)[0]
    latency = problem.formulation.numbers(problem, best).term("latency")
    for code in moves.round(best, 400, NEVER):
        found = problem.formulation.numbers(problem, code).term("latency")
        assert found < latency
        latency = found
    order = by_priority(tables.tasks, [rng.random() for _ in range(tables.task_count)])
    place = {task: position for position, task in enumerate(order)}
    assert all(place[other] < place[task] for task in order for other, _ in tables.before[task])


def test_a_list_schedule_fills_gaps_and_heft_ranks_by_mean_times() -> None:
    # b waits 6 ms for a's tensor on the other unit; c fits in the gap before it.
    problem = gapless.graphs.latency_graph(
        {"a": [2, 9], "b": [9, 2], "c": [9, 4]}, [("a", "b")], ["x", "y"], transfers_ms={"a": 4}
    )
    tables = tables_of(problem)
    ranks = upward_ranks(tables)
    index = {name: number for number, name in enumerate(tables.layers)}
    assert ranks[tables.tasks.of[index["a"]]] == 5500 + 4000 + 5500
    order = [tables.tasks.of[index[name]] for name in "abc"]
    found = list_schedule(tables, order)
    assert found is not None
    start = ScheduleValues(tables, found).start_us
    assert [start[task] for task in order] == [0, 6000, 0]


@pytest.mark.parametrize("backend", ["cpsat", "pulp"])
def test_exact_backends_agree_on_a_drawn_graph(backend: str) -> None:
    problem = random_tasks(9, 2, seed=3)
    found = gapless.plan(problem, backend=backend)
    assert found.status == "optimal"
    native = gapless.plan(problem)
    assert native.objective is not None
    assert found.objective is not None
    assert (native.bound or 0) <= found.objective <= native.objective


@pytest.mark.slow
def test_limits_and_rules_are_kept() -> None:
    problem = random_tasks(15, 3, seed=1)
    found = gapless.plan(problem.with_limits(max_units=2, min_units=2))
    assert found.plan is not None
    assert len({chunk.unit for chunk in found.plan.chunks}) == 2
    ruled = gapless.plan(problem, rules=[lambda view: view.on("l3", "unit2")])
    assert ruled.plan is not None
    assert any(c.start <= 3 < c.stop and c.unit == "unit2" for c in ruled.plan.chunks)


def test_units_that_share_cores_are_used_together_by_tasks_and_not_by_requests() -> None:
    side_by_side, requests = (with_shared_core(each().plain) for each in (samples, job_samples))
    assert [*unit_sets(side_by_side, tables_of(side_by_side))] == [{0, 1}]
    assert [*unit_sets(requests, job_tables_of(requests))] == [{0}, {1}]


def test_of_many_units_that_do_not_exclude_each_other_there_is_one_set() -> None:
    """Seen: all smaller sets were walked, long after the time was up."""
    problem = random_tasks(2, 40, seed=1)
    assert [*unit_sets(problem, tables_of(problem))] == [set(range(40))]
