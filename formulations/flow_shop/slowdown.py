"""Slowdown: how long chunks take beside others, in exact integers.

Chunk a of work T that runs beside chunks b takes D = T + sum over b of X[a,b], X[a,b] being
floor(loss * overlap / 1000): the least integer with 1000 X >= loss * overlap - 999. The simulation
(`play.py`) ends chunks by the same condition, so that its times are the least solution of these rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from ..expr import BoolExpr, Expr, IntVar, VariableKey, any_of, linear
from .clocks import Cell, Clocks, cells_of, runs_of
from .slicing import Slicing
from .tables import MOST_LOSS_PERMILLE
from .values import WorkloadValues


class Lengths:
    """How long each chunk runs: its work, and with slowdown what it loses to the others.

    Parameters
    ----------
    slicing
        The cuts.
    exact
        Whether chunks may not take longer than they need.
    horizon_us
        A time by which every schedule of interest is done.
    """

    def __init__(self, slicing: Slicing, *, exact: bool, horizon_us: int) -> None:
        self._shop = slicing.shop
        self._slicing = slicing
        self._exact, self._horizon_us = exact, horizon_us

    def length_us(self, cell: Cell) -> IntVar:
        """Return how long a chunk runs; 0 for a cell that is not used."""
        work = self._slicing.work_us(*cell)
        if not self._shop.contended:
            return work
        return IntVar("D", cell, 0, min(self._horizon_us, _slowest_us(work.high)))

    def constraints(self, clocks: Clocks) -> Iterator[BoolExpr]:
        """Yield what the lengths are, given when chunks run."""
        if not self._shop.contended:
            return
        pairs = list(self._pairs())
        for cell in cells_of(self._shop):
            lost = [self._lost_us(cell, b) for a, b in pairs if a == cell and self._loss(a, b)]
            lost += [self._lost_us(cell, a) for a, b in pairs if b == cell and self._loss(b, a)]
            whole = linear([(1, self._slicing.work_us(*cell)), *((1, x) for x in lost)])
            length = self.length_us(cell)
            yield (length == whole) if self._exact else (length >= whole)
        for one, other in pairs:
            yield from self._overlap(clocks, one, other)
        yield from self._shared_time(clocks, pairs)

    def _pairs(self) -> Iterator[tuple[Cell, Cell]]:
        """Yield the pairs of cells whose chunks can slow each other down, all of two units or none."""
        lossy = ((a, b) for a, b in self._strangers() if self._loss(a, b) or self._loss(b, a))
        met = {frozenset((a[1], b[1])) for a, b in lossy}
        return ((a, b) for a, b in self._strangers() if {a[1], b[1]} in met)

    def _strangers(self) -> Iterator[tuple[Cell, Cell]]:
        """Yield the pairs of cells of different requests on different units."""
        pairs = combinations(cells_of(self._shop), 2)
        return ((one, other) for one, other in pairs if one[0] != other[0] and one[1] != other[1])

    def _shared_time(self, clocks: Clocks, pairs: list[tuple[Cell, Cell]]) -> Iterator[BoolExpr]:
        """Yield what follows for all overlaps of two units together.

        Two units that are busy for A and B out of C microseconds run at the same time for at least
        A + B - C of them; and a chunk shares its time with one chunk of another unit at a time. Without
        these rows the relaxation would place chunks side by side and let none of them meet.
        """
        shared: dict[tuple[int, int], list[tuple[int, Expr]]] = defaultdict(list)
        beside: dict[tuple[Cell, int], list[tuple[int, Expr]]] = defaultdict(list)
        for one, other in pairs:
            overlap = self._overlap_us(one, other)
            shared[min(one[1], other[1]), max(one[1], other[1])].append((1, overlap))
            beside[one, other[1]].append((1, overlap))
            beside[other, one[1]].append((1, overlap))
        for units, overlaps in shared.items():
            busy = linear((1, self.length_us((i, k))) for i, k in cells_of(self._shop) if k in units)
            yield linear(overlaps) >= busy - clocks.makespan_us()
        for (cell, _), overlaps in beside.items():
            yield linear(overlaps) <= self.length_us(cell)

    def _loss(self, victim: Cell, aggressor: Cell) -> int:
        chain_of = self._shop.chain_of
        return self._shop.loss_permille[chain_of[victim[0]]][victim[1]][chain_of[aggressor[0]]][aggressor[1]]

    def _lost_us(self, victim: Cell, aggressor: Cell) -> IntVar:
        most = self._slicing.work_us(*aggressor).high
        most = min(self._horizon_us, _slowest_us(most)) * self._loss(victim, aggressor) // 1000
        return IntVar("X", (*victim, *aggressor), 0, most)

    def _overlap_us(self, one: Cell, other: Cell) -> IntVar:
        shorter = min(self.length_us(one).high, self.length_us(other).high)
        return IntVar("O", (*one, *other), 0, shorter)

    def _overlap(self, clocks: Clocks, one: Cell, other: Cell) -> Iterator[BoolExpr]:
        overlap = self._overlap_us(one, other)
        whole = (overlap >= self.length_us(one), overlap >= self.length_us(other))
        for ways in clocks.meetings(one, other, overlap):
            yield any_of((*whole, *ways))
        for victim, aggressor in ((one, other), (other, one)):
            loss = self._loss(victim, aggressor)
            if loss:
                lost = self._lost_us(victim, aggressor)
                yield 1000 * lost >= loss * overlap - 999
                if self._exact:
                    yield 1000 * lost <= loss * overlap
        if self._exact:
            yield overlap <= self.length_us(one)
            yield overlap <= self.length_us(other)
            yield (overlap <= 0) | clocks.together(one, other, overlap)

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        found: dict[VariableKey, int] = {}
        if not self._shop.contended:
            return found
        runs = runs_of(values)
        for cell in cells_of(self._shop):
            start, end = runs.get(cell, (0, 0))
            found["D", cell] = end - start
        for one, other in self._pairs():
            (s, e), (t, f) = runs.get(one, (0, 0)), runs.get(other, (0, 0))
            overlap = max(0, min(e, f) - max(s, t))
            found["O", (*one, *other)] = overlap
            found["X", (*one, *other)] = self._loss(one, other) * overlap // 1000
            found["X", (*other, *one)] = self._loss(other, one) * overlap // 1000
        return found


def _slowest_us(work_us: int) -> int:
    """Return how long a chunk takes at most."""
    return -(-1000 * work_us // (1000 - MOST_LOSS_PERMILLE))
