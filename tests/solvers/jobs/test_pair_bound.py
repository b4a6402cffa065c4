"""Bounds by two requests that are played exactly hold for every schedule, and see what prices do not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from math import ceil, inf
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from benchmarks.schedule_instances import sliced
from gapless.formulations.costs import Interference, NetworkContention
from gapless.formulations.jobs.quantities import JobValues
from gapless.formulations.jobs.space import all_plans
from gapless.formulations.jobs.tables import JobTables, tables_of
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import JobRequest
from gapless.solvers.jobs import makespan
from gapless.solvers.jobs.bounds import price_bound
from gapless.solvers.jobs.makespan import MakespanSearch
from gapless.solvers.jobs.pair_bound import Game, Pair, PairBound, heavy_pair
from gapless.solvers.jobs.pair_ways import Blocks, ModeSets, blocks_of, lowered
from gapless.solvers.jobs.passages import Instance, instance_of
from gapless.solvers.protocol import Clock, Deadline
from tests.jobs_instances import drawn_pair, jobs_problem, passing


def whole(problem: Problem) -> tuple[JobTables, Instance]:
    tables = tables_of(problem)
    return tables, instance_of(tables, range(tables.unit_count))


def least_us(tables: JobTables) -> int:
    """Return the shortest makespan of all plans."""
    return min(JobValues(tables, code).makespan_us for code in all_plans(tables))


def pairs(instance: Instance) -> Iterator[Pair]:
    """Yield the pairs of an instance, with the others and without."""
    priced = price_bound(instance)
    assert priced is not None
    networks = range(len(instance.networks))
    for core in ((a, b) for a in networks for b in networks if a <= b):
        if all(core.count(network) <= instance.counts[network] for network in core):
            for prices in (None, priced.prices, lowered(instance, priced.prices, core)):
                pair = Pair.of(instance, core, prices)
                assert pair is not None
                yield pair


def bounds(instance: Instance, best_us: int, short_us: float) -> Iterator[float]:
    """Yield what games of all pairs say, with coarse and with fine pieces."""
    for pair in pairs(instance):
        for share in (0.002, 0.05):
            game = pair.game(short_us, share * best_us)
            yield pair.others + game.least(3.0 * best_us)
            yield pair.others + game.least(3.0 * best_us, Deadline(0.0))  # some labels are dropped


def check(seeds: Iterable[int]) -> None:
    shares = []
    for seed in seeds:
        for problem in (drawn_pair(seed), sliced(drawn_pair(seed), seed)):
            tables, instance = whole(problem)
            best_us = least_us(tables)
            for short_us in (0.0, inf):
                found = list(bounds(instance, best_us, short_us))
                assert ceil(max(found) - 1e-3) <= best_us, (seed, short_us)
                if not short_us and len(instance.network_of) == 2 and not any(tables.losses.sliced):
                    shares.append(max(found) / best_us)
    assert sum(shares) / len(shares) > 0.97


def test_bounds_are_never_above_the_optimum() -> None:
    check((0, 1, 4))


@pytest.mark.slow
def test_bounds_are_never_above_many_optima() -> None:
    check(range(5, 40))


def test_prices_of_a_pair_that_pays_little_keep_to_the_condition() -> None:
    """What others leave can be so little that no usual price to begin with is allowed."""
    tables, instance = whole(sliced(drawn_pair(27), 27))
    priced = price_bound(instance)
    assert priced is not None
    pair = Pair.of(instance, (1, 1), priced.prices)
    assert pair is not None
    assert pair.modes.alone.max() < 1e-6
    game = pair.game(0.0, 10.0)
    rates = ModeSets(pair.modes).rates
    assert (rates @ game.prices.T.ravel()).max() <= 1000
    assert pair.others + game.least(1e9) <= least_us(tables)


def alternating(count: int = 3) -> Problem:
    """Return two requests that share a fast unit and need a slow one in between: one of them has to wait."""
    rows: list[list[int | None]] = [[1_000, 9_000], [None, 5_000]] * count
    requests = tuple(JobRequest(name=name, network="a") for name in ("r0", "r1"))
    return passing(jobs_problem({"a": rows}, requests), "any")


def test_the_search_proves_what_prices_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without company nothing is rounded: the pair's bound is the makespan of the plan."""
    monkeypatch.setattr(makespan, "_PAIR_S", 0.01)
    problem = alternating()
    search, deadline = MakespanSearch(problem, seed=0), Deadline(0.8, Clock(time.thread_time))
    search.begin(deadline)
    prices_us = search.bound(deadline)
    for _ in search.rounds(deadline):
        if search.pool.meets(search.least):
            break
    assert search.least is not None
    assert prices_us < search.least
    assert search.pool.meets(search.least)
    assert search.least_by == "pair a, a"


