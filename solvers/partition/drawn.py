"""Random layer graphs, equal for equal seeds: branches that part and meet, as in networks."""

from __future__ import annotations

import random

from ...formulations.costs import Provenance
from ...formulations.drawn_graphs import branching_edges
from ...formulations.hardware import ProcessingUnit
from ...formulations.layer_graphs import GraphNode, graph_problem
from ...formulations.problem import Problem

_TIME_US, _SENDS_US = (200, 4_000), (50, 1_000)
_HOST_SLOWDOWN = (3, 12)


def random_graph(layers: int, units: int, *, training: bool = False, seed: int = 0) -> Problem:
    """Return a graph in parts on accelerators that are alike, and a host that runs all at no cost of tensors.

    `training`: whether each layer has another one of the backward pass, in the part of its own.
    """
    rng = random.Random(f"partition {layers} {units} {training} {seed}")
    names = [f"l{number}" for number in range(layers)]
    edges = list(branching_edges(names, rng))
    hosts = 1 if units > 1 else 0
    nodes = []
    for name in names:
        time_us, slowdown = rng.randint(*_TIME_US), rng.randint(*_HOST_SLOWDOWN)
        sends_us, size = rng.randint(*_SENDS_US), rng.randint(1, 64)
        times = (time_us,) * (units - hosts) + (time_us * slowdown,) * hosts
        sends = (sends_us,) * (units - hosts) + (0,) * hosts
        colour = name if training else None
        nodes.append(GraphNode(name=name, times_us=times, sends_us=sends, bytes=size << 20, colour=colour))
        if training:
            twice = tuple(2 * time for time in times)
            own = f"{name} backward"
            nodes.append(GraphNode(name=own, times_us=twice, sends_us=sends, colour=colour, backward=True))
    if training:
        last = set(names) - {maker for maker, _ in edges}
        edges += [(f"{reader} backward", f"{maker} backward") for maker, reader in edges]
        edges += [(name, f"{name} backward") for name in sorted(last)]
    accelerators = [
        ProcessingUnit(name=f"accelerator{number}", memory_bytes=layers * 48 << 20)
        for number in range(units - hosts)
    ]
    return graph_problem(
        nodes,
        edges,
        [*accelerators, *(ProcessingUnit(name="host") for _ in range(hosts))],
        platform="synthetic",
        provenance=Provenance(source="drawn", estimated=True),
    )
