"""Good partitions: the best cuts of several orders, moves of blocks, and orders that differ in a window."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..protocol import Deadline
from ..topological_orders import Order, by_priority, first_orders, reshuffled
from .arrays import Arrays
from .line import LOAD, Line, Measure, best_cuts, most_boundaries
from .moves import Parts

FIRST_ORDERS = 8
"""Orders to begin with; of graphs with too many blocks for one program only a few."""

_LARGE_ORDERS = 3

_NEAR = 16
"""Boundaries on either side of a cut that are tried again after a change."""


class PartSearch:
    """Partitions of one graph, better and better."""

    def __init__(self, arrays: Arrays, *, measure: Measure = LOAD, seed: int = 0) -> None:
        self._arrays, self._measure = arrays, measure
        self._rng = random.Random(f"partition {seed}")
        self._most = most_boundaries(arrays)
        self.best: Line | None = None
        self.programs = 0

    def begin(self, deadline: Deadline) -> Iterator[Line]:
        """Yield the best cuts of the first orders, each after moves of blocks; one at least."""
        large = self._arrays.block_count >= self._most
        orders = first_orders(self._arrays.graph.blocks, self._rng, _LARGE_ORDERS if large else FIRST_ORDERS)
        for order in orders:
            line = self._cut(order)
            if line is not None:
                yield self._keep(line)
                if self._measure.largest and not deadline.passed:
                    moved = self._moved(line, deadline)
                    if moved is not None:
                        yield self._keep(moved)
            if deadline.passed:
                return

    def rounds(self, deadline: Deadline) -> Iterator[Line | None]:
        """Change the best partition in a window around a cut, again and again; yield what comes of it."""
        while self.best is not None and not deadline.passed:
            yield self._keep_if(self._shaken(self.best, deadline))

    def _keep(self, line: Line) -> Line:
        if self.best is None or line.value <= self.best.value:
            self.best = line
        return line

    def _keep_if(self, line: Line | None) -> Line | None:
        return None if line is None else self._keep(line)

    def _cut(self, order: Order) -> Line | None:
        """Return the best cuts of an order; of a long one at some boundaries, then near these cuts."""
        self.programs += 1
        if len(order) < self._most:
            return best_cuts(self._arrays, order, measure=self._measure)
        coarse = best_cuts(self._arrays, order, self._even(order), self._measure)
        if coarse is None:
            return None
        near = self._most // max(1, 2 * (len(coarse.cuts) - 1))
        return best_cuts(self._arrays, order, _around(coarse.cuts, near), self._measure)

    def _even(self, order: Order) -> list[int]:
        """Return boundaries with about equal work between them."""
        work = np.cumsum(self._arrays.time.min(axis=0)[order] + 1)
        marks = np.linspace(0, work[-1], self._most // 2)
        return [0, *map(int, np.unique(np.searchsorted(work, marks[1:-1]) + 1)), len(order)]

    def _moved(self, line: Line, deadline: Deadline) -> Line | None:
        """Return a partition after moves of blocks, with the best cuts of its order."""
        parts = Parts(self._arrays, line)
        parts.descend(self._rng, deadline)
        place = {block: position for position, block in enumerate(line.order)}
        blocks = self._arrays.graph.blocks
        count = len(line.order)
        order = by_priority(blocks, [parts.part_of[b] * count + place[b] for b in range(count)])
        sizes = np.bincount(parts.part_of, minlength=len(line.kinds))
        self.programs += 1
        cuts = _around([0, *map(int, np.cumsum(sizes))], self._near(len(sizes)))
        return best_cuts(self._arrays, order, cuts, self._measure)

    def _shaken(self, line: Line, deadline: Deadline) -> Line | None:
        count = len(line.order)
        centre = self._rng.choice(line.cuts[1:-1]) if len(line.cuts) > 2 else self._rng.randrange(count)
        most = max(4, 2 * count // max(1, len(line.kinds)))
        width = self._rng.randint(3, max(3, min(most, int(most ** self._rng.random()) + 3)))
        start = max(0, min(count - width, centre - self._rng.randint(0, width)))
        blocks = self._arrays.graph.blocks
        order = reshuffled(blocks, line.order, start, min(count, start + width), self._rng)
        self.programs += 1
        cuts = _around(line.cuts, self._near(len(line.kinds)))
        found = best_cuts(self._arrays, order, cuts, self._measure)
        if found is None or not self._measure.largest or found.value > line.value * 1.02:
            return found
        return self._moved(found, deadline)

    def _near(self, parts: int) -> int:
        return min(_NEAR, self._most // max(1, 2 * parts))


def _around(cuts: Sequence[int], near: int) -> list[int]:
    """Return the boundaries near some cuts, and a few between them."""
    found = {0, cuts[-1]}
    for start, stop in pairwise(cuts):
        step = max(1, (stop - start) // 8)
        found.update(range(start, stop, step))
    for cut in cuts[1:-1]:
        found.update(range(max(0, cut - near), min(cuts[-1], cut + near) + 1))
    return sorted(found)
