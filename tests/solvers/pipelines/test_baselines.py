"""What the planners that we compare with find."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gapless.formulations.problem import Problem
from gapless.solvers.families import family_of
from gapless.solvers.pipelines.genetic import GeneticBackend
from gapless.solvers.pipelines.samples import random_cluster
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve

NAMES = sorted(family_of("pipelines").backends)
GENETIC = [name for name in NAMES if name.startswith("epipe-ga")]


def least_period(problem: Problem) -> int | None:
    """Return the least period of a single pipeline."""
    return solve(problem.with_objective("period"), "native").objective


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_no_planner_is_better_than_the_proven_plan(name: str) -> None:
    for seed in range(3):
        problem = random_cluster(12, [2, 1, 1], seed, memory_share=0.5)
        best, found = solve(problem, "native").objective, solve(problem, name).objective
        assert best is not None
        assert found is not None
        assert found >= best


def test_pipeedge_has_the_best_single_pipeline() -> None:
    for seed in range(5):
        problem = random_cluster(16, [1] * 4, seed)
        found = solve(problem, "pipeedge").best
        assert found is not None
        assert len(found.plan.order) == 0
        assert found.score.value("period") == least_period(problem)


def test_where_devices_are_alike_pipedream_is_right() -> None:
    problem = random_cluster(16, [4])
    found = solve(problem, "pipedream").best
    assert found is not None
    assert found.score.value("period") == least_period(problem)


def test_pico_is_right_where_time_is_proportional_to_flops() -> None:
    problem = random_cluster(10, [1, 1])
    (own,), (network,) = problem.costs.networks, problem.networks
    rows = tuple((2 * row[0], 3 * row[0]) for row in own.layer_us if row[0] is not None)
    layers = tuple(
        replace(layer, flops=row[0]) for layer, row in zip(network.layers, own.layer_us, strict=True)
    )
    exact = replace(
        problem,
        costs=replace(problem.costs, networks=(replace(own, layer_us=rows),)),
        networks=(replace(network, layers=layers),),
        data=replace(problem.data, links=tuple(replace(link, latency_us=0) for link in problem.data.links)),
    )
    found = solve(exact, "pico-costs").best
    assert found is not None
    assert found.score.value("period") == least_period(exact)
    unknown = replace(
        exact, networks=(replace(network, layers=tuple(replace(x, flops=None) for x in layers)),)
    )
    told = solve(unknown, "pico-costs")
    assert told.statistics["proposed"] == 0
    assert told.statistics["whole"] == 1


def test_the_greedy_planner_fills_the_fastest_device_first() -> None:
    problem = random_cluster(12, [1, 1, 1])
    found = solve(problem, "greedy").best
    assert found is not None
    rows = problem.costs.networks[0].layer_us
    whole = [sum(row[device] or 0 for row in rows) for device in range(3)]
    order = [problem.platform.unit_names.index(chunk.unit) for chunk in found.plan.chunks]
    assert order == sorted(order, key=whole.__getitem__)


@pytest.mark.parametrize("name", GENETIC)
def test_genetic_plans_are_valid_and_follow_from_the_seed(name: str) -> None:
    problem = random_cluster(12, [2, 1, 1])
    one, same = (solve(problem, name, SolveOptions(seed=3)) for _ in range(2))
    assert one.status is SolveStatus.FEASIBLE
    assert [c.plan for c in one.candidates] == [c.plan for c in same.candidates]


def test_the_seeded_population_is_never_worse_than_the_best_single_pipeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gapless.solvers.pipelines.genetic.GENERATIONS", 1)
    for seed in range(3):
        problem = random_cluster(12, [1] * 4, seed)
        found = solve(problem, "epipe-ga").best
        period = least_period(problem)
        assert GeneticBackend.seeded
        assert found is not None
        assert period is not None
        assert found.score.value("throughput") <= 1000 * period + 10  # rates are rounded down
