"""The local search and its bounds against every plan, on every feature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from benchmarks.workload_instances import random_workload
from gapless.formulations.flow_shop.quantities import TERMS as WORKLOAD_TERMS
from gapless.formulations.flow_shop.rules import before, deadline, keep_off, memory_cap_while, never_beside
from gapless.formulations.flow_shop.tables import Schedule, shop_of, workload_of
from gapless.formulations.judge import check, score
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction
from gapless.formulations.terms import Objective
from gapless.formulations.workload import Execution, RequestOrder
from gapless.solvers.chunking.samples import powered
from gapless.solvers.exhaustive import ExhaustiveBackend, all_plans, count_plans
from gapless.solvers.flow_shop.search import JointSearch, Proof, best_schedule, objective_bound
from gapless.solvers.flow_shop.starts import mixed_order
from gapless.solvers.protocol import Clock, Deadline, SolveOptions
from tests.workload_instances import workload_problem, workload_problems


def searched(problem: Problem, *, top: int = 1, seed: int = 0) -> JointSearch:
    search = JointSearch(problem, top=top, seed=seed)
    search.run()
    return search


@pytest.mark.slow
@settings(max_examples=10)
@given(problem=workload_problems())
def test_never_better_than_every_plan_and_bounds_below(problem: Problem) -> None:
    assume(count_plans(problem) <= 600)
    best = ExhaustiveBackend().solve(problem, SolveOptions())
    search = searched(problem)
    if best.values is None:
        assert search.kept.best is None
        return
    assert not search.impossible
    assert search.bounds[0] <= best.values[0]
    if search.kept.best is not None:
        assert search.kept.best[1:] >= best.values
        plan = shop_of(problem).plan(search.kept.schedules[0])
        assert score(problem, plan).values(problem.objective.terms) == search.kept.best[1:]
        assert check(problem, plan) == ()


@pytest.mark.slow
@given(problem=workload_problems())
def test_no_valid_plan_ends_before_the_makespan_bound(problem: Problem) -> None:
    assume(count_plans(problem) <= 300)
    judged = [score(problem, plan) for plan in all_plans(problem)]
    ends = [one.value("makespan") for one in judged if one.valid]
    if ends:
        assert objective_bound(problem.with_objective("makespan")) <= min(ends)


SEEDS = (0, 1, 6)


def small(seed: int, objective: str) -> Problem:
    """Return three requests of two networks of three layers on two units, from a table of numbers."""
    tables: dict[str, list[list[int | None]]] = {
        name: [[(7 * seed + 13 * i + 5 * u + 3 * shift) % 17 + 1 for u in range(2)] for i in range(3)]
        for shift, name in enumerate(("a", "b"))
    }
    slowdown = [[0, 200], [100, 0]] if seed % 2 else None
    return workload_problem(tables, ["a", "b", "a"], slowdown=slowdown, high=("b",), objective=objective)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimum_is_found(seed: int) -> None:
    """One walk over all plans knows the best values of each objective."""
    problem = small(seed, "makespan")
    judged = [score(problem, plan) for plan in all_plans(problem)]
    for objective in ("makespan", "makespan,latency", "latency", "period,work"):
        asked = small(seed, objective)
        found = searched(asked).kept.best
        assert found is not None
        best = min(one.values(asked.objective.terms) for one in judged if one.valid)
        assert found[1:] == best, objective


@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize("term", sorted(WORKLOAD_TERMS))
@pytest.mark.parametrize("execution", Execution)
def test_every_term_gives_valid_plans(term: str, execution: Execution) -> None:
    workload = powered(random_workload(6, 3, seed=3, slowdown=True, execution=execution))
    problem = replace(workload, objective=Objective(terms=(term,)))
    schedule, _ = best_schedule(problem, time_limit_s=0.1)
    assert schedule is not None
    assert check(problem, shop_of(problem).plan(schedule)) == ()


@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize(
    "rule",
    [
        before("r4", "r0"),
        never_beside("r0", "r1"),
        deadline("r2", most_us=60_000),
        memory_cap_while("r1", most_bytes=151_500_000),
        keep_off("r3", unit="npu"),
    ],
    ids=["before", "never_beside", "deadline", "memory_cap_while", "keep_off"],
)
def test_rules_are_kept(rule: RuleFunction) -> None:
    problem = random_workload(6, 3, seed=4).with_rules(rule)
    schedule, _ = best_schedule(problem, time_limit_s=1.0)
    assert schedule is not None
    assert check(problem, shop_of(problem).plan(schedule)) == ()


@pytest.mark.usefixtures("counted_time")
def test_constraints_of_the_problem_are_kept() -> None:
    plain = random_workload(6, 3, seed=4)
    first, *others = workload_of(plain).requests
    late = replace(
        workload_of(plain), requests=(replace(first, arrival_us=30_000, deadline_us=90_000), *others)
    )
    problem = replace(plain, data=replace(late, task_slots=3)).with_limits(min_units=3)
    schedule, _ = best_schedule(problem, time_limit_s=1.0)
    assert schedule is not None
    assert check(problem, shop_of(problem).plan(schedule)) == ()


@pytest.mark.slow
def test_equal_seeds_give_equal_schedules() -> None:
    problem = random_workload(8, 3, seed=2, slowdown=True)
    one, other = (searched(problem, top=3, seed=5).kept.schedules for _ in range(2))
    assert one == other


def test_the_best_of_several_are_distinct_and_in_order() -> None:
    problem = random_workload(5, 3, seed=1)
    search = searched(problem, top=7)
    plans = [shop_of(problem).plan(schedule) for schedule in search.kept.schedules]
    assert len(set(plans)) == 7
    ends = [score(problem, plan).value("makespan") for plan in plans]
    assert all(one <= other for one, other in pairwise(ends))


@pytest.mark.slow
def test_long_orders_are_searched_in_stretches() -> None:
    problem = random_workload(60, 3, seed=1)
    start = JointSearch(problem, deadline=Deadline(0))
    start.run()
    search = searched(problem)
    assert search.kept.best is not None
    assert start.kept.best is not None
    assert search.bounds[0] <= search.kept.best[1] < start.kept.best[1]
    plan = shop_of(problem).plan(search.kept.schedules[0])
    assert score(problem, plan).value("makespan") == search.kept.best[1]


@pytest.mark.usefixtures("counted_time")
def test_a_fixed_order_stays() -> None:
    problem = random_workload(7, 3, seed=1, order=RequestOrder.FIXED)
    schedule, _ = best_schedule(problem, time_limit_s=0.2)
    assert schedule is not None
    assert schedule.order == tuple(range(7))


@given(rows=st.lists(st.sampled_from([(9, 0), (0, 9), (3, 3)]), min_size=1, max_size=8))
def test_the_mixed_order_has_every_request_once(rows: list[tuple[int, ...]]) -> None:
    assert sorted(mixed_order(rows)) == list(range(len(rows)))


def test_the_mixed_order_takes_turns() -> None:
    kinds = [[(9, 0), (0, 9), (0, 9)][request // 4] for request in range(12)]
    order = mixed_order(kinds)
    assert [kinds[request][0] for request in order].count(9) == 4
    assert max(abs(3 * sum(kinds[r][0] == 9 for r in order[:at]) - at) for at in range(13)) <= 3


def test_rules_about_who_runs_when_are_kept_from_the_start() -> None:
    """A search that begins with everything on one unit need not stumble on a valid plan."""
    tables: dict[str, list[list[int | None]]] = {
        name: [[(7 * layer + 5 * unit + 3 * at) % 17 + 1 for unit in range(3)] for layer in range(12)]
        for at, name in enumerate("abcdef")
    }
    plain = workload_problem(tables, list("abcdef"))
    names = workload_of(plain).names
    rules = [never_beside(one, other) for one, other in pairwise(names)]
    problem = plain.with_rules(*rules, before(names[0], names[-1]))
    search = JointSearch(problem, deadline=Deadline(1e-9))
    search.run()
    assert search.kept.best is not None
    assert search.kept.best[0] == 0


@pytest.mark.parametrize(
    ("makespan_us", "ruled", "proof", "shares_s"),
    [
        (105, True, Proof.PRICED, [40.0]),
        (120, True, Proof.PRICED, [10.0, 40.0]),  # meanwhile it has come near
        (140, True, Proof.PRICED, [10.0]),
        (None, True, Proof.PRICED, [40.0]),
        (120, False, Proof.PRICED, [40.0]),
        (120, True, Proof.ALWAYS, [40.0]),
    ],
)
def test_under_rules_a_proof_has_little_time_where_none_is_in_sight(
    makespan_us: int | None, ruled: bool, proof: Proof, shares_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds know no rules: where the best plan is far from them, the search has the time."""
    problem = random_workload(3, 3, 1, slowdown=True)
    if ruled:
        problem = problem.with_rules(lambda view: view.makespan_us() >= 0)
    allowed_s = []

    class Part:
        def prove(self, deadline: Deadline, most_programs: float, on_bound: Callable[[int], None]) -> bool:
            allowed_s.append(deadline.left_s)
            on_bound(112)
            return False

    monkeypatch.setattr(JointSearch, "bounds", (100,))
    monkeypatch.setattr(JointSearch, "_least", [100])
    monkeypatch.setattr(JointSearch, "_parts", [Part()])
    found = JointSearch(problem, deadline=Deadline(50.0, Clock(lambda: 0.0)), proof=proof)
    if makespan_us is not None:
        found.kept.add((0, makespan_us), Schedule((0, 1, 2), ()))
    assert not found.prove()
    assert allowed_s == shares_s
