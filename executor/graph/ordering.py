"""Topological orders that keep few bytes alive between one node and the next."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from ...formulations.network import Tensor


def thrifty_order(count: int, tensors: Sequence[Tensor]) -> tuple[int, ...]:
    """Return an order of nodes with few bytes alive at the cuts; deterministic.

    The given order is compared with a greedy one (next comes the node after which the fewest bytes are
    alive, the first in the given order among equals); the better of the two by the sum of bytes over all
    cuts is returned, the given one when they are equal.

    Parameters
    ----------
    count
        Number of nodes, numbered in a topological order.
    tensors
        What flows between them; `count` as target stands for an output, -1 as source for an input.
    """
    given = tuple(range(count))
    return min((given, _greedy(count, tensors)), key=lambda order: _bytes_at_cuts(order, tensors))


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
