"""Columns: the clocks of Hetero2Pipe's synchronous model (Definition 3).

The chunks with the same place + unit index start together, and the next column waits for the longest
of them: C[j] >= D of each chunk in column j, and the makespan is the sum of all C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..expr import FALSE, BoolExpr, Expr, IntVar, VariableKey, all_of, any_of, linear
from .clocks import Cell, cells_of, runs_of
from .ordering import FixedOrder, Places
from .slicing import Slicing
from .slowdown import Lengths
from .values import WorkloadValues


class ColumnClocks:
    """Clocks of chunks that wait for their column; parameters as `AsynchronousClocks`."""

    def __init__(
        self,
        slicing: Slicing,
        order: FixedOrder | Places,
        lengths: Lengths,
        *,
        exact: bool,
        horizon_us: int,
    ) -> None:
        self._shop = slicing.shop
        self._slicing, self._order, self._lengths = slicing, order, lengths
        self._exact, self._horizon_us = exact, horizon_us
        self._requests = range(self._shop.request_count)
        self._units = range(self._shop.unit_count)
        self._columns = range(self._shop.request_count + self._shop.unit_count - 1)
        self._fixed = not self._shop.order_is_free

    def _column_us(self, column: int) -> IntVar:
        return IntVar("column", (column,), 0, self._horizon_us)

    def _begin_us(self, column: int) -> Expr:
        return linear((1, self._column_us(earlier)) for earlier in range(column))

    def start_us(self, cell: Cell) -> Expr:
        """Return when a chunk starts: with its column."""
        if self._fixed:
            return self._begin_us(sum(cell))
        return IntVar("start", cell, 0, self._horizon_us)

    def end_us(self, cell: Cell) -> Expr:
        """Return when a chunk ends, maybe before its column does."""
        return self.start_us(cell) + self._lengths.length_us(cell)

    def finish_us(self, request: int) -> Expr:
        """Return when the last chunk of a request ends."""
        return IntVar("finish", (request,), 0, self._horizon_us)

    def makespan_us(self) -> Expr:
        """Return the length of all columns."""
        return self._begin_us(len(self._columns))

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield the rows."""
        for cell in cells_of(self._shop):
            for place in self._requests:
                column = place + cell[1]
                here = self._order.at(cell[0], place)
                yield here.implies(self._column_us(column) >= self._lengths.length_us(cell))
                if not self._fixed:
                    yield here.implies(self.start_us(cell) == self._begin_us(column))
        for request in self._requests:
            cells = [(request, unit) for unit in self._units]
            for cell in cells:
                used = self._slicing.used(*cell)
                yield used.implies(self.finish_us(request) >= self.end_us(cell))
            if self._exact:
                ends = (self._slicing.used(*c) & (self.finish_us(request) <= self.end_us(c)) for c in cells)
                yield any_of(ends)
        for unit in self._units:
            yield self.makespan_us() >= linear(
                (1, self._lengths.length_us((i, unit))) for i in self._requests
            )
        if self._exact:
            yield from map(self._prompt, self._columns)

    def _prompt(self, column: int) -> BoolExpr:
        """Return "the column is as long as one of its chunks"."""
        length = self._column_us(column)
        cells = ((i, k) for i, k in cells_of(self._shop) if column - k in self._requests)
        return any_of(
            self._order.at(i, column - k) & (length <= self._lengths.length_us((i, k))) for i, k in cells
        )

    def bubbles_us(self) -> Expr:
        """Return the rest of each column beside its chunks, over all cells of the columns (Eq. 3)."""
        wide = [sum(column - unit in self._requests for unit in self._units) for column in self._columns]
        whole = linear((width, self._column_us(column)) for column, width in enumerate(wide))
        return whole - linear((1, self._lengths.length_us(cell)) for cell in cells_of(self._shop))

    def spans(self) -> Iterator[BoolExpr]:
        """Yield nothing: bubbles are stated by the columns alone."""
        return iter(())

    def _shared(self, one: Cell, other: Cell) -> Iterator[tuple[BoolExpr, BoolExpr]]:
        """Yield the ways in which two cells share a column: (place of the one, place of the other)."""
        for place in self._requests:
            if place + one[1] - other[1] in self._requests:
                pair = (self._order.at(one[0], place), self._order.at(other[0], place + one[1] - other[1]))
                if not any(literal is FALSE for literal in pair):
                    yield pair

    def meetings(self, one: Cell, other: Cell, overlap: Expr) -> Iterator[Sequence[BoolExpr]]:
        """Yield the ways out of an overlap (`Clocks`)."""
        for here, there in self._shared(one, other):
            yield ~here, ~there

    def together(self, one: Cell, other: Cell, overlap: Expr) -> BoolExpr:
        """Return "the two run together", for an overlap that is at most the shorter one (`Clocks`)."""
        return any_of(all_of(pair) for pair in self._shared(one, other))

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every clock on a schedule."""
        lengths = [0] * len(self._columns)
        runs = runs_of(values)
        for (request, unit), (start, end) in runs.items():
            column = values.position[request] + unit
            lengths[column] = max(lengths[column], end - start)
        found: dict[VariableKey, int] = {("column", (j,)): length for j, length in enumerate(lengths)}
        found |= {("finish", (request,)): end for request, end in enumerate(values.finish_us)}
        for request, unit in cells_of(self._shop):
            found["start", (request, unit)] = sum(lengths[: values.position[request] + unit])
        return found
