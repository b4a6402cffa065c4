"""Plans of single requests, one by one: each once, and the first ones at once."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from gapless.formulations.jobs.space import all_plans, all_routes, count_plans
from gapless.formulations.jobs.tables import JobPlan, JobTables, tables_of
from gapless.formulations.schedules import JobRequest
from tests.jobs_instances import drawn_jobs, jobs_problem, passing, slowed

MANY = 14
"""Requests whose orders are far too many to be listed."""


def alone(units: int) -> JobTables:
    """Return requests of one layer each, on one unit or on one of their own."""
    names = [f"n{at}" for at in range(MANY)]
    rows: dict[str, list[list[int | None]]] = {
        name: [[5 if at % units == unit else None for unit in range(units)]] for at, name in enumerate(names)
    }
    return tables_of(jobs_problem(rows, tuple(JobRequest(name=name, network=name) for name in names)))


@pytest.mark.parametrize("seed", range(6))
def test_they_are_what_all_orders_come_to(seed: int) -> None:
    """Every order of the chunks in which what waits stands behind, with and without slowdown."""
    problem = drawn_jobs(seed)
    for tables in (tables_of(problem), tables_of(slowed(problem, seed))):
        expected: dict[JobPlan, None] = {}
        for parts in product(*(all_routes(tables, chain) for chain in tables.chain_of)):
            chunks = [request for request, own in enumerate(parts) for _ in own]
            expected |= {
                tables.ordered(order, parts): None
                for order in sorted(set(permutations(chunks)))
                if all(
                    order[::-1].index(other) > len(order) - 1 - order.index(request)
                    for request, before in enumerate(tables.after)
                    for other in before
                )
            }
        assert [*all_plans(tables)] == [*expected]


def test_the_first_plan_is_there_before_all_orders_are() -> None:
    """Seen: all orders were listed first, and no plan was there when the time was up."""
    assert next(all_plans(alone(1))).order == tuple(range(MANY))


def test_the_first_plan_is_there_before_all_ways_are() -> None:
    layers: list[list[int | None]] = [[1, 1, 1]] * 30
    tables = tables_of(passing(jobs_problem({"n": layers}, (JobRequest(name="n", network="n"),)), "any"))
    assert count_plans(tables) > 10**15
    ((first, *_),) = next(all_plans(tables)).parts
    assert first[0] == 0


def test_orders_that_no_unit_notices_are_not_walked() -> None:
    (only,) = all_plans(alone(MANY))
    assert only.order == tuple(range(MANY))
