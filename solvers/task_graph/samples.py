"""Small problems of layers side by side on which every backend is compared with the oracle; random ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from ...formulations.costs import Provenance
from ...formulations.hardware import ProcessingUnit
from ...formulations.partitions import GraphNode, graph_problem
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.task_graphs import TaskGraph
from ...formulations.terms import Objective
from ..samples import Samples, branching_edges, with_memory, with_outputs, with_shared_core

_TIMES_US = ((40, 70), (90, 51), (30, 64), (55, 45), (61, 80))
"""Of each node on npu and cpu."""

_EDGES = (("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "e"))

_DRAWN_US, _SENDS_US = (200, 4_000), (50, 1_000)
_SPEED, _TASTE = (0.5, 3.0), (0.7, 1.4)
"""How fast units are, and how much faster or slower than that with single layers."""


def samples() -> Samples:
    """Return a plain problem, and one for each way in which such problems can differ."""
    free, costly = _problem(), _problem(sends_us=(17, 9, 25, 4))
    return Samples(
        plain=free,
        problems={
            "transfers": costly,
            "outside": _with_outside(costly),
            "support": _problem(sends_us=(17, 9, 25, 4), missing=("a", "e")),
            "segments": replace(costly, data=replace(_data(costly), segments=((1, 3),))),
            "unit memory": with_memory(costly, 60),
            "device memory": replace(costly, platform=replace(costly.platform, memory_bytes=130)),
            "turns": with_shared_core(costly),
            "forbidden cuts": replace(costly, networks=(replace(costly.network, forbidden_cuts=(1,)),)),
        },
        rules={
            "on": (lambda view: view.on("a", "cpu"),),
            "together": (lambda view: view.together("b", "c"),),
            "apart": (lambda view: ~view.together("a", "e"),),
            "uses": (lambda view: view.uses("npu") & view.uses("cpu"),),
            "busy": (lambda view: view.busy_us("cpu") <= 120,),
            "memory": (lambda view: view.memory_bytes("npu") >= 70,),
            "times": (lambda view: view.start_us("c") >= view.finish_us("b"),),
            "late": (lambda view: view.start_us("c") >= 95,),
            "whole": (lambda view: (view.work_us() <= 320) & (view.latency_us() >= 230),),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 2),),
            "contradiction": (
                lambda view: view.uses("cpu"),
                lambda view: view.busy_us("cpu") <= 0,
            ),
        },
        limits=(
            {"max_units": 1},
            {"min_units": 2},
            {"max_latency_us": 250},
            {"max_latency_us": 20},
            {"max_unit_memory_bytes": 100},
        ),
        objectives=("latency,work", "work,latency", "units,latency", "latency,units"),
    )


def timed(problem: Problem, sends_us: Sequence[int]) -> Problem:
    """Return a graph of layers as a problem of layers side by side, with a time for each tensor."""
    units = range(len(problem.platform.units))
    squares = tuple(tuple(tuple(us if u != v else 0 for v in units) for u in units) for us in sends_us)
    return replace(problem, data=TaskGraph(transfer_us=squares), objective=Objective(terms=("latency",)))


def _problem(*, sends_us: Sequence[int] = (), missing: tuple[str, ...] = ()) -> Problem:
    """Return two branches between a first and a last node; the npu cannot run what is `missing`."""
    nodes = [
        GraphNode(name=name, times_us=(None if name in missing else npu, cpu), bytes=10 * place + 5)
        for place, (name, (npu, cpu)) in enumerate(zip("abcde", _TIMES_US, strict=True))
    ]
    units = [ProcessingUnit(name="npu"), ProcessingUnit(name="cpu")]
    return timed(graph_problem(nodes, _EDGES, units, platform="board"), sends_us)


def _data(problem: Problem) -> TaskGraph:
    assert isinstance(problem.data, TaskGraph)
    return problem.data


def _with_outside(problem: Problem) -> Problem:
    """Return a problem in which two tensors leave the network as well, and all take time from outside."""
    found = with_outputs(problem, "bd")
    outside = tuple((30, 8) for _ in found.network.tensors)
    return replace(found, data=replace(_data(found), outside_us=outside))


def random_tasks(layers: int, units: int, *, seed: int = 0) -> Problem:
    """Return a graph of layers with branches on unlike units, equal for equal seeds.

    Tensors take as long between any two units.
    """
    rng = random.Random(f"tasks {layers} {units} {seed}")
    names = [f"l{number}" for number in range(layers)]
    speeds = [rng.uniform(*_SPEED) for _ in range(units)]
    nodes = []
    for name in names:
        work_us = rng.randint(*_DRAWN_US)
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
