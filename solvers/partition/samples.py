"""Small layer graphs on which every backend is compared with the oracle."""

from __future__ import annotations

import random
from dataclasses import replace

from ...formulations.costs import Provenance
from ...formulations.hardware import ProcessingUnit
from ...formulations.partitions import GraphNode, graph_problem
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ..samples import Samples, branching_edges, with_memory, with_outputs, with_shared_core

_TIMES_US = ((40, 70), (90, 51), (30, 64), (55, 45), (61, 80), (20, 33))
"""Of each node on npu and cpu."""

_EDGES = ("ab", "ac", "bd", "ce", "df", "ef")


def samples() -> Samples:
    """Return a plain problem, and one for each way in which layer graphs can differ."""
    free, costly = _problem(), _problem(sends=True)
    return Samples(
        plain=free,
        problems={
            "transfers": costly,
            "alike": _problem(sends=True, alike=True),
            "colours": _problem(sends=True, colours={"b": 1, "c": 1}),
            "training": _training(),
            "support": _problem(sends=True, missing=("a", "e")),
            "unit memory": with_memory(costly, 60),
            "device memory": replace(costly, platform=replace(costly.platform, memory_bytes=210)),
            "shared cores": with_shared_core(_problem(sends=True, alike=True)),
            "outputs": with_outputs(costly, "bd"),
            "forbidden cuts": replace(costly, networks=(replace(costly.network, forbidden_cuts=(1, 4)),)),
        },
        rules={
            "on": (lambda view: view.on("a", "cpu"),),
            "together": (lambda view: view.together("b", "c"),),
            "apart": (lambda view: ~view.together("a", "f"),),
            "uses": (lambda view: view.uses("npu") & view.uses("cpu"),),
            "busy": (lambda view: view.busy_us("cpu") <= 150,),
            "transfers": (lambda view: view.transfer_us("npu") + view.transfers_us() <= 40,),
            "memory": (lambda view: view.memory_bytes("npu") >= 70,),
            "whole": (lambda view: (view.work_us() <= 330) & (view.period_us() <= 240),),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 2),),
            "contradiction": (
                lambda view: view.uses("cpu"),
                lambda view: view.busy_us("cpu") <= 0,
            ),
        },
        limits=(
            {"max_units": 1},
            {"min_units": 2},
            {"max_period_us": 220},
            {"max_period_us": 20},
            {"max_unit_memory_bytes": 120},
        ),
        objectives=("period,transfers", "transfers,period", "units,work", "work,period"),
    )


def _problem(
    *,
    sends: bool = False,
    alike: bool = False,
    colours: dict[str, int] | None = None,
    missing: tuple[str, ...] = (),
) -> Problem:
    """Return two branches between a first and a last node; the npu cannot run what is `missing`."""
    nodes = [
        GraphNode(
            name=name,
            times_us=(None if name in missing else npu, npu if alike else cpu),
            sends_us=(7 * place + 3, 7 * place + 3 if alike else 4) if sends else (),
            bytes=10 * place + 5,
            colour=(colours or {}).get(name),
        )
        for place, (name, (npu, cpu)) in enumerate(zip("abcdef", _TIMES_US, strict=True))
    ]
    return graph_problem(nodes, map(tuple, _EDGES), _units(), platform="board")  # type: ignore[arg-type]


def _units() -> list[ProcessingUnit]:
    return [ProcessingUnit(name="npu"), ProcessingUnit(name="cpu")]


def _training() -> Problem:
    forward = [
        GraphNode(name=name, times_us=times, sends_us=(9, 2), bytes=20, colour=name)
        for name, times in zip("abc", _TIMES_US, strict=False)
    ]
    backward = [
        GraphNode(name=f"{node.name}'", times_us=(50, 90), sends_us=(5, 5), colour=node.colour, backward=True)
        for node in forward
    ]
    edges = [("a", "b"), ("a", "c"), ("b", "b'"), ("c", "c'"), ("b'", "a'"), ("c'", "a'"), ("a", "b'")]
    return graph_problem([*forward, *backward], edges, _units(), platform="board")


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
