"""Random problems of layers side by side, equal for equal seeds: branches, and unlike units."""

from __future__ import annotations

import random

from ...formulations.costs import Provenance
from ...formulations.drawn_graphs import branching_edges
from ...formulations.hardware import ProcessingUnit
from ...formulations.layer_graphs import GraphNode, graph_problem
from ...formulations.problem import Problem
from .samples import timed

_TIME_US, _SENDS_US = (200, 4_000), (50, 1_000)
_SPEED, _TASTE = (0.5, 3.0), (0.7, 1.4)
"""How fast units are, and how much faster or slower than that with single layers."""


def random_tasks(layers: int, units: int, *, seed: int = 0) -> Problem:
    """Return a graph of layers on unlike units; tensors take as long between any two of them."""
    rng = random.Random(f"tasks {layers} {units} {seed}")
    names = [f"l{number}" for number in range(layers)]
    speeds = [rng.uniform(*_SPEED) for _ in range(units)]
    nodes = []
    for name in names:
        work_us = rng.randint(*_TIME_US)
        times = tuple(max(1, round(work_us / speed * rng.uniform(*_TASTE))) for speed in speeds)
        nodes.append(GraphNode(name=name, times_us=times, bytes=rng.randint(1, 64) << 20))
    problem = graph_problem(
        nodes,
        branching_edges(names, rng),
        [ProcessingUnit(name=f"unit{number}") for number in range(units)],
        platform="synthetic",
        provenance=Provenance(source="drawn", estimated=True),
    )
    return timed(problem, [rng.randint(*_SENDS_US) for _ in problem.network.tensors])
