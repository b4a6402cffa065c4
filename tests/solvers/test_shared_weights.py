"""Weights that layers share count once in a chunk: judge, native and exact backends agree on every family."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gapless.formulations.network import Network, SharedWeights
from gapless.formulations.problem import Problem
from gapless.solvers.chunking.samples import sample_problem
from gapless.solvers.cooperation.samples import samples as cooperation_samples
from gapless.solvers.flow_shop.samples import sample_workloads
from gapless.solvers.jobs.samples import samples as jobs_samples
from gapless.solvers.partition.samples import samples as partition_samples
from gapless.solvers.pipelines.samples import samples as pipelines_samples
from gapless.solvers.session import solve
from gapless.solvers.task_graph.samples import samples as task_graph_samples

from .agreement import solved


def sharing(network: Network, rng: random.Random) -> Network:
    """Return a network two or three of whose layers read the same weights, twice over."""
    count = len(network.layers)
    found: dict[tuple[int, ...], int] = {}
    for _ in range(2):
        layers = tuple(sorted(rng.sample(range(count), min(count, rng.randint(2, 3)))))
        found.setdefault(layers, rng.choice((20, 40)))
    if count < 2:
        return network
    read = [sum(size for layers, size in found.items() if layer in layers) for layer in range(count)]
    return replace(
        network,
        layers=tuple(
            replace(layer, weight_bytes=own + rng.randint(0, 10))
            for layer, own in zip(network.layers, read, strict=True)
        ),
        shared=tuple(SharedWeights(bytes=size, layers=layers) for layers, size in found.items()),
    )


def tight(problem: Problem, seed: int) -> Problem:
    """Return a problem with shared weights, and less memory than its best plan needs otherwise."""
    rng = random.Random(f"shared {seed}")
    units = tuple(replace(unit, memory_bytes=None) for unit in problem.platform.units)
    problem = replace(
        problem,
        networks=tuple(sharing(network, rng) for network in problem.networks),
        platform=replace(problem.platform, memory_bytes=None, units=units),
    )
    best = solve(problem, "exhaustive").best
    assert best is not None
    numbers: Any = problem.formulation.numbers(problem, problem.formulation.code(problem, best.plan))
    needs = numbers.loaded_bytes if hasattr(numbers, "loaded_bytes") else numbers.peak_bytes
    if seed % 2:
        return replace(problem, platform=replace(problem.platform, memory_bytes=needs - rng.randint(1, 25)))
    most = max(network.weights.whole + max(network.working_bytes) for network in problem.networks)
    units = tuple(replace(unit, memory_bytes=max(0, most - rng.randint(0, 60))) for unit in units)
    return replace(problem, platform=replace(problem.platform, units=units))


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield samples of each family with weights that layers share."""
    yield "chunking", sample_problem("period,peak_memory")
    for name, each in zip(("batch", "one slot", "stream", "late"), sample_workloads(), strict=False):
        yield f"flow_shop {name}", each
    for family, found, names in (
        ("jobs", jobs_samples(), ("waiting", "borders")),
        ("partition", partition_samples(), ("transfers", "colours", "training")),
        ("task_graph", task_graph_samples(), ("transfers", "segments")),
        ("pipelines", pipelines_samples(), ("linked", "one_thread")),
        ("cooperation", cooperation_samples(), ("linked", "alike")),
    ):
        for name in names:
            yield f"{family} {name}", found.problems[name]


PROBLEMS = dict(problems())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROBLEMS)
def test_native_search_agrees_with_exhaustive_search(name: str, seed: int) -> None:
    problem = tight(PROBLEMS[name], seed)
    right, found = solve(problem, "exhaustive"), solve(problem, "native")
    if right.objective is None:
        assert found.objective is None
    else:
        assert found.objective is not None
        assert found.bound is None or found.bound <= right.objective <= found.objective
        assert found.objective == right.objective


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpsat", "z3", "pulp"])
def test_exact_backends_agree_with_exhaustive_search(backend: str) -> None:
    problems = [tight(each, 1) for each in PROBLEMS.values()]
    known = solved(problems, "exhaustive")
    for name, found, right in zip(PROBLEMS, solved(problems, backend), known, strict=True):
        assert (found.status, found.objective) == (right.status, right.objective), name
