"""Small instances of groups of devices on which every backend is compared with the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...formulations.cluster import Link, Pipelines
from ...formulations.cooperation.view import GroupView
from ...formulations.expr import BoolExpr
from ...formulations.files import parse_problem
from ...formulations.groups import Cooperation
from ...formulations.objective import Objective
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.spatial import SpatialNetwork, SpatialNode, Window
from ..samples import Samples

_CONV = Window(extent=3, before=1)
_POOL = Window(stride=2, extent=2, before=0)


def samples() -> Samples:
    """Return a plain instance with few plans, and one for each way in which groups can differ."""
    problems = list(sample_problems())
    names = ("linked", "overlap", "alike", "tight")
    return Samples(
        plain=_problem([[30, 41], [22, 15]], "period"),
        problems=dict(zip(names, problems, strict=True)),
        rules={
            "on": (lambda view: view.on("l0", "b"),),
            "uses": (lambda view: view.uses("c").implies(view.uses("a")),),
            "leads": (lambda view: ~view.leads("a"),),
            "apart": (lambda view: ~view.together("a", "b"),),
            "size": (lambda view: view.group_size("l1") <= 1,),
            "busy": (lambda view: view.busy_us("a") <= 20,),
            "extra": (lambda view: view.extra_permille("a") <= 150,),
            "memory": (lambda view: view.memory_bytes("a") <= view.memory_bytes("b"),),
            "chunks": (lambda view: view.chunks() >= 2,),
            "numbers": (lambda view: view.latency_us() <= 2 * view.period_us(),),
            "bytes": (lambda view: view.peak_bytes() <= 250,),
            "energy": (lambda view: view.energy_nj() <= 150 * view.devices_used(),),
            "flops": (lambda view: view.extra_flops() <= 40,),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 2),),
            "contradiction": (with_a, without_a),
        },
        limits=(
            {"max_units": 1},
            {"min_units": 2},
            {"min_units": 2, "max_units": 2},
            {"min_units": 3, "max_units": 2},
            {"max_latency_us": 80},
            {"max_period_us": 45},
            {"max_period_us": 5},
        ),
        objectives=(
            "period,latency",
            "devices,period",
            "latency,redundancy",
            "energy,period",
            "period,energy",
        ),
    )


def with_a(view: GroupView) -> BoolExpr:
    """Demand that the first device is used."""
    return view.uses("a")


def without_a(view: GroupView) -> BoolExpr:
    """Demand that it is not."""
    return ~view.uses("a")


def _spatial(layers: int) -> SpatialNetwork:
    """Return a convolution, a pool and a convolution, as far as there are so many, on a map of 8 x 8."""
    nodes = [SpatialNode(name="in", op_type="Input", size=(8, 8), bytes=24)]
    for layer in range(layers):
        side = nodes[-1].size[0] // (2 if layer == 1 else 1)
        window = _POOL if layer == 1 else _CONV
        name = "pool" if layer == 1 else f"conv{layer}"
        nodes.append(
            SpatialNode(
                name=name,
                op_type="MaxPool" if layer == 1 else "Conv",
                sources=(layer,),
                windows=((window, window),),
                size=(side, side),
                bytes=24 - 5 * layer,
                flops=[160, 32, 96][layer],
                weight_bytes=15 * layer + 20,
            )
        )
    return SpatialNetwork(name="net", nodes=tuple(nodes), outputs=(layers,))


def _problem(layer_us: list[list[int | None]], objective: str, **data: Any) -> Problem:
    """Return a problem of so many layers on the devices a, b and c, as far as there are times for them."""
    devices, layers = list("abc")[: len(layer_us[0])], range(len(layer_us))
    spatial = _spatial(len(layer_us))
    document = {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "cluster", "units": [{"name": name} for name in devices]},
        "networks": [
            {
                "name": "net",
                "layers": [
                    {"name": f"l{i}", "weight_bytes": spatial.nodes[i + 1].weight_bytes} for i in layers
                ],
                "tensors": [
                    {"name": node.name, "bytes": node.bytes, "source": i - 1, "targets": [i]}
                    for i, node in enumerate(spatial.nodes)
                ],
            }
        ],
        "costs": {"units": devices, "networks": [{"network": "net", "layer_us": layer_us}]},
    }
    problem = parse_problem(json.dumps(document).encode(), name="cluster")
    own = {
        name: data.pop(name) for name in ("interstage", "most_group", "idle_mw", "fixed_us") if name in data
    }
    return replace(
        problem,
        data=Cooperation(
            spatial=spatial,
            pieces=(-1, *layers),
            devices=Pipelines(**{"overlap": False} | data),
            **own,
        ),
        objective=Objective.parse(objective),
    )


def _link(source: str, target: str, bytes_per_second: int, latency_us: int = 0) -> Link:
    return Link(source=source, target=target, bytes_per_second=bytes_per_second, latency_us=latency_us)


def sample_problems() -> Iterator[Problem]:
    """Yield three layers on three devices, in the ways in which groups can differ."""
    times: list[list[int | None]] = [[30, 41, 41], [22, None, 15], [35, 28, 28]]
    ring = (
        _link("a", "b", 8_000_000, 1),
        _link("b", "c", 4_000_000),
        _link("c", "a", 6_000_000, 2),
        _link("b", "a", 9_000_000),
        _link("c", "b", 5_000_000),
    )
    yield _problem(times, "period", links=ring, host="a", power_mw=(3, 2, 4), idle_mw=(1, 0, 1))
    yield _problem(
        times, "period,latency", links=ring, overlap=True, resident_bytes=4, out_slots=1, most_group=2
    )
    alike: list[list[int | None]] = [[30, 41, 41], [22, 15, 15], [35, 28, 28]]
    types = ("fast", "slow", "slow")
    links = tuple(_link(one, other, 10_000_000, 1) for one in ("fast", "slow") for other in ("fast", "slow"))
    single = _problem(alike, "period,latency", types=types, links=links, power_mw=(3, 2, 2))
    yield single
    yield _with_little_memory(
        _problem(
            alike, "period,redundancy", types=types, links=links, interstage=False, fixed_us=((3, 2, 2),) * 3
        )
    )


def _with_little_memory(problem: Problem) -> Problem:
    """Return a problem with capacities, a cut that is forbidden, and devices that share cores."""
    units = [replace(unit, memory_bytes=150) for unit in problem.platform.units]
    units[1:] = [replace(unit, cores=(0,)) for unit in units[1:]]
    (network,) = problem.networks
    return replace(
        problem,
        platform=replace(problem.platform, memory_bytes=280, units=tuple(units)),
        networks=(replace(network, forbidden_cuts=(2,)),),
    )
