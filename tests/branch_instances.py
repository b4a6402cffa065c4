"""Small networks with branches, as chains on units with costs of layers and of boundaries."""

from __future__ import annotations

import random
from collections.abc import Iterator

from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.network import Layer, Network, Tensor
from gapless.formulations.problem import Problem
from gapless.formulations.terms import Objective


def random_network(seed: int, layers: int = 6) -> Network:
    """Return a network in which each layer but the first reads from one or two before it."""
    rng = random.Random(f"branches {seed}")
    readers: dict[int, set[int]] = {layer: set() for layer in range(layers)}
    for layer in range(1, layers):
        for source in rng.sample(range(layer), min(layer, rng.choice((1, 1, 2)))):
            readers[source].add(layer)
    tensors = [Tensor(name="in", bytes=1000 * rng.randint(1, 9), source=-1, targets=(0,))]
    for layer, targets in readers.items():
        size = 1000 * rng.randint(1, 9)
        tensors.append(
            Tensor(name=f"t{layer}", bytes=size, source=layer, targets=tuple(sorted(targets)) or (layers,))
        )
    names = (Layer(name=f"layer{layer}", weight_bytes=rng.randint(0, 99)) for layer in range(layers))
    return Network(name="branches", layers=tuple(names), tensors=tuple(tensors))


def chain_problem(network: Network, seed: int, units: int = 3) -> Problem:
    """Return the problem of cutting its order; copies take 5 us and 2 or 3 us for each 1000 bytes."""
    rng = random.Random(f"costs {seed}")
    names = tuple(f"unit{unit}" for unit in range(units))
    rows = tuple(tuple(rng.randint(10, 90) for _ in names) for _ in network.layers)
    copies = {
        f"transfer_{way}_us": tuple(
            tuple(5 + size * rate // 1000 for _ in names) for size in network.boundary_bytes
        )
        for way, rate in (("in", 2), ("out", 3))
    }
    costs = CostTable(units=names, networks=(NetworkCosts(network=network.name, layer_us=rows, **copies),))
    platform = Platform(name="test", units=tuple(ProcessingUnit(name=name) for name in names))
    return Problem(
        platform=platform, networks=(network,), costs=costs, objective=Objective(terms=("period",))
    )


def orders_of(network: Network) -> Iterator[tuple[int, ...]]:
    """Yield every order of the layers in which each comes after what it reads from."""
    needs: dict[int, set[int]] = {layer: set() for layer in range(len(network.layers))}
    for tensor in network.tensors:
        for target in tensor.targets:
            if tensor.source >= 0 and target in needs:
                needs[target].add(tensor.source)

    def longer(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == len(needs):
            yield done
        for layer, others in needs.items():
            if layer not in done and others <= {*done}:
                yield from longer((*done, layer))

    yield from longer(())
