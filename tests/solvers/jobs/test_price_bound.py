"""The bound by prices over passages holds for every schedule, and the search's identity with it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from benchmarks.schedule_instances import sliced
from gapless.formulations.costs import NetworkCosts
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.space import all_plans, all_routes
from gapless.formulations.jobs.tables import JobTables, jobs_of, tables_of
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import Cuts, JobRequest
from gapless.solvers.contention import PRICE_SCALE, rounded_off
from gapless.solvers.jobs.bounds import price_bound
from gapless.solvers.jobs.passages import Instance, Passages, instance_of
from gapless.solvers.protocol import Deadline
from tests.jobs_instances import jobs_problem, slowed


def drawn(seed: int, *, passage: str = "any") -> Problem:
    """Return two or three requests of one or two layers each, with copies, gaps in support, and company."""
    draw = random.Random(seed)
    units, requests = draw.choice((2, 2, 3)), draw.choice((2, 2, 3))
    most_us = draw.choice((9, 60, 4_000))
    most = 1 if requests == 3 and units == 3 else 2
    tables: dict[str, list[list[int | None]]] = {}
    for name in "ab":
        rows = []
        for _ in range(draw.randint(1, most)):
            row = [None if draw.random() < 0.2 else draw.randint(1, most_us) for _ in range(units)]
            rows.append(row if any(row) else [draw.randint(1, most_us), *row[1:]])
        tables[name] = rows
    asked = tuple(
        JobRequest(
            name=f"r{index}",
            network=draw.choice("ab"),
            release_us=draw.choice((0, 0, draw.randint(0, most_us))),
            after=("r0",) if index == 2 and draw.random() < 0.3 else (),
        )
        for index in range(requests)
    )
    problem = jobs_problem(tables, asked)
    copies = tuple(
        NetworkCosts(
            network=name,
            layer_us=tuple(map(tuple, rows)),
            transfer_in_us=tuple(
                tuple(draw.randint(0, most_us // 4) for _ in range(units)) for _ in range(len(rows) + 1)
            ),
        )
        for name, rows in tables.items()
    )
    jobs = replace(jobs_of(problem), cuts=Cuts.ALL, passage=passage)
    problem = replace(problem, costs=replace(problem.costs, networks=copies), data=jobs)
    return slowed(problem, seed, strong=bool(seed % 2)) if draw.random() < 0.8 else problem


def whole(tables: JobTables) -> Instance:
    return instance_of(tables, range(tables.unit_count))


def least_us(tables: JobTables) -> int:
    """Return the shortest makespan of all plans."""
    return min(JobValues(tables, code).makespan_us for code in all_plans(tables))


def check_bounds(seeds: range) -> None:
    shares = []
    for seed in seeds:
        for problem in (drawn(seed), sliced(drawn(seed), seed)):
            tables = tables_of(problem)
            found = price_bound(whole(tables))
            assert found is not None
            best = least_us(tables)
            assert found.bound_us <= best, seed
            shares.append(found.bound_us / best)
    assert sum(shares) / len(shares) > 0.85


def test_bounds_are_never_above_the_optimum() -> None:
    check_bounds(range(12))


@pytest.mark.slow
def test_bounds_are_never_above_many_optima() -> None:
    check_bounds(range(12, 225))


@pytest.mark.parametrize("passage", ["once", "ordered"])
def test_bounds_of_restricted_passages_hold(passage: str) -> None:
    for seed in range(300, 325):
        tables = tables_of(drawn(seed, passage=passage))
        found, plans = price_bound(whole(tables)), any(True for _ in all_plans(tables))
        assert (found is not None) == plans
        assert found is None or found.bound_us <= least_us(tables), seed


@pytest.mark.parametrize(
    ("passage", "least"), [("any", 12), ("once", 61), ("ordered", 61), ("ordered:u1,u0", 61)]
)
def test_a_passage_that_comes_back_is_cheaper(passage: str, least: int) -> None:
    plain = jobs_problem({"a": [[1, 50], [None, 10], [1, 50]]}, (JobRequest(name="r", network="a"),))
    tables = tables_of(replace(plain, data=replace(jobs_of(plain), cuts=Cuts.ALL, passage=passage)))
    found = price_bound(whole(tables))
    assert found is not None
    assert found.bound_us == least == least_us(tables)


@pytest.mark.parametrize("limit_s", [None, 0.0])
def test_prices_keep_to_the_condition(limit_s: float | None) -> None:
    """Whatever runs at the same time is worth its time at most, and something is worth all of it."""
    for seed in range(12):
        instance = whole(tables_of(drawn(seed)))
        found = price_bound(instance, Deadline(limit_s))
        assert found is not None
        prices = np.rint(found.prices * PRICE_SCALE)
        counts, units = instance.counts, instance.unit_count
        worth = [
            sum(prices[n][u] * rate(instance, running, u) for u, n in enumerate(running))
            for running in product(range(-1, len(counts)), repeat=units)
            if all(running.count(number) <= count for number, count in enumerate(counts))
        ]
        assert max(worth) <= 1000 * PRICE_SCALE
        assert limit_s is not None or max(worth) >= 999 * PRICE_SCALE


def rate(instance: Instance, running: tuple[int, ...], unit: int) -> int:
    """Return the rate of what runs on a unit in permille; 0 where nothing runs."""
    if running[unit] < 0:
        return 0
    row = [[0] * len(running)] * len(instance.networks)
    if instance.losses is not None:
        row = [list(own) for own in instance.losses.least_permille[running[unit]][unit]]
    lost = sum(row[other][v] for v, other in enumerate(running) if other >= 0 and v != unit)
    return 1000 - min(lost, 750)


def test_one_request_is_bounded_by_its_best_time() -> None:
    for seed in range(10):
        problem = drawn(seed)
        first = replace(jobs_of(problem).requests[0], release_us=0)
        tables = tables_of(replace(problem, data=replace(jobs_of(problem), requests=(first,))))
        found = price_bound(whole(tables))
        assert found is not None
        assert found.bound_us == least_us(tables)


@pytest.mark.parametrize("passage", ["any", "once", "ordered"])
def test_the_cheapest_passage_is_the_cheapest_of_all(passage: str) -> None:
    for seed in range(12):
        tables = tables_of(drawn(seed, passage=passage))
        draw = random.Random(seed)
        prices = [draw.randint(0, 50) for _ in tables.units]
        discounts = [draw.randint(0, 20) for _ in tables.units]
        for chain, network in enumerate(whole(tables).networks):
            costs = [cost(network, route, prices, discounts) for route in all_routes(tables, chain)]
            found = network.cheapest(prices, discounts)
            assert (found and found[0]) == min(costs, default=None)
            if found is not None:
                assert cost(network, found[1], prices, discounts) == found[0]


def cost(
    network: Passages, route: tuple[tuple[int, int, int], ...], prices: list[int], discounts: list[int]
) -> int:
    return sum(prices[part[2]] * network.time_us(part) - discounts[part[2]] for part in route)


def test_what_a_play_rounds_off_is_known_where_the_loss_is() -> None:
    least, most = np.array([0, 0, 250, 500, 300]), np.array([0, 250, 250, 500, 301])
    assert rounded_off(least, most).tolist() == [0, 999, 750, 500, 999]


def test_what_no_unit_can_run_has_no_bound() -> None:
    problem = jobs_problem({"a": [[None, 3]]}, (JobRequest(name="r", network="a"),))
    assert price_bound(instance_of(tables_of(problem), [0])) is None
