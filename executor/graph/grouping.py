"""Operators grouped into layers, in an order with few bytes alive at the cuts."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ...formulations.errors import InvalidModelError
from ...formulations.network import MAX_LAYERS, Layer, SharedWeights, Tensor
from ..names import distinct, safe_name
from .choices import Granularity
from .tensor_data import weight_bytes

if TYPE_CHECKING:
    from .flops import OperatorCost
    from .operators import OperatorGraph


def thrifty_order(count: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return an order of nodes with few bytes alive at the cuts; deterministic.

    The given order is compared with a greedy one (next comes the node after which the fewest bytes are
    alive, the first in the given order among equals); the better of the two by the sum of bytes over all
    cuts is returned, the given one when they are equal.

    `count`: number of nodes, numbered in a topological order. `tensors`: what flows between them; `count` as
    target stands for an output, -1 as source for an input.
    """
    given = tuple(range(count))
    return min((given, _greedy(count, tensors)), key=lambda order: _bytes_at_cuts(order, tensors))


def order_in_runs(classes: Sequence[Hashable], tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return a topological order in which nodes of one class stand together as far as dependencies let them.

    A run takes every node of its class that is ready, or becomes ready on the way. The class of the next run
    is the one with most such nodes. Delegates of TensorFlow Lite are made in this way; it is no proof that
    there are not fewer runs.

    `classes`: of each node, numbered in a topological order.
    """
    after: list[set[int]] = [set() for _ in classes]
    for tensor in tensors:
        if tensor.source >= 0:
            after[tensor.source].update(target for target in tensor.targets if target < len(classes))
    waiting = Counter(target for targets in after for target in targets)
    ready = {node for node in range(len(classes)) if not waiting[node]}
    order: list[int] = []
    while ready:
        kinds = dict.fromkeys(classes[node] for node in sorted(ready))
        runs = [_run(kind, classes, after, waiting, ready) for kind in kinds]
        longest = max(runs, key=len)
        for node in longest:
            waiting.subtract(after[node])
        ready |= {target for node in longest for target in after[node] if not waiting[target]}
        ready -= set(longest)
        order += longest
    return tuple(order)


def _run(
    kind: Hashable,
    classes: Sequence[Hashable],
    after: Sequence[set[int]],
    waiting: Mapping[int, int],
    ready: set[int],
) -> list[int]:
    """Return the nodes of one class that can run now one after the other, in the given order."""
    left: dict[int, int] = {}
    heap = sorted(node for node in ready if classes[node] == kind)
    run = []
    while heap:
        node = heapq.heappop(heap)
        run.append(node)
        for target in after[node]:
            left[target] = left.get(target, waiting[target]) - 1
            if not left[target] and classes[target] == kind:
                heapq.heappush(heap, target)
    return run


def _bytes_at_cuts(order: Sequence[int], tensors: Sequence[Tensor]) -> int:
    place = {node: position for position, node in enumerate(order)}
    place[-1], place[len(order)] = -1, len(order)
    return sum(
        tensor.bytes * (max(place[target] for target in tensor.targets) - place[tensor.source])
        for tensor in tensors
    )


def _greedy(count: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    made: list[list[int]] = [[] for _ in range(count)]
    used: list[list[int]] = [[] for _ in range(count)]
    waiting = [0] * count
    users = [set(tensor.targets) for tensor in tensors]
    growth = [0] * count
    for index, tensor in enumerate(tensors):
        if tensor.source >= 0:
            made[tensor.source].append(index)
            growth[tensor.source] += tensor.bytes
        for target in users[index] - {count}:
            used[target].append(index)
            waiting[target] += tensor.source >= 0
        if len(users[index]) == 1:
            for target in users[index] - {count}:
                growth[target] -= tensor.bytes
    ready = [(growth[node], node) for node in range(count) if not waiting[node]]
    heapq.heapify(ready)
    order: list[int] = []
    done = [False] * count
    while ready:
        bytes_more, node = heapq.heappop(ready)
        if done[node] or bytes_more != growth[node]:
            continue  # a later entry of the same node replaces this one
        done[node] = True
        order.append(node)
        for index in made[node]:
            for target in users[index] - {count}:
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, (growth[target], target))
        for index in used[node]:
            users[index].discard(node)
            if len(users[index]) == 1 and count not in users[index]:
                (last,) = users[index]
                growth[last] -= tensors[index].bytes
                if not waiting[last]:
                    heapq.heappush(ready, (growth[last], last))
    return tuple(order)


MANY_LAYERS = 256
TINY_LAYER = 0.001
TINY_LAYERS = 1 / 3
"""Of more than so many layers, if so large a share does less than this share of the work, blocks are made."""

_UNKNOWN_BYTES = 2**31
"""What a tensor of unknown size counts in the search for an order: its users are kept close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Layers as sets of operators."""

    layers: tuple[Layer, ...]  # the layers in their order
    tensors: tuple[Tensor, ...]  # what crosses their borders, inputs and outputs of the model included
    operators: tuple[tuple[int, ...], ...]
    """Indices of the operators of each layer, ascending: layer by layer a topological order."""
    shared: tuple[SharedWeights, ...]  # weights that several layers read
    obstacles: tuple[str, ...]  # where and why several layers had to become one, in words


def group(
    graph: OperatorGraph,
    costs: Sequence[OperatorCost],
    granularity: Granularity,
    *,
    pieces: Sequence[int] = (),
    classes: Sequence[Hashable] = (),
    limited: bool = True,
) -> Grouping:
    """Return the layers of a model.

    A tensor that cannot wait between two chunks (see `OperatorGraph.obstacles`) makes one layer of
    everything from its producer to its last consumer.

    `pieces`: for granularity "piece" the number of the piece of each operator; `classes`: operators of
    different classes (say, that other units can run) are in different layers, and layers of one class come
    one after the other as far as possible; `limited`: whether more layers than the planner takes are refused.
    Raises InvalidModelError: there are more layers than the planner takes.
    """
    if granularity == Granularity.PIECE:
        groups = _by_piece(pieces)
    else:
        groups = _ordered(graph, _clusters(graph, costs, granularity, classes))
        groups = _in_runs(graph, groups, classes) if classes else groups
    groups, obstacles = _without_obstacles(graph, groups)
    if granularity == Granularity.BLOCK:
        groups = _joined(groups, _block_cuts(len(groups), _tensors(graph, groups)))
    if limited:
        _check_count(groups, granularity)
    return Grouping(
        layers=_layers(graph, costs, groups),
        shared=_shared(graph, groups),
        tensors=_tensors(graph, groups),
        operators=tuple(groups),
        obstacles=obstacles,
    )


def _check_count(groups: Sequence[object], granularity: Granularity) -> None:
    if len(groups) > MAX_LAYERS:
        raise InvalidModelError(
            f"the model has {len(groups)} layers at --granularity {granularity}, at most {MAX_LAYERS} can be "
            "planned: use --granularity block"
        )


def usual_grouping(graph: OperatorGraph, costs: Sequence[OperatorCost]) -> tuple[Granularity, Grouping, str]:
    """Return a grouping of a fitting granularity, and why it is not the usual one; "" if it is.

    A network of very many layers, many of which do next to nothing, takes long to measure and to plan, and
    what such a layer costs is less than the noise of a measurement: it is divided into blocks.
    """
    layers = group(graph, costs, Granularity.LAYER, limited=False)
    efforts = [sum(costs[index].effort for index in members) for members in layers.operators]
    tiny = sum(effort < TINY_LAYER * sum(efforts) for effort in efforts)
    if len(efforts) <= MANY_LAYERS or tiny < TINY_LAYERS * len(efforts):
        _check_count(layers.layers, Granularity.LAYER)
        return Granularity.LAYER, layers, ""
    blocks = group(graph, costs, Granularity.BLOCK)
    return (
        Granularity.BLOCK,
        blocks,
        f"of its {len(efforts)} layers {tiny} do less than {100 * TINY_LAYER:g} % of the work each: they are "
        f"grouped into {len(blocks.layers)} blocks; --granularity layer keeps them apart",
    )


def _by_piece(pieces: Sequence[int]) -> list[tuple[int, ...]]:
    groups: list[list[int]] = [[] for _ in range(max(pieces, default=-1) + 1)]
    for index, piece in enumerate(pieces):
        groups[piece].append(index)
    return list(map(tuple, groups))


def _clusters(
    graph: OperatorGraph,
    costs: Sequence[OperatorCost],
    granularity: Granularity,
    classes: Sequence[Hashable],
) -> list[tuple[int, ...]]:
    from .fusing import Clusters, absorb_sources, fuse

    clusters = Clusters(graph)
    absorb_sources(graph, clusters)
    if granularity != Granularity.OPERATOR:
        fuse(graph, clusters, costs, classes)
    return clusters.in_order()


def _ordered(graph: OperatorGraph, groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    return [groups[place] for place in thrifty_order(len(groups), _tensors(graph, groups))]


def _in_runs(
    graph: OperatorGraph, groups: list[tuple[int, ...]], classes: Sequence[Hashable]
) -> list[tuple[int, ...]]:
    kinds = [classes[group[-1]] for group in groups]  # the first may be a constant, which has no class
    return [groups[place] for place in order_in_runs(kinds, _tensors(graph, groups))]


def _without_obstacles(
    graph: OperatorGraph, groups: list[tuple[int, ...]]
) -> tuple[list[tuple[int, ...]], tuple[str, ...]]:
    """Join the groups between which a tensor would have to wait that cannot; say where and why."""
    blocked = [tensor for tensor in _tensors(graph, groups) if tensor.name in graph.obstacles]
    closed = {cut for tensor in blocked for cut in range(tensor.source + 1, max(tensor.targets) + 1)}
    cuts = [cut for cut in range(1, len(groups)) if cut not in closed]
    reasons = []
    for start, stop in pairwise([0, *cuts, len(groups)]):
        inside = [tensor for tensor in blocked if start <= tensor.source < stop]
        if inside:
            makers = {graph.operators[index].kind for index in groups[inside[0].source]}
            reasons.append(
                f"tensor {inside[0].name!r}, made by {' or '.join(sorted(makers))}, cannot wait between two "
                f"chunks: {graph.obstacles[inside[0].name]}; so the {sum(map(len, groups[start:stop]))} "
                f"operators around it are one layer"
            )
    return _joined(groups, cuts), tuple(reasons)


def _joined(groups: Sequence[tuple[int, ...]], cuts: Sequence[int]) -> list[tuple[int, ...]]:
    return [
        tuple(sorted(index for part in groups[start:stop] for index in part))
        for start, stop in pairwise([0, *cuts, len(groups)])
    ]


def _block_cuts(count: int, tensors: Sequence[Tensor]) -> list[int]:
    """Return the cuts with the fewest tensors alive, and those with locally the fewest bytes."""
    alive = _alive(count, tensors, [1] * len(tensors))
    held = _alive(count, tensors, [tensor.bytes for tensor in tensors])
    fewest = min(alive[1:count], default=0)
    cuts = [
        cut for cut in range(1, count) if alive[cut] == fewest or held[cut - 1] > held[cut] <= held[cut + 1]
    ]
    while len(cuts) >= MAX_LAYERS:
        cuts = cuts[1::2]
    return cuts


def _alive(count: int, tensors: Sequence[Tensor], amounts: Sequence[int]) -> list[int]:
    change = [0] * (count + 2)
    for tensor, amount in zip(tensors, amounts, strict=True):
        change[tensor.source + 1] += amount
        change[max(tensor.targets) + 1] -= amount
    return list(accumulate(change))


def _tensors(graph: OperatorGraph, groups: Sequence[tuple[int, ...]]) -> tuple[Tensor, ...]:
    """Return the tensors that leave the group that makes them, in the order of their sources."""
    home = {index: place for place, group in enumerate(groups) for index in group}
    users = graph.consumers()
    outputs = {spec.name for spec in graph.outputs}
    named = [(-1, spec.name) for spec in graph.inputs]
    named += [
        (home[index], name)
        for index in sorted(home, key=home.__getitem__)
        for name in graph.operators[index].outputs
    ]
    found = []
    for source, name in named:
        targets = {home[index] for index in users.get(name, ())} - {source}
        targets |= {len(groups)} if name in outputs else set()
        if targets:
            size = graph.specs[name].bytes if name in graph.specs else _UNKNOWN_BYTES
            found.append(Tensor(name=name, bytes=size, source=source, targets=tuple(sorted(targets))))
    return tuple(found)


def _shared(graph: OperatorGraph, groups: Sequence[tuple[int, ...]]) -> tuple[SharedWeights, ...]:
    """Return the weights that several layers read: those of the same layers as one."""
    readers: dict[str, dict[int, None]] = {}
    for layer, members in enumerate(groups):
        for name in (name for index in members for name in graph.operators[index].weights):
            readers.setdefault(name, {})[layer] = None
    found: dict[tuple[int, ...], int] = {}
    for name, layers in readers.items():
        if len(layers) > 1 and (size := weight_bytes(graph.weights[name])):
            found[tuple(layers)] = found.get(tuple(layers), 0) + size
    return tuple(SharedWeights(bytes=size, layers=layers) for layers, size in sorted(found.items()))


def _layers(
    graph: OperatorGraph, costs: Sequence[OperatorCost], groups: Sequence[tuple[int, ...]]
) -> tuple[Layer, ...]:
    names = distinct(_name(graph, costs, members) for members in groups)
    layers = []
    for name, members in zip(names, groups, strict=True):
        flops = [costs[index].flops for index in members]
        layers.append(
            Layer(
                name=name,
                weight_bytes=graph.weight_bytes_of(graph.operators[index] for index in members),
                flops=None if None in flops else sum(count for count in flops if count is not None),
                op_types=tuple(dict.fromkeys(graph.operators[index].kind for index in members)),
            )
        )
    return tuple(layers)


def _name(graph: OperatorGraph, costs: Sequence[OperatorCost], members: Sequence[int]) -> str:
    """Return the name of the operator that does most of the work."""
    main = max(members, key=lambda index: (costs[index].flops or 0, costs[index].moved_bytes, -index))
    operator = graph.operators[main]
    return safe_name(operator.name or f"{operator.op_type}_{main}")
