"""Random networks over random clusters, equal for equal seeds."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...formulations.cluster import Link, Pipelines
from ...formulations.costs import CostTable, NetworkCosts
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network, Tensor
from ...formulations.objective import Objective
from ...formulations.problem import Problem


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
    """Return what `random_cluster` does, with devices of so many types, as even in number as can be.

    `layers`, `devices`, `types`: how many there are; at least one device of each type.
    """
    if devices < types:
        raise InvalidInputError(f"there are {devices} devices for {types} types: one of each at least")
    counts = [devices // types + (kind < devices % types) for kind in range(types)]
    return random_cluster(layers, counts, seed)