def test_only_two_heavy_requests_are_a_pair() -> None:
    _, instance = whole(alternating())
    assert heavy_pair(instance, 30_000) == (0, 0)
    assert heavy_pair(instance, 10**9) is None
    problem = alternating()
    third = replace(problem.data, requests=(*problem.data.requests, JobRequest(name="r2", network="a")))
    assert heavy_pair(whole(replace(problem, data=third))[1], 30_000) is None
    alone = passing(jobs_problem({"a": [[5, 9], [5, 9]]}, problem.data.requests), "any")
    assert heavy_pair(whole(alone)[1], 10) is None


def test_copies_count_in_every_chunk() -> None:
    """A network that hops pays for it, alone and in the game."""
    for seed in range(200, 206):
        problem = drawn_pair(seed)
        _, instance = whole(replace(problem, interference=None))
        pair = Pair.of(instance, (0, 0) if instance.counts[0] > 1 else (0, 1), None)
        assert pair is not None
        for steps, number in zip(pair.game(0.0, 1.0).steps, pair.core, strict=True):
            alone = instance.networks[number].alone
            assert alone is not None
            assert steps.last[0] == alone[0]


def delayed() -> Problem:
    """Return three requests of which one begins late, behind another one, and so spares the third.

    `b` slows the first layer of `a` down to its half. At once it would meet all of that, at its end too
    little of the second layer; behind `c`, which slows nothing down, it meets just enough.
    """
    tables: dict[str, list[list[int | None]]] = {
        "a": [[10_000, None, None], [None, 10_000, None]],
        "b": [[None, None, 15_000]],
        "c": [[None, None, 7_500]],
    }
    problem = jobs_problem(tables, tuple(JobRequest(name=name, network=name) for name in tables))
    company = Interference(
        units=problem.platform.unit_names,
        slowdown_permille=((0, 0, 1_000), (0, 0, 0), (0, 0, 0)),
        networks=tuple(
            NetworkContention(
                network=name, intensity_permille=0 if name == "c" else 1_000, sensitivity_permille=1_000
            )
            for name in tables
        ),
    )
    return passing(replace(problem, interference=company), "any")


def test_chunks_may_begin_between_events_of_the_two() -> None:
    tables, instance = whole(delayed())
    assert least_us(tables) == 22_500
    pair = Pair.of(instance, (0, 1), None)
    assert pair is not None
    game = pair.game(0.0, 10.0)
    least = game.least(10**6)
    assert 22_450 < least <= 22_500
    game._slope[:] = inf  # as if starts were at events only
    assert game.least(10**6) > 24_900


def test_others_that_run_meanwhile_are_paid() -> None:
    """Of three equal requests on one unit a pair sees two, and the price of the third."""
    requests = tuple(JobRequest(name=f"r{index}", network="a") for index in range(3))
    _, instance = whole(passing(jobs_problem({"a": [[1_000, 3_000]]}, requests), "any"))
    priced = price_bound(instance)
    assert priced is not None
    without, beside = (Pair.of(instance, (0, 0), prices) for prices in (None, priced.prices))
    assert without is not None
    assert beside is not None
    assert without.game(0.0, 1.0).least(10**5) == pytest.approx(2_000)
    least = beside.game(0.0, 1.0).least(10**5)
    assert 2_250 <= beside.others + least + 0.01 <= 3_000 + 0.01


def test_a_block_that_is_cut_costs_another_copy() -> None:
    """A short run of layers is a block; a step through it in several chunks takes as long as the best way."""
    rows: list[list[int | None]] = [[100, 900], [100, 900], [None, 5_000], [100, 900]]
    requests = (JobRequest(name="r0", network="a"), JobRequest(name="r1", network="a"))
    problem = jobs_problem({"a": rows}, requests)
    copied = replace(problem.costs.networks[0], transfer_in_us=((50, 20),) * 5)
    problem = passing(replace(problem, costs=replace(problem.costs, networks=(copied,))), "any")
    _, instance = whole(problem)
    network = instance.networks[0]
    assert blocks_of(network, 300.0) == (0, 2, 3, 4)
    assert blocks_of(network, 0.0) == (0, 1, 2, 3, 4)
    blocks = Blocks.of(network, (0, 2, 3, 4), np.zeros(2))
    assert blocks.steps[0] == (
        (0, 1, 250.0, 0.0),
        (1, 1, 1_820.0, 0.0),
        (1, 2, 6_820.0, 0.0),
        (1, 3, 7_720.0, 0.0),
        (2, 1, 300.0, 0.0),
    )


def test_limits_that_rise_by_less_than_a_microsecond_end_the_search_for_a_better_bound() -> None:
    """The same limit again had divided by zero, and without a deadline had gone on for ever."""
    _, instance = whole(drawn_pair(1))
    bound = PairBound(instance, 10, np.zeros((len(instance.networks), instance.unit_count)))
    game = SimpleNamespace(least=lambda limit, _: limit - 0.9)
    ticks = Clock(partial(next, count(0.0, 1.0)))
    bound._climb(cast(Pair, SimpleNamespace(others=0.0)), cast(Game, game), 14, Deadline(1000.0, ticks))
    assert bound.bound_us == 10
