"""One order of the layers in which the best cuts of a chain are good: it is tried order by order.

Each order is cut exactly, with the costs of the chain: what alive tensors take at a boundary. First come the
order of the best convex parts, the given one, depth-first ones and random ones; then orders that differ from
the best one in a window around one of its cuts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from ..formulations.blocks import Blocks, blocks_of
from ..formulations.network import Network
from ..formulations.operation import operation_of
from ..formulations.plan import Plan
from ..formulations.problem import Problem
from ..formulations.reordering import reordered
from .protocol import Deadline, SolveOptions
from .session import solve
from .topological_orders import Order, first_orders, reshuffled

FIRST = 12
"""Orders to begin with."""

ROUNDS, PATIENCE = 200, 40
"""Windows that are tried, and how many without a shorter period end the search."""

_PARTS_SHARE = 0.3
"""Share of the time limit that the search for convex parts may take."""


def best_order(problem: Problem, parts: Problem, options: SolveOptions) -> tuple[int, ...]:
    """Return the best order of the layers that was found, the given one unless another one is better.

    Layers that are in one chunk of its best plan keep the given order.

    `problem`: of chunks of one network, with one table of costs; the least period counts.
    """
    deadline = Deadline(options.time_limit_s)
    blocks = _blocks(problem.network)
    search = _Search(problem, blocks)
    rng = random.Random(f"order {options.seed}")
    for order in _first(parts, blocks, rng, options):
        search.offer(order)
        if deadline.passed:
            break
    left = PATIENCE
    for _ in range(ROUNDS):
        if left <= 0 or deadline.passed or len(search.cuts) < 3:
            break
        left = PATIENCE if search.offer(search.shaken(rng)) else left - 1
    return search.tidy()


def _blocks(network: Network) -> Blocks:
    """Return the layers, those around a forbidden cut together."""
    count = len(network.layers)
    edges = (
        (tensor.source, target)
        for tensor in network.tensors
        for target in tensor.targets
        if tensor.source >= 0 and target < count
    )
    return blocks_of(count, edges, [(cut - 1, cut) for cut in network.forbidden_cuts])


def _first(parts: Problem, blocks: Blocks, rng: random.Random, options: SolveOptions) -> Iterator[Order]:
    yield list(range(blocks.count))
    limit_s = options.time_limit_s
    share = replace(options, time_limit_s=None if limit_s is None else _PARTS_SHARE * limit_s)
    plan = solve(parts, "native", share, explain=False).plan
    if plan is not None:
        (stream,) = operation_of(parts).arrange(parts, plan).streams
        order = stream.order or range(len(parts.network.layers))
        yield list(dict.fromkeys(blocks.of[layer] for layer in order))
    yield from list(first_orders(blocks, rng, FIRST))[1:]


class _Search:
    """The best order so far; an order is one of blocks."""

    def __init__(self, problem: Problem, blocks: Blocks) -> None:
        self._problem, self._blocks = problem, blocks
        self._best: tuple[int, Order, Plan] | None = None
        self._given: int | None = None

    def offer(self, order: Order) -> bool:
        """Cut an order; return whether that is better than all before."""
        layers = self._layers(order)
        result = solve(reordered(self._problem, layers), "native", SolveOptions(), explain=False)
        if result.plan is None or result.objective is None:
            return False
        before = self._best
        if order == list(range(len(order))):
            self._given = result.objective
        if before is None or result.objective <= before[0]:
            self._best = result.objective, order, result.plan
        return before is None or result.objective < before[0]

    @property
    def cuts(self) -> list[int]:
        """Where chunks of the best plan begin, in blocks, and the number of blocks."""
        if self._best is None:
            return []
        _, order, plan = self._best
        sizes = accumulate((len(self._blocks.members[block]) for block in order), initial=0)
        at = {layer: position for position, layer in enumerate(sizes)}
        return [0, *(at[chunk.stop] for chunk in plan.chunks)]

    def shaken(self, rng: random.Random) -> Order:
        """Return the best order with another one in a window around a cut."""
        assert self._best is not None
        order = self._best[1]
        centre = rng.choice(self.cuts[1:-1])
        most = max(4, 2 * len(order) // len(self.cuts))
        width = rng.randint(3, max(3, most))
        start = max(0, min(len(order) - width, centre - rng.randint(0, width)))
        return reshuffled(self._blocks, order, start, min(len(order), start + width), rng)

    def tidy(self) -> tuple[int, ...]:
        """Return the layers chunk by chunk, those of a chunk in the given order; that, if it is as good."""
        if self._best is None or self._best[0] == self._given:
            return tuple(range(len(self._problem.network.layers)))
        _, order, plan = self._best
        layers = self._layers(order)
        return tuple(layer for chunk in plan.chunks for layer in sorted(layers[chunk.start : chunk.stop]))

    def _layers(self, order: Order) -> list[int]:
        return [layer for block in order for layer in self._blocks.members[block]]
