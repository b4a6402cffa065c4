"""Occupancy: how many bytes are in use, as rows (Eq. 6, in bytes and at every instant).

Memory in use grows only when a chunk starts: a chunk that ends gives back at least what the tensors
that wait for the next one take. So the peak is the largest of the levels at the starts of all chunks:

    level[a] >= base + needs[a] + sum over other requests of what they hold at the start of a.

A request holds the needs of a chunk while it runs and the tensors at the cut while it waits between
two. The rows are "at least" conditions; chunks must not idle, or they would wait for memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..expr import BoolExpr, BoolVar, Expr, IntVar, VariableKey, any_of, linear
from ..terms import Quantity
from ..workload import LoadPolicy
from .clocks import Cell, Clocks, cells_of, runs_of
from .quantities import most_bytes
from .slicing import Slicing
from .values import WorkloadValues, chunk_bytes


class Occupancy:
    """Bytes in use at the starts of chunks."""

    def __init__(self, slicing: Slicing, clocks: Clocks, quantities: frozenset[Quantity]) -> None:
        self._shop = slicing.shop
        self._slicing, self._clocks = slicing, clocks
        self._most = most_bytes(self._shop)
        self._resident = self._shop.workload.load_policy is LoadPolicy.RESIDENT
        self._while = Quantity.MEMORY_WHILE in quantities
        self._requests = range(self._shop.request_count)

    def _bytes(self, name: str, *args: int) -> IntVar:
        return IntVar(name, args, 0, self._most)

    def definitions(self) -> dict[VariableKey, Expr]:
        """Return the quantities of memory."""
        found: dict[VariableKey, Expr] = {(Quantity.PEAK, ()): self._bytes("peak")}
        if self._while:
            found |= {(Quantity.MEMORY_WHILE, (i,)): self._bytes("while", i) for i in self._requests}
        return found

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield the rows."""
        if self._resident:
            for chain, unit, piece, request in self._pieces():
                yield self._held(chain, unit, piece) >= self._slicing.on(request, unit, piece)
        for cell in cells_of(self._shop):
            yield from self._needs(cell)
            yield from self._level(cell)

    def _pieces(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (chain, unit, piece, request)."""
        for request, unit in cells_of(self._shop):
            for piece in self._slicing.pieces(request):
                yield self._shop.chain_of[request], unit, piece, request

    def _held(self, chain: int, unit: int, piece: int) -> BoolVar:
        """Return "the weights of the piece are on the unit"."""
        return BoolVar("held", (chain, unit, piece))

    def _base(self) -> Expr:
        """Return the bytes of resident weights."""
        if not self._resident:
            return linear(())
        request_of = {(chain, unit): request for chain, unit, _, request in self._pieces()}
        return linear(
            (1, self._slicing.piece_weights(request).expr(held := partial(self._held, *key), held))
            for key, request in request_of.items()
        )

    def _needs(self, cell: Cell) -> Iterator[BoolExpr]:
        """Yield "a chunk needs the largest working set of its pieces", and weights that it brings along."""
        request, unit = cell
        own = linear(()) if self._resident else self._slicing.weights(request, unit)
        for piece in self._slicing.pieces(request):
            working = self._slicing.working_bytes(request, piece)
            yield self._bytes("needs", *cell) >= own + working * self._slicing.on(request, unit, piece)

    def _waiting(self, cell: Cell) -> Expr:
        """Return the bytes alive at the cut where the chunk of a cell starts."""
        request, unit = cell
        chain, alive = self._shop.chain(request), self._shop.boundary_bytes[self._shop.chain_of[request]]
        return linear(
            (alive[chain.cuts[piece]], self._slicing.starts(request, unit, piece))
            for piece in self._slicing.pieces(request)
            if piece and alive[chain.cuts[piece]]
        )

    def _level(self, cell: Cell) -> Iterator[BoolExpr]:
        """Yield what is in use when a chunk starts, and what follows for the totals."""
        level, unused = self._bytes("level", *cell), ~self._slicing.used(*cell)
        others = [other for other in self._requests if other != cell[0]]
        held = [(1, self._bytes("holds", *cell, other)) for other in others]
        yield unused | (level >= self._base() + self._bytes("needs", *cell) + linear(held))
        yield unused | (self._bytes("peak") >= level)
        for other in others:
            for unit in range(self._shop.unit_count):
                yield from self._holds(cell, (other, unit))
        if self._while:
            yield unused | (self._bytes("while", cell[0]) >= level)
            for other in others:
                for unit in range(self._shop.unit_count):
                    away = self._away(cell, (other, unit))
                    yield any_of((*away, self._bytes("while", other) >= level))

    def _holds(self, cell: Cell, other: Cell) -> Iterator[BoolExpr]:
        """Yield "the other request holds the bytes of its chunk, or of what waits for it"."""
        holds = self._bytes("holds", *cell, other[0])
        yield any_of((*self._away(cell, other), holds >= self._bytes("needs", *other)))
        waiting, now = self._waiting(other), self._clocks.start_us(cell)
        earlier = ((other[0], unit) for unit in range(other[1]))
        running = (self._slicing.used(*c) & (now + 1 <= self._clocks.end_us(c)) for c in earlier)
        over = self._clocks.start_us(other) <= now
        ways = (~self._slicing.used(*cell), ~self._slicing.used(*other), over, *running)
        yield any_of((*ways, holds >= waiting))

    def _away(self, cell: Cell, other: Cell) -> Iterator[BoolExpr]:
        """Yield the reasons why a chunk does not run when another one starts."""
        now = self._clocks.start_us(cell)
        yield ~self._slicing.used(*cell)
        yield ~self._slicing.used(*other)
        yield now + 1 <= self._clocks.start_us(other)
        yield self._clocks.end_us(other) <= now

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        shop, usage, runs = self._shop, values.usage, runs_of(values)
        found: dict[VariableKey, int] = {("peak", ()): usage.peak_bytes}
        found |= {("while", (i,)): most for i, most in enumerate(usage.while_bytes)}
        for chain, unit, piece, request in self._pieces():
            cuts, start = values.schedule.cuts[request], shop.chain(request).cuts[piece]
            key = "held", (chain, unit, piece)
            found[key] = max(found.get(key, 0), int(cuts[unit] <= start < cuts[unit + 1]))
        for request, unit in cells_of(shop):
            ends = values.schedule.cuts[request][unit : unit + 2]
            found["needs", (request, unit)] = (
                chunk_bytes(shop, request, ends[0], ends[1]) if ends[0] < ends[1] else 0
            )
        levels = dict(usage.steps)
        for cell in cells_of(shop):
            now = runs[cell][0] if cell in runs else None
            found["level", cell] = 0 if now is None else levels[now]
            for other in self._requests:
                held = 0 if now is None or other == cell[0] else _held_bytes(values, runs, other, now)
                found["holds", (*cell, other)] = held
        return found


def _held_bytes(values: WorkloadValues, runs: dict[Cell, tuple[int, int]], request: int, now_us: int) -> int:
    """Return what a request holds at an instant: a running chunk, waiting tensors, or nothing."""
    shop, cuts = values.tables, values.schedule.cuts[request]
    before = False
    for unit in range(shop.unit_count):
        start, end = runs.get((request, unit), (None, None))
        if start is None or end is None:
            continue
        if start <= now_us < end:
            return chunk_bytes(shop, request, cuts[unit], cuts[unit + 1])
        if now_us < start:
            return shop.boundary_bytes[shop.chain_of[request]][cuts[unit]] if before else 0
        before = True
    return 0
