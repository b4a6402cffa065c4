"""Topological orders of the blocks of a graph."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from ..formulations.blocks import Blocks

Order = list[int]


def by_priority(blocks: Blocks, priority: Sequence[float], among: Iterable[int] | None = None) -> Order:
    """Return the order that takes, of the blocks that may come next, the one with the least priority.

    Parameters
    ----------
    blocks
        The graph.
    priority
        By block.
    among
        The blocks to order; None: all. What stands before them counts as done.
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
