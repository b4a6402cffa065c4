"""Small instances of groups of devices on which every backend is compared with the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...formulations.cluster import Pipelines
from ...formulations.groups import Cooperation
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.spatial import SpatialNetwork, SpatialNode, Window
from ...formulations.terms import Objective
from ..samples import Samples, link, over_devices, with_a, with_little_memory, without_a

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
    spatial = _spatial(len(layer_us))
    tensors = [(node.name, node.bytes) for node in spatial.nodes]
    problem = over_devices(layer_us, tensors, [node.weight_bytes for node in spatial.nodes[1:]])
    own = {
        name: data.pop(name) for name in ("interstage", "most_group", "idle_mw", "fixed_us") if name in data
    }
    return replace(
        problem,
        data=Cooperation(
            spatial=spatial,
            pieces=(-1, *range(len(layer_us))),
            devices=Pipelines(**{"overlap": False} | data),
            **own,
        ),
        objective=Objective.parse(objective),
    )


def sample_problems() -> Iterator[Problem]:
    """Yield three layers on three devices, in the ways in which groups can differ."""
    times: list[list[int | None]] = [[30, 41, 41], [22, None, 15], [35, 28, 28]]
    ring = (
        link("a", "b", 8_000_000, 1),
        link("b", "c", 4_000_000),
        link("c", "a", 6_000_000, 2),
        link("b", "a", 9_000_000),
        link("c", "b", 5_000_000),
    )
    yield _problem(times, "period", links=ring, host="a", power_mw=(3, 2, 4), idle_mw=(1, 0, 1))
    yield _problem(
        times, "period,latency", links=ring, overlap=True, resident_bytes=4, out_slots=1, most_group=2
    )
    alike: list[list[int | None]] = [[30, 41, 41], [22, 15, 15], [35, 28, 28]]
    types = ("fast", "slow", "slow")
    links = tuple(link(one, other, 10_000_000, 1) for one in ("fast", "slow") for other in ("fast", "slow"))
    single = _problem(alike, "period,latency", types=types, links=links, power_mw=(3, 2, 2))
    yield single
    fixed = _problem(
        alike, "period,redundancy", types=types, links=links, interstage=False, fixed_us=((3, 2, 2),) * 3
    )
    yield with_little_memory(fixed, 150, 280)
