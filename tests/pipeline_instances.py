"""Small problems of pipelines over devices, drawn by a seed: what every backend has to agree on."""

from __future__ import annotations

import random

from gapless.formulations.cluster import Link, Pipelines
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.objective import Objective
from gapless.formulations.problem import Problem

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
