"""Small problems of pipelines over devices, drawn by a seed: what every backend has to agree on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from gapless.formulations.cluster import InnerDevice, Link, Pipelines
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.expr import BoolExpr
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.pipelines.view import PipelineView
from gapless.formulations.problem import Problem
from gapless.formulations.rules import OpaqueRule, RuleFunction
from gapless.formulations.terms import Objective

OBJECTIVES = (
    "throughput", "throughput", "throughput", "period", "latency", "gapness,throughput", "devices,latency",
    "energy,period", "traffic,throughput", "peak_memory",
)  # fmt: skip


def drawn_problem(seed: int, *, layers: int | None = None, devices: int | None = None) -> Problem:
    """Return a problem with memory limits, several devices of a type and unequal links, by the seed."""
    rng = random.Random(seed)
    layers = layers or rng.randint(1, 5)
    devices = devices or rng.randint(1, 4)
    kinds = rng.randint(1, devices)
    types = sorted(f"t{rng.randrange(kinds)}" for _ in range(devices))
    of_type = {name: [_time(rng) for _ in range(layers)] for name in sorted(set(types))}
    memory = {name: rng.choice([None, None, rng.randint(20, 90)]) for name in sorted(set(types))}
    names = tuple(f"d{number}" for number in range(devices))
    rows = tuple(tuple(of_type[name][layer] for name in types) for layer in range(layers))
    rows = tuple(row if any(row) else (7,) * devices for row in rows)
    return Problem(
        platform=Platform(
            name="cluster",
            units=tuple(
                ProcessingUnit(name=name, memory_bytes=memory[kind])
                for name, kind in zip(names, types, strict=True)
            ),
        ),
        networks=(_network(rng, layers),),
        costs=CostTable(units=names, networks=(NetworkCosts(network="net", layer_us=rows),)),
        objective=Objective.parse(rng.choice(OBJECTIVES)),
        data=Pipelines(
            types=tuple(types),
            links=_links(rng, sorted(set(types)), names),
            most=rng.choice([None, None, 1, 2]),
            overlap=rng.random() < 0.6,
            host=rng.choice(["", "", names[0]]),
            in_slots=rng.choice([0, 0, 1]),
            out_slots=rng.choice([0, 0, 1]),
            resident_bytes=rng.choice([0, 0, 5]),
            power_mw=tuple(rng.randint(1, 9) for _ in names) if rng.random() < 0.5 else (),
        ),
    )


def restricted_problem(seed: int, *, layers: int | None = None, devices: int | None = None) -> Problem:
    """Return a drawn problem with some of all that can restrict its plans, by the seed."""
    rng, problem = random.Random(f"restricted {seed}"), drawn_problem(seed, layers=layers, devices=devices)
    problem = _with_copies(rng, _with_capacities(rng, problem))
    if rng.random() < 0.3:
        problem = replace(problem, data=replace(problem.data, inner=(_inner(rng, problem),)))
    limits = {
        "max_period_us": rng.randint(40, 160),
        "min_units": rng.randint(1, 3),
        "max_units": rng.randint(1, 3),
        "max_gapness_us": rng.randint(0, 60),
    }
    limits = {name: value for name, value in limits.items() if rng.random() < 0.15}
    rules = rng.sample(range(len(RULES)), rng.choice([0, 0, 1, 1, 2]))
    problem = problem.with_limits(**limits).with_rules(*(RULES[at](rng, problem) for at in rules))
    if rng.random() < 0.15:
        chunks = rng.randint(1, 3)
        opaque = OpaqueRule(name="chunks", predicate=lambda plan: len(plan.chunks) != chunks)
        problem = problem.with_rules(opaque)
    return problem


def _with_capacities(rng: random.Random, problem: Problem) -> Problem:
    """Return a problem in which devices may share cores, all of them a memory, and links a switch."""
    platform, names = problem.platform, problem.platform.unit_names
    if rng.random() < 0.25:
        shared = set(rng.sample(names, min(2, len(names))))
        units = [replace(u, cores=(0,) if u.name in shared else ()) for u in platform.units]
        platform = replace(platform, units=tuple(units))
    if rng.random() < 0.25:
        platform = replace(platform, memory_bytes=rng.randint(30, 300))
    data = problem.data
    if rng.random() < 0.25:
        data = replace(data, switch_bytes_per_second=rng.randint(50_000, 600_000))
    return replace(problem, platform=platform, data=data)


def _with_copies(rng: random.Random, problem: Problem) -> Problem:
    if rng.random() < 0.6:
        return problem
    (own,) = problem.costs.networks
    rows = [
        tuple(tuple(rng.randint(0, 9) for _ in problem.platform.units) for _ in range(len(own.layer_us) + 1))
        for _ in range(2)
    ]
    own = replace(own, transfer_in_us=rows[0], transfer_out_us=rows[1])
    return replace(problem, costs=replace(problem.costs, networks=(own,)))


def _inner(rng: random.Random, problem: Problem) -> InnerDevice:
    """Return two units in a device, or in every device of a type."""
    layers = range(len(problem.network.layers))
    times = tuple((_time(rng), rng.randint(1, 60)) for _ in layers)
    return InnerDevice(
        device=rng.choice([*problem.platform.unit_names, *problem.data.types]),
        platform=Platform(name="device", units=(ProcessingUnit(name="a"), ProcessingUnit(name="b"))),
        costs=NetworkCosts(network="net", layer_us=times),
    )


def _about_devices(rng: random.Random, problem: Problem) -> RuleFunction:
    one, other = rng.choice(problem.platform.unit_names), rng.choice(problem.platform.unit_names)
    layer = rng.randrange(len(problem.network.layers))

    def devices(view: PipelineView) -> BoolExpr:
        """Demand that a device has a layer, or is not used without another one."""
        return view.on(layer, one) | view.uses(other).implies(view.uses(one)) & ~view.on(layer, other)

    return devices


def _about_order(rng: random.Random, problem: Problem) -> RuleFunction:
    names, keeps = problem.platform.unit_names, rng.random() < 0.5
    one, other = rng.sample(names, 2) if len(names) > 1 else (names[0], "")

    def order(view: PipelineView) -> BoolExpr:
        """Demand something about who sends to whom, and who is beside whom."""
        if not other:
            return view.pipelines() <= 1
        together = view.same_pipeline(one, other)
        return view.sends(one, other).implies(view.pipelines() >= 2) & (together if keeps else ~together)

    return order


def _about_times(rng: random.Random, problem: Problem) -> RuleFunction:
    name, factor, most = rng.choice(problem.platform.unit_names), rng.randint(1, 3), rng.randint(30, 90)

    def times(view: PipelineView) -> BoolExpr:
        """Demand something about the times of a device and of all."""
        stage = view.stage_us(name) <= most
        return stage & (view.latency_us() <= factor * view.period_us() + view.busy_us(name))

    return times


def _about_sums(rng: random.Random, problem: Problem) -> RuleFunction:
    name, most = rng.choice(problem.platform.unit_names), rng.randint(30, 200)

    def sums(view: PipelineView) -> BoolExpr:
        """Demand something about bytes, energy, gaps and numbers of devices."""
        few = view.memory_bytes(name) + view.traffic_bytes() <= most
        spread = (view.peak_bytes() >= most) | (view.energy_nj() + view.gapness_us() <= 4 * most)
        return few & spread & (view.devices_used() <= 2 + view.pipelines())

    return sums


RULES: tuple[Callable[[random.Random, Problem], RuleFunction], ...] = (
    _about_devices,
    _about_order,
    _about_times,
    _about_sums,
)
"""What draws a rule about a problem."""


def _time(rng: random.Random) -> int | None:
    return None if rng.random() < 0.05 else rng.randint(1, 60)


def _network(rng: random.Random, layers: int) -> Network:
    tensors = [
        Tensor(name=f"x{source}", bytes=rng.randint(1, 20), source=source, targets=(source + 1,))
        for source in range(-1, layers)
    ]
    return Network(
        name="net",
        layers=tuple(Layer(name=f"l{number}", weight_bytes=rng.randint(1, 25)) for number in range(layers)),
        tensors=tuple(tensors),
        forbidden_cuts=tuple(cut for cut in range(1, layers) if rng.random() < 0.1),
    )


def _links(rng: random.Random, types: list[str], names: tuple[str, ...]) -> tuple[Link, ...]:
    if rng.random() < 0.15:
        return ()
    pairs = [(one, other) for one in types for other in types]
    pairs += [(one, other) for one in names for other in names if one != other and rng.random() < 0.15]
    kept = [pair for pair in pairs if rng.random() > 0.1]
    return tuple(
        Link(
            source=one,
            target=other,
            bytes_per_second=rng.randint(300_000, 3_000_000),
            latency_us=rng.randint(0, 9),
        )
        for one, other in kept
    )
