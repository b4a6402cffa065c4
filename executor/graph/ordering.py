"""Topological orders that keep few bytes alive between one node and the next."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from ...formulations.network import Tensor


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
