"""Random small problems of layers side by side, and brute force that knows nothing but the network."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

from gapless.formulations.hardware import ProcessingUnit
from gapless.formulations.partitions import GraphNode, graph_problem
from gapless.formulations.problem import Problem
from gapless.formulations.task_graphs import TaskGraph
from gapless.formulations.terms import Objective


def small_tasks(seed: int) -> Problem:
    """Return 3 to 5 layers on 2 or 3 units: memory, unlike units, support, outputs, pairs, shared cores."""
    rng = random.Random(f"small tasks {seed}")
    size, units = rng.randint(3, 5), rng.choice((2, 2, 3))
    room, shared = rng.choice((None, None, 16, 30)), rng.random() < 0.3
    nodes = []
    for number in range(size):
        times: list[int | None] = [rng.randint(5, 60) for _ in range(units)]
        if rng.random() < 0.2:
            times[rng.randrange(units)] = None
        nodes.append(GraphNode(name=f"n{number}", times_us=tuple(times), bytes=rng.randint(1, 20)))
    chance = rng.uniform(0.2, 0.6)
    edges = [(f"n{a}", f"n{b}") for b in range(size) for a in range(b) if rng.random() < chance]
    platform = [
        ProcessingUnit(name=f"u{unit}", memory_bytes=room, cores=(0,) if shared and unit < 2 else (unit + 1,))
        for unit in range(units)
    ]
    problem = graph_problem(nodes, edges, platform)
    tensors = tuple(
        replace(tensor, targets=(*tensor.targets, size)) if rng.random() < 0.3 else tensor
        for tensor in problem.network.tensors
    )
    squares = tuple(
        tuple(tuple(0 if u == v else rng.randint(0, 25) for v in range(units)) for u in range(units))
        for _ in tensors
    )
    outside = tuple(tuple(rng.randint(0, 15) for _ in range(units)) for _ in tensors)
    return replace(
        problem,
        networks=(replace(problem.network, tensors=tensors),),
        data=TaskGraph(transfer_us=squares, outside_us=outside if rng.random() < 0.5 else ()),
        objective=Objective(terms=("latency",)),
    )


def least_latency(problem: Problem) -> int | None:
    """Return the least latency over all units and all sequences of layers on units that take turns.

    Starts are a longest path, by repeated relaxation: nothing of the formulation is used.
    """
    data, network, platform = problem.data, problem.network, problem.platform
    assert isinstance(data, TaskGraph)
    times, count = problem.costs.of(network.name).layer_us, len(network.layers)
    best: int | None = None
    for units in product(range(len(platform.units)), repeat=count):
        if any(times[layer][unit] is None for layer, unit in enumerate(units)):
            continue
        held = [sum(n.weight_bytes for n, own in zip(network.layers, units, strict=True) if own == unit)
                for unit in range(len(platform.units))]  # fmt: skip
        rooms = [each.memory_bytes for each in platform.units]
        if any(room is not None and own > room for own, room in zip(held, rooms, strict=True)):
            continue
        for latency in _latencies(problem, data, units):
            best = latency if best is None else min(best, latency)
    return best


def _latencies(problem: Problem, data: TaskGraph, units: tuple[int, ...]) -> Iterator[int]:
    """Yield the latency of every order of the layers on their units."""
    network = problem.network
    count, exclusive = len(network.layers), problem.platform.exclusive
    own = [problem.costs.of(network.name).layer_us[layer][unit] or 0 for layer, unit in enumerate(units)]
    arcs: dict[tuple[int, int], int] = {}
    leave = [0] * count
    for index, tensor in enumerate(network.tensors):
        for target in tensor.targets:
            source = tensor.source
            if target < count:
                sent = data.transfer_us[index][units[source]][units[target]]
                arcs[source, target] = arcs.get((source, target), 0) + sent
            elif data.outside_us:
                leave[source] += data.outside_us[index][units[source]]
    for order in permutations(range(count)):
        place = {layer: position for position, layer in enumerate(order)}
        if any(place[a] > place[b] for a, b in arcs):
            continue
        begin = [0] * count
        for _ in range(count):
            for (a, b), sent in arcs.items():
                begin[b] = max(begin[b], begin[a] + own[a] + sent)
            for a, b in product(range(count), repeat=2):
                turns = units[a] == units[b] or units[a] in exclusive[units[b]]
                if turns and place[a] < place[b]:
                    begin[b] = max(begin[b], begin[a] + own[a])
        yield max(map(sum, zip(begin, own, leave, strict=True)))
