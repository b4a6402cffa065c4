"""Bounds by branching on passages hold for every schedule, and rise where prices mix passages."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from benchmarks.schedule_instances import sliced
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.space import all_plans
from gapless.formulations.jobs.tables import JobTables, tables_of
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest
from gapless.solvers.jobs.bounds import PassageTree, _Free, price_bound
from gapless.solvers.jobs.makespan import MakespanSearch
from gapless.solvers.jobs.passages import Instance, Passages, instance_of
from gapless.solvers.protocol import NEVER, Deadline
from tests.jobs_instances import drawn_pair, jobs_problem, passing


def whole(problem: Problem) -> tuple[JobTables, Instance]:
    tables = tables_of(problem)
    return tables, instance_of(tables, range(tables.unit_count))


def prices_us(instance: Instance) -> int:
    priced = price_bound(instance)
    assert priced is not None
    return priced.bound_us


def check(seeds: Iterable[int]) -> None:
    risen = 0
    for seed in seeds:
        for problem in (drawn_pair(seed), sliced(drawn_pair(seed), seed)):
            tables, instance = whole(problem)
            best_us = min(JobValues(tables, code).makespan_us for code in all_plans(tables))
            tree = PassageTree(instance, prices_us(instance))
            before_us = tree.bound_us
            for most in (1, 5, 60):
                tree.improve(2 * best_us, NEVER, most)  # parts far above the optimum stay open, too
                assert before_us <= tree.bound_us <= best_us, (seed, most)
            risen += tree.bound_us > before_us
    assert risen > len(list(seeds)) // 2


def test_bounds_are_never_above_the_optimum() -> None:
    check(range(6))


@pytest.mark.slow
def test_bounds_are_never_above_many_optima() -> None:
    check(range(6, 60))


def undivided(count: int) -> Problem:
    """Return alike requests of one layer that two units run equally fast, and no unit twice as fast."""
    requests = tuple(JobRequest(name=f"r{index}", network="a") for index in range(count))
    return passing(jobs_problem({"a": [[6_000, 6_000]]}, requests), "any")


def test_a_layer_is_not_shared_by_units() -> None:
    """Prices let each of three requests take half of each unit: 9 ms. One unit has two of them: 12 ms."""
    _, instance = whole(undivided(3))
    tree = PassageTree(instance, prices_us(instance))
    assert tree.bound_us == 9_000
    tree.improve(12_060, NEVER)
    assert tree.bound_us == 12_000


def test_all_parts_count() -> None:
    """Three layers of 6 and two of 5 ms on two units: 14 ms each would be fair, 16 and 12 is the best."""
    names = ("a", "a", "a", "b", "b")
    requests = tuple(JobRequest(name=f"r{index}", network=name) for index, name in enumerate(names))
    rows: dict[str, list[list[int | None]]] = {"a": [[6_000, 6_000]], "b": [[5_000, 5_000]]}
    _, instance = whole(passing(jobs_problem(rows, requests), "any"))
    tree = PassageTree(instance, prices_us(instance))
    assert tree.bound_us == 14_000
    tree.improve(20_000, NEVER)
    assert tree.bound_us == 16_000


def test_alike_requests_are_decided_together() -> None:
    """Of five alike ones three are on one unit; each alone would take a part for each of 32 choices."""
    _, instance = whole(undivided(5))
    tree = PassageTree(instance, prices_us(instance))
    tree.improve(18_000, NEVER)
    assert tree.bound_us == 18_000
    assert tree.programs <= 13


def test_the_search_ends_with_the_proof() -> None:
    search = MakespanSearch(undivided(3), seed=0, fixed=True)
    search.begin(NEVER)
    assert search.bound(NEVER) == 12_000
    assert search.least_by == "branching"
    assert search.pool.meets(search.least)


def test_no_time_leaves_the_bound_that_is_known() -> None:
    _, instance = whole(undivided(3))
    tree = PassageTree(instance, 9_000)
    tree.improve(12_000, Deadline(0.0))
    assert tree.bound_us == 9_000


def test_chunks_end_where_a_section_is_not_passed() -> None:
    passages = Passages(
        until=((0, 10, 20, 30),), since=((0, 10, 20, 30),), reach=((3, 3, 3, 3),), steps=((0, 0, 0),)
    )
    left = passages.without(1, [0])
    assert left.reach == ((1, 1, 3, 3),)
    assert left.alone is None
    assert _Free(passages, 1).allows(((0, 3, 0),))
    assert not _Free(left, 1).allows(((0, 3, 0),))
    assert passages.without(1, []) == passages
