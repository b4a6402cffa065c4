"""Topological orders and down-sets of acyclic graphs: a partition is an order with cuts."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterable, Sequence

from ..formulations.bit_sets import members
from ..formulations.blocks import Blocks

Set = int
"""A set of nodes: bit i is node i."""


class TooManySetsError(Exception):
    """A graph has more down-sets than asked for."""


def down_sets(before: Sequence[Set], most: int) -> tuple[Set, ...]:
    """Return all down-sets of a graph, small ones first."""
    after: list[list[int]] = [[] for _ in before]
    for node, others in enumerate(before):
        for other in members(others):
            after[other].append(node)
    sources = sum(1 << node for node, others in enumerate(before) if not others)
    found: list[Set] = [0]
    last = {0: sources}
    while last:
        following: dict[Set, Set] = {}
        for known, ready in last.items():
            for node in members(ready):
                larger = known | 1 << node
                if larger not in following:
                    freed = sum(1 << n for n in after[node] if before[n] & ~larger == 0)
                    following[larger] = ready & ~(1 << node) | freed
            if len(found) + len(following) > most:
                raise TooManySetsError
        found += sorted(following)
        last = following
    return tuple(found)


Order = list[int]


def by_priority(blocks: Blocks, priority: Sequence[float], among: Iterable[int] | None = None) -> Order:
    """Return the order that takes, of the blocks that may come next, the one with the least priority.

    `among`: the blocks to order; None: all. What stands before them counts as done.
    """
    chosen = range(blocks.count) if among is None else list(among)
    waiting = dict.fromkeys(chosen, 0)
    for block in chosen:
        waiting[block] = sum(other in waiting for other in blocks.before[block])
    heap = [(priority[block], block) for block in chosen if not waiting[block]]
    heapq.heapify(heap)
    order: Order = []
    while heap:
        _, block = heapq.heappop(heap)
        order.append(block)
        for later in blocks.after[block]:
            if later in waiting:
                waiting[later] -= 1
                if not waiting[later]:
                    heapq.heappush(heap, (priority[later], later))
    return order


def depth_first(blocks: Blocks, rng: random.Random, *, backward: bool) -> Order:
    """Return a random depth-first order.

    Backward: from the last blocks, what a block needs comes right before it. Forward: the reverse of the
    order in which a search from the first blocks leaves them, so that what a block makes is used soon.
    """
    links = blocks.before if backward else blocks.after
    ends = [
        block for block in range(blocks.count) if not (blocks.after if backward else blocks.before)[block]
    ]
    rng.shuffle(ends)
    seen = [False] * blocks.count
    left: Order = []
    for end in ends:
        if seen[end]:
            continue
        seen[end] = True
        stack = [(end, iter(_shuffled(links[end], rng)))]
        while stack:
            block, others = stack[-1]
            found = next((other for other in others if not seen[other]), None)
            if found is None:
                left.append(block)
                stack.pop()
            else:
                seen[found] = True
                stack.append((found, iter(_shuffled(links[found], rng))))
    return left if backward else left[::-1]


def _shuffled(items: Sequence[int], rng: random.Random) -> list[int]:
    return rng.sample(items, len(items))


def first_orders(blocks: Blocks, rng: random.Random, count: int) -> Iterable[Order]:
    """Yield some orders to begin with: the given one, then depth-first ones and random ones in turn."""
    yield list(range(blocks.count))
    for number in range(count - 1):
        if number % 3 == 2:
            yield by_priority(blocks, [rng.random() for _ in range(blocks.count)])
        else:
            yield depth_first(blocks, rng, backward=number % 3 == 0)


def reshuffled(blocks: Blocks, order: Sequence[int], start: int, stop: int, rng: random.Random) -> Order:
    """Return an order with what stands in a window [start, stop) in another order."""
    window = order[start:stop]
    place = {block: position for position, block in enumerate(window)}
    spread = rng.choice((0.1, 0.3, 1.0)) * len(window)
    priority = {block: place[block] + spread * rng.random() for block in window}
    again = by_priority(blocks, _Lookup(priority), window)
    return [*order[:start], *again, *order[stop:]]


class _Lookup(Sequence[float]):
    """Priorities of a few blocks, by block."""

    def __init__(self, known: dict[int, float]) -> None:
        self._known = known

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, block: int) -> float:  # type: ignore[override]
        return self._known[block]
