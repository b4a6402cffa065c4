"""Plans for limits on what requests wait: brief looks at cycles, and the search that takes them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import gapless
from gapless.formulations.cycles import brief_latency_us, cycle_of
from gapless.formulations.expr import BoolExpr
from gapless.formulations.judge import score
from gapless.formulations.limits import Limits
from gapless.formulations.problem import Problem
from gapless.solvers.exhaustive import all_plans
from gapless.solvers.passage import FAMILY
from gapless.solvers.passage.calm import Calm
from gapless.solvers.passage.descent import Aim, Annealing
from gapless.solvers.passage.prices import Paths, price, price_latency
from gapless.solvers.passage.samples import random_problem
from gapless.solvers.passage.solving import PassageSolve, single_units
from gapless.solvers.protocol import EXACT, NEVER, SolveOptions, SolveStatus
from gapless.solvers.session import solve
from tests.solvers.passage.test_searches import copying, table_of


def test_a_brief_look_promises_no_more_than_the_judge_finds() -> None:
    draw, fitting = random.Random(5), 0
    for _ in range(20):
        units = [draw.randrange(3) for _ in range(draw.randint(2, 9))]
        times_us = [draw.randint(1, 90) for _ in units]
        cycle = cycle_of(times_us, units)
        enough_us = draw.randint(1, 4) * cycle.period_us
        found = brief_latency_us(times_us, units, enough_us=enough_us, patient=bool(fitting % 2))
        assert found >= cycle.latency_us
        fitting += found <= enough_us
    assert 3 < fitting < 18


@pytest.mark.parametrize("seed", range(2))
def test_looks_find_the_best_plan_of_a_small_problem(seed: int) -> None:
    problem = random_problem(5, 3, seed=seed).with_objective("period").with_limits(max_in_flight=2)
    known = solve(problem, "exhaustive", SolveOptions(), explain=False)
    table = table_of(problem)
    calm = Calm(table, problem.limits, lambda units: True, seed=seed, deadline=NEVER)
    paths = price(table, NEVER).paths
    least = min(paths, key=lambda path: max(Paths(table).pooled(path)))
    for _ in range(50):
        calm.look(least, [*paths, *single_units(table)])
    judged = [
        score(problem, problem.formulation.plan(problem, table.parts_of(units))) for units in calm.found
    ]
    assert all(one.valid for one in judged)
    periods = [one.period_us for one in judged]
    assert periods == sorted(set(periods), reverse=True)
    assert calm.period_us == periods[-1] == known.objective


def test_the_latency_bounds_periods_where_few_are_in_flight() -> None:
    better = 0
    for seed in range(6):
        problem = random_problem(5, 3, seed=seed).with_objective("period").with_limits(max_in_flight=2)
        table = table_of(problem)
        pricing = price(table, NEVER)
        least, paths = price_latency(pricing, table, 2)
        judged = [score(problem, plan) for plan in all_plans(problem)]
        assert least <= min(one.period_us for one in judged if one.latency_us <= 2 * one.period_us)
        better += least > Paths(table).cheapest(pricing.best)[0] / table.scale
        assert all(len(units) == table.count for units in paths)
    assert better


def test_plans_that_break_something_else_are_not_kept() -> None:
    table = table_of(random_problem(4, 2, seed=1))
    calm = Calm(table, Limits(max_in_flight=9), lambda units: units[0] == 1, seed=0, deadline=NEVER)
    assert [calm.keep(units) for units in ((0, 0, 0, 0), (1, 1, 1, 1), (1, 1, 1, 1))] == [False, True, False]


def test_an_aim_gives_fewer_hops_shorter_latencies_and_room() -> None:
    table = table_of(copying(3, layers=12, units=3))
    paths, start = Paths(table), (0,) * 12

    def near(
        weights: tuple[float, ...] = (1.0,) * 3, hop_us: float = 0.0, latency_us: float = 1e9
    ) -> list[int]:
        aim = Aim(weights=weights, hop_us=hop_us, periods=9.0, latency_us=latency_us, heat=0.05)
        return Annealing(table, 0).near(start, paths.loads(start), 3000, NEVER, aim)

    plain = near()
    assert len(table.parts_of(near(hop_us=5000.0))) < len(table.parts_of(plain))
    assert sum(paths.pooled(near(latency_us=1.0))) < sum(paths.pooled(plain))
    light = near(weights=(3.0, 1.0, 1.0))
    assert paths.pooled(light)[0] < paths.pooled(plain)[0]


def test_straying_keeps_the_period() -> None:
    table = table_of(copying(4, layers=12, units=3))
    paths = Paths(table)
    units = min(price(table, NEVER).paths, key=lambda path: max(paths.pooled(path)))
    most = 1.2 * max(paths.pooled(units))
    strayed = {tuple(Annealing(table, seed).stray(units, paths.loads(units), 4, most)) for seed in range(5)}
    assert len(strayed) > 1
    assert all(max(paths.pooled(found)) <= most for found in strayed)


def large(seed: int) -> Problem:
    return random_problem(14, 4, seed=seed).with_objective("period")


@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize("limits", [{}, {"max_in_flight": 1}, {"max_in_flight": 2}])
@pytest.mark.parametrize("ruled", [False, True])
def test_no_answer_is_worse_than_with_one_chunk_per_unit(limits: dict[str, int], ruled: bool) -> None:
    """In so little time searches for plans that come back are behind in some of these."""
    for seed in (1, 3, 4):
        problem = large(seed).with_limits(**limits)
        if ruled:
            problem = problem.with_rules(elsewhere(problem))
        once = solve(problem.with_data(None), "native", SolveOptions(), explain=False).objective
        claim = PassageSolve(problem, SolveOptions(time_limit_s=0.3, top=3), FAMILY.support or EXACT).run()
        assert once is not None
        assert claim.values is not None
        assert claim.values[0] <= once
        assert len(set(claim.plans)) == len(claim.plans)


def elsewhere(problem: Problem) -> Callable[[Any], BoolExpr]:
    """Return a rule that the best plan with one chunk per unit breaks."""
    best = solve(problem.with_data(None), "native", SolveOptions(), explain=False).plan
    assert best is not None
    first, last = best.chunks[0], best.chunks[-1]
    return lambda view: ~view.on(0, first.unit) | ~view.on(last.stop - 1, last.unit)


@pytest.mark.slow
@pytest.mark.usefixtures("counted_time")
@pytest.mark.parametrize("limit", ["max_in_flight", "max_stream_latency_us"])
def test_large_problems_have_a_plan_that_keeps_the_limit(limit: str) -> None:
    problem = large(1)
    free = gapless.plan(problem).best
    assert free is not None
    asked = problem.with_limits(**{limit: 3 if limit == "max_in_flight" else free.score.latency_us})
    found = solve(asked, "native", SolveOptions(time_limit_s=5.0), explain=False)
    assert found.status in (SolveStatus.FEASIBLE, SolveStatus.OPTIMAL)
    assert found.best is not None
    assert found.bound is not None
    assert found.objective is not None
    assert score(asked, found.best.plan).valid
    assert found.bound <= free.score.period_us <= found.objective <= 1.3 * free.score.period_us
