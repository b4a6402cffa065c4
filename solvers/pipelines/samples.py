"""Small instances of pipelines over devices on which every backend is compared with the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...formulations.cluster import InnerDevice, Link, Pipelines
from ...formulations.costs import CostTable, NetworkCosts
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network, Tensor
from ...formulations.problem import Problem
from ...formulations.rules import OpaqueRule
from ...formulations.terms import Objective
from ..samples import Samples, link, over_devices, with_a, with_little_memory, without_a


def samples() -> Samples:
    """Return a plain instance with few plans, and one for each way in which clusters can differ."""
    problems = list(sample_problems())
    names = ("linked", "one_thread", "single", "tight", "inner")
    return Samples(
        plain=_plain(),
        problems=dict(zip(names, problems, strict=True)),
        rules={
            "on": (lambda view: view.on("l0", "b"),),
            "uses": (lambda view: view.uses("c").implies(view.uses("a")),),
            "sends": (lambda view: ~view.sends("a", "b"),),
            "alone": (lambda view: ~view.same_pipeline("a", "b"),),
            "busy": (lambda view: view.busy_us("a") <= 30,),
            "stage": (lambda view: view.stage_us("a") <= 2 * view.busy_us("b"),),
            "memory": (lambda view: view.memory_bytes("a") <= view.memory_bytes("b"),),
            "pipelines": (lambda view: view.pipelines() >= 2,),
            "numbers": (lambda view: view.latency_us() + view.gapness_us() <= 2 * view.period_us(),),
            "bytes": (lambda view: view.peak_bytes() + view.traffic_bytes() <= 250,),
            "energy": (lambda view: view.energy_nj() <= 150 * view.devices_used(),),
            "opaque": (OpaqueRule(name="few", predicate=lambda plan: len(plan.chunks) != 2),),
            "contradiction": (with_a, without_a),
        },
        limits=(
            {"max_units": 1},
            {"min_units": 2},
            {"min_units": 2, "max_units": 2},
            {"min_units": 3, "max_units": 2},
            {"max_period_us": 50},
            {"max_period_us": 5},
            {"max_gapness_us": 12},
        ),
        objectives=("throughput,latency", "devices,throughput", "latency,devices", "period,latency"),
    )


def _problem(layer_us: list[list[int | None]], objective: str, **data: Any) -> Problem:
    """Return a problem of so many layers on the devices a, b and c, as far as there are times for them."""
    tensors = [(f"t{i}", 24 - 5 * i) for i in range(len(layer_us) + 1)]
    problem = over_devices(layer_us, tensors, [15 * i + 20 for i in range(len(layer_us))])
    return replace(problem, data=Pipelines(**data)).with_objective(objective)


def _plain() -> Problem:
    """Return two devices and two layers: both devices by themselves are best."""
    problem = _problem([[30, 41], [22, 15]], "throughput")
    (network,) = problem.networks
    layers = tuple(replace(layer, weight_bytes=0) for layer in network.layers)
    return replace(problem, networks=(replace(network, layers=layers, tensors=()),))


def sample_problems() -> Iterator[Problem]:
    """Yield three layers on three devices, in the ways in which clusters can differ."""
    times: list[list[int | None]] = [[30, 41, 41], [22, None, 15], [35, 28, 28]]
    ring = (
        link("a", "b", 2_000_000, 3),
        link("b", "c", 800_000),
        link("c", "a", 1_500_000, 5),
        link("b", "a", 3_000_000),
    )
    yield _problem(times, "throughput", links=ring, host="a", power_mw=(3, 2, 4))
    yield _problem(times, "throughput,latency", links=ring, overlap=False, resident_bytes=4, out_slots=1)
    alike: list[list[int | None]] = [[30, 41, 41], [22, 15, 15], [35, 28, 28]]
    types = ("fast", "slow", "slow")
    links = tuple(link(one, other, 1_000_000, 2) for one in ("fast", "slow") for other in ("fast", "slow"))
    single = _problem(alike, "period,latency", types=types, links=links, most=1, power_mw=(3, 2, 2))
    yield single
    tight = replace(single, data=replace(single.data, most=None, in_slots=1, switch_bytes_per_second=900_000))
    yield with_little_memory(tight, 130, 230).with_objective("throughput,traffic")
    unit = ProcessingUnit(name="cpu")
    device = InnerDevice(
        device="slow",
        platform=Platform(name="board", units=(unit, replace(unit, name="gpu"))),
        costs=NetworkCosts(network="net", layer_us=((41, 20), (15, None), (28, 18))),
    )
    inner = replace(single, data=replace(single.data, most=2, inner=(device,)))
    yield _with_copies(inner).with_objective("throughput,gapness")


def _with_copies(problem: Problem) -> Problem:
    (own,) = problem.costs.networks
    own = replace(own, transfer_in_us=((0, 2, 2),) * 4, transfer_out_us=((1, 0, 0),) * 4)
    return replace(problem, costs=replace(problem.costs, networks=(own,)))


def random_cluster(
    layers: int,
    counts: Sequence[int],
    seed: int = 0,
    *,
    overlap: bool = True,
    most: int | None = None,
    memory_share: float | None = None,
    objective: str = "throughput",
) -> Problem:
    """Return one network over devices of some types.

    Layers take 0.2 to 3 ms, at 1 GFLOP/s, times 1 to 6 for each type, times 0.8 to 1.2 for each layer on it.
    Cuts send 1 to 200 KB over links of 10 to 100 MB/s with up to 0.5 ms.

    `overlap`, `most`, `objective`: as in `Pipelines` and `Objective.parse`. `memory_share`: memory of each
    device as a share of the weights of the network, between this and twice as much; None: no limit.
    """
    rng = random.Random(seed)
    base = [rng.randint(200, 3000) for _ in range(layers)]
    slowness = [rng.uniform(1, 6) for _ in counts]
    of_type = [[int(time * slow * rng.uniform(0.8, 1.2)) + 1 for time in base] for slow in slowness]
    types = [kind for kind, count in enumerate(counts) for _ in range(count)]
    tensors = [
        Tensor(name=f"x{source}", bytes=rng.randint(1_000, 200_000), source=source, targets=(source + 1,))
        for source in range(-1, layers)
    ]
    weights = [rng.randint(1_000, 9_000_000) for _ in range(layers)]
    share = [None if memory_share is None else memory_share * rng.uniform(1, 2) for _ in counts]
    memory = [None if part is None else int(part * sum(weights)) for part in share]
    kinds = range(len(counts))
    links = [
        Link(
            source=f"t{one}",
            target=f"t{other}",
            bytes_per_second=rng.randint(10_000_000, 100_000_000),
            latency_us=rng.randint(50, 500),
        )
        for one in kinds
        for other in kinds
    ]
    names = tuple(f"d{number}" for number in range(len(types)))
    units = tuple(
        ProcessingUnit(name=name, memory_bytes=memory[kind]) for name, kind in zip(names, types, strict=True)
    )
    rows = tuple(tuple(of_type[kind][layer] for kind in types) for layer in range(layers))
    return Problem(
        platform=Platform(name="cluster", units=units),
        networks=(
            Network(
                name="net",
                layers=tuple(
                    Layer(name=f"l{i}", weight_bytes=size, flops=1000 * time)
                    for i, (size, time) in enumerate(zip(weights, base, strict=True))
                ),
                tensors=tuple(tensors),
            ),
        ),
        costs=CostTable(units=names, networks=(NetworkCosts(network="net", layer_us=rows),)),
        objective=Objective.parse(objective),
        data=Pipelines(
            types=tuple(f"t{kind}" for kind in types), links=tuple(links), overlap=overlap, most=most
        ),
    )


def drawn_cluster(layers: int, devices: int, types: int, seed: int = 0) -> Problem:
    """Return what `random_cluster` does, with devices of `types` types, as even in number as can be.

    `layers`, `devices`, `types`: how many there are; at least one device of each type.
    """
    if devices < types:
        raise InvalidInputError(f"there are {devices} devices for {types} types: one of each at least")
    counts = [devices // types + (kind < devices % types) for kind in range(types)]
    return random_cluster(layers, counts, seed)
