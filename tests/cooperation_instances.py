"""Small problems of groups of devices, drawn by a seed: what every backend has to agree on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.cooperation.view import GroupView
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.expr import BoolExpr
from gapless.formulations.groups import Cooperation
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, RuleFunction, named
from gapless.formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window
from gapless.formulations.terms import Objective

OBJECTIVES = (
    "period", "period", "period", "latency", "period,latency", "energy,period", "redundancy,period",
    "devices,period", "peak_memory,period",
)  # fmt: skip


def drawn_chain(
    rng: random.Random, pieces: int, *, rows: int | None = None
) -> tuple[SpatialNetwork, tuple[int, ...]]:
    """Return convolutions, pools and additions across branches, in pieces of one to three operators."""
    size = rows or rng.randint(4, 14)
    nodes = [SpatialNode(name="in", op_type="Input", size=(size, size), bytes=size * rng.randint(1, 40))]
    labels = [-1]
    for piece in range(pieces):
        entry = len(nodes) - 1
        for _ in range(rng.randint(1, 2)):
            nodes.append(_convolution(rng, nodes, len(nodes)))
            labels.append(piece)
        first, last = nodes[entry], nodes[-1]
        if first.size == last.size and not first.is_input and rng.random() < 0.4:
            sources = (entry, len(nodes) - 1)
            nodes.append(
                SpatialNode(
                    name=f"add{piece}",
                    op_type="Add",
                    sources=sources,
                    windows=((SAME, SAME),) * 2,
                    size=last.size,
                    bytes=last.bytes,
                    flops=last.size[0],
                )
            )
            labels.append(piece)
    if rng.random() < 0.3:
        nodes[-1] = replace(nodes[-1], splits=(False, False))
    network = SpatialNetwork(name="net", nodes=tuple(nodes), outputs=(len(nodes) - 1,))
    return network, tuple(labels)


def _convolution(rng: random.Random, nodes: list[SpatialNode], number: int) -> SpatialNode:
    size = nodes[-1].size[0]
    kernel = rng.choice([1, 3, 3, 5])
    dilation = rng.choice([1, 1, 2]) if kernel == 3 else 1
    stride = rng.choice([1, 1, 1, 2]) if size >= 6 else 1
    extent = dilation * (kernel - 1) + 1
    before = extent // 2
    out = (size + 2 * before - extent) // stride + 1
    window = Window(stride=stride, extent=extent, before=before)
    return SpatialNode(
        name=f"conv{number}",
        op_type="Conv",
        sources=(len(nodes) - 1,),
        windows=((window, window),),
        size=(out, out),
        bytes=out * rng.randint(1, 40),
        flops=out * rng.randint(1, 90),
        weight_bytes=rng.randint(0, 20),
    )


def drawn_problem(seed: int, *, layers: int | None = None, devices: int | None = None) -> Problem:
    """Return a problem with memory limits, several devices of a type, like or unlike links."""
    rng = random.Random(seed)
    layers, devices = layers or rng.randint(1, 4), devices or rng.randint(1, 4)
    spatial, pieces = drawn_chain(rng, layers)
    kinds = [f"t{rng.randrange(rng.randint(1, devices))}" for _ in range(devices)]
    types = sorted(kinds)
    speed = {name: rng.randint(1, 6) for name in sorted(set(types))}
    memory = {name: rng.choice([None, None, None, rng.randint(100, 900)]) for name in sorted(set(types))}
    names = tuple(f"d{number}" for number in range(devices))
    whole = [
        sum(n.flops for n, p in zip(spatial.nodes, pieces, strict=True) if p == layer)
        for layer in range(layers)
    ]
    rows = tuple(
        tuple(None if rng.random() < 0.05 else max(1, work // speed[kind]) for kind in types)
        for work in whole
    )
    rows = tuple(row if any(row) else (7,) * devices for row in rows)
    power = rng.random() < 0.5
    return Problem(
        platform=Platform(
            name="cluster",
            units=tuple(
                ProcessingUnit(name=name, memory_bytes=memory[kind])
                for name, kind in zip(names, types, strict=True)
            ),
        ),
        networks=(divided_network(spatial, pieces, layers),),
        costs=CostTable(units=names, networks=(NetworkCosts(network="net", layer_us=rows),)),
        objective=Objective.parse(rng.choice(OBJECTIVES)),
        data=Cooperation(
            spatial=spatial,
            pieces=pieces,
            axis=rng.choice(["rows", "columns"]),
            devices=Pipelines(
                types=tuple(types),
                links=_links(rng, sorted(set(types)), names),
                overlap=rng.random() < 0.3,
                host=rng.choice(["", "", names[0]]),
                resident_bytes=rng.choice([0, 0, 5]),
                power_mw=tuple(rng.randint(5, 9) for _ in names) if power else (),
            ),
            interstage=rng.random() < 0.7,
            most_group=rng.choice([None, None, None, 2]),
            idle_mw=tuple(rng.randint(0, 4) for _ in names) if power else (),
            fixed_us=tuple(tuple(rng.randint(0, 3) for _ in names) for _ in whole)
            if rng.random() < 0.3
            else (),
        ),
    )


def stepping_problem(seed: int, *, layers: int | None = None, devices: int | None = None) -> Problem:
    """Return a drawn problem of the units of a board, whose groups may take steps."""
    problem = restricted_problem(seed, layers=layers, devices=devices)
    data = problem.data
    assert isinstance(data, Cooperation)
    own = replace(data.devices, links=(), host="", overlap=False)
    return replace(problem, data=replace(data, devices=own, steps=True))


def divided_network(spatial: SpatialNetwork, pieces: tuple[int, ...], layers: int) -> Network:
    """Return a network in pieces: its layers with their weights, and the tensors between them."""
    nodes = spatial.nodes
    tensors = []
    for index, node in enumerate(nodes):
        targets = sorted({pieces[reader] for reader in spatial.readers[index]} - {pieces[index]})
        if index in spatial.outputs:
            targets.append(layers)
        if targets:
            tensors.append(
                Tensor(name=node.name, bytes=node.bytes, source=pieces[index], targets=tuple(targets))
            )
    weights = [
        sum(n.weight_bytes for n, p in zip(nodes, pieces, strict=True) if p == layer)
        for layer in range(layers)
    ]
    return Network(
        name="net",
        layers=tuple(Layer(name=f"l{layer}", weight_bytes=size) for layer, size in enumerate(weights)),
        tensors=tuple(tensors),
    )


def _links(rng: random.Random, types: list[str], names: tuple[str, ...]) -> tuple[Link, ...]:
    if rng.random() < 0.25:
        return ()
    rate, latency, alike = rng.randint(1, 60) * 1_000_000, rng.choice([0, 0, 3]), rng.random() < 0.7
    found = []
    for source in types:
        for target in types:
            own = rate if alike else rng.randint(1, 60) * 1_000_000
            if alike or rng.random() < 0.9:
                found.append(Link(source=source, target=target, bytes_per_second=own, latency_us=latency))
    if not alike and len(names) > 1 and rng.random() < 0.5:
        found.append(Link(source=names[0], target=names[1], bytes_per_second=rng.randint(1, 60) * 1_000_000))
    return tuple(found) or (Link(source=types[0], target=types[0], bytes_per_second=rate),)


def _pinned(rng: random.Random, problem: Problem) -> RuleFunction:
    layer, device = rng.randrange(len(problem.network.layers)), rng.choice(problem.platform.unit_names)
    return lambda view: view.on(layer, device)


def _limited(rng: random.Random, problem: Problem) -> RuleFunction:
    most = rng.randint(1, 3)

    def rule(view: GroupView) -> BoolExpr:
        return view.group_size(0) <= most

    return rule


def _halo(rng: random.Random, problem: Problem) -> RuleFunction:
    device, most = rng.choice(problem.platform.unit_names), rng.randint(0, 300)
    return lambda view: view.extra_permille(device) <= most


def _quick(rng: random.Random, problem: Problem) -> RuleFunction:
    most = sum(min(t for t in row if t is not None) for row in problem.costs.networks[0].layer_us)
    return lambda view: view.latency_us() <= most * rng.randint(5, 15) // 10


RULES: tuple[Callable[[random.Random, Problem], RuleFunction], ...] = (_pinned, _limited, _halo, _quick)


def restricted_problem(seed: int, *, layers: int | None = None, devices: int | None = None) -> Problem:
    """Return a drawn problem with some of all that can restrict its plans, by the seed."""
    rng, problem = random.Random(f"restricted {seed}"), drawn_problem(seed, layers=layers, devices=devices)
    names = problem.platform.unit_names
    if rng.random() < 0.25:
        shared = set(rng.sample(names, min(2, len(names))))
        units = [replace(u, cores=(0,) if u.name in shared else ()) for u in problem.platform.units]
        problem = replace(problem, platform=replace(problem.platform, units=tuple(units)))
    if rng.random() < 0.2:
        problem = replace(problem, platform=replace(problem.platform, memory_bytes=rng.randint(100, 3000)))
    limits = {
        "max_period_us": rng.randint(5, 900),
        "min_units": rng.randint(1, 3),
        "max_units": rng.randint(1, 3),
    }
    limits = {name: value for name, value in limits.items() if rng.random() < 0.2}
    rules = rng.sample(range(len(RULES)), rng.choice([0, 1, 1, 2]))
    problem = problem.with_limits(**limits).with_rules(
        *(named(f"rule {at}", "", RULES[at](rng, problem)) for at in rules)
    )
    if rng.random() < 0.1:
        chunks = rng.randint(1, 3)
        opaque = OpaqueRule(name="chunks", predicate=lambda plan: len(plan.chunks) != chunks)
        problem = problem.with_rules(opaque)
    return problem
