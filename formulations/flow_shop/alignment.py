"""Alignment (P2): the clocks of both models of execution, asynchronous or in columns.

In the asynchronous model a chunk starts when its request is done with the unit before and its unit is free
(formulations, section 4). e[i,k] is when request i is done with unit k, whether it uses it or not. With a
given order a[i,k] is when unit k is done with the requests up to i; the rows

    e[i,k] >= e[i,k-1] + d[i,k]          a[i,k] >= a[i-1,k] + d[i,k]

hold always and carry the relaxation, and where i uses k also

    e[i,k] >= a[i-1,k] + d[i,k]          a[i,k] >= e[i,k].

With a free order every two chunks on a unit stand in the order of their requests. "At least" rows
admit idling, which makes nothing better without slowdown; with it they are a relaxation. The exact
rows say in addition that a chunk starts as soon as it can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..expr import (
    FALSE,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    IntVar,
    VariableKey,
    all_of,
    any_of,
    count,
    linear,
    max_of,
)
from .clocks import Cell, cells_of, runs_of
from .ordering import FixedOrder, Places, RankedOrder
from .slicing import Slicing
from .slowdown import Lengths
from .tables import FlowShop
from .values import WorkloadValues


class AsynchronousClocks:
    """Clocks of chunks that start as soon as they can."""

    def __init__(
        self, slicing: Slicing, order: RankedOrder, lengths: Lengths, *, exact: bool, horizon_us: int
    ) -> None:
        self._shop: FlowShop = slicing.shop
        self._slicing, self._order, self._lengths = slicing, order, lengths
        self._exact, self._horizon_us = exact, horizon_us
        self._slots = self._shop.workload.task_slots
        self._requests = range(self._shop.request_count)
        self._units = range(self._shop.unit_count)
        self._fixed = not self._shop.order_is_free

    def _clock(self, name: str, *args: int) -> IntVar:
        return IntVar(name, args, 0, self._horizon_us)

    def end_us(self, cell: Cell) -> Expr:
        """Return when a request is done with a unit; for unit -1 when it may start."""
        request, unit = cell
        return self._clock("end", *cell) if unit >= 0 else self._entry_us(request)

    def start_us(self, cell: Cell) -> Expr:
        """Return when a chunk starts."""
        return self.end_us(cell) - self._lengths.length_us(cell)

    def finish_us(self, request: int) -> Expr:
        """Return when a request leaves."""
        return self.end_us((request, self._shop.unit_count - 1))

    def makespan_us(self) -> Expr:
        """Return when the last request leaves."""
        return self._clock("makespan")

    def _entry_us(self, request: int) -> Expr:
        if self._slots is None:
            return Const(self._shop.workload.requests[request].arrival_us)
        return self._clock("entry", request)

    def _free_us(self, request: int, unit: int) -> Expr:
        """Return when a unit is done with the requests up to this one, in a given order."""
        return self._clock("free", request, unit) if request >= 0 else Const(0)

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield the rows."""
        for cell in cells_of(self._shop):
            yield self.end_us(cell) >= self._before_us(cell) + self._lengths.length_us(cell)
            yield from self._in_turn(*cell) if self._fixed else self._in_any_turn(*cell)
            if self._exact:
                yield self._prompt(cell)
        for request in self._requests:
            yield self.makespan_us() >= self.finish_us(request)
            if self._slots is not None:
                yield from self._enters(request, self._slots)
        for unit in self._units:
            yield self.makespan_us() >= linear(
                (1, self._lengths.length_us((i, unit))) for i in self._requests
            )
        if self._exact:
            yield any_of(self.makespan_us() <= self.finish_us(request) for request in self._requests)

    def _before_us(self, cell: Cell) -> Expr:
        """Return when the request is done with the units before."""
        return self.end_us((cell[0], cell[1] - 1))

    def _in_turn(self, request: int, unit: int) -> Iterator[BoolExpr]:
        """Yield the rows of a unit that serves the requests in the given order."""
        used, cell = self._slicing.used(request, unit), (request, unit)
        free, before = self._free_us(request, unit), self._free_us(request - 1, unit)
        length, end = self._lengths.length_us(cell), self.end_us(cell)
        yield free >= before + length
        yield self.makespan_us() >= free
        if request:
            yield used.implies(end >= before + length)
        yield used.implies(free >= end)
        if self._exact:
            yield used.implies(free <= end)
            yield used | (free <= before)

    def _in_any_turn(self, request: int, unit: int) -> Iterator[BoolExpr]:
        """Yield "after the chunks of all requests before", one row for each other request."""
        for other in self._requests:
            if other != request:
                both = (self._slicing.used(request, unit), self._slicing.used(other, unit))
                turn = all_of((*both, self._order.before(other, request)))
                yield turn.implies(self.end_us((other, unit)) <= self.start_us((request, unit)))

    def _prompt(self, cell: Cell) -> BoolExpr:
        """Return "the chunk starts when its request is ready, or when another one leaves its unit"."""
        start, (request, unit) = self.start_us(cell), cell
        ways = [start <= self._before_us(cell)]
        if self._fixed and request:
            ways.append(self._slicing.used(*cell) & (start <= self._free_us(request - 1, unit)))
        for other in () if self._fixed else self._requests:
            if other != request:
                both = (self._slicing.used(request, unit), self._slicing.used(other, unit))
                ways.append(
                    all_of((*both, self._order.before(other, request), start <= self.end_us((other, unit))))
                )
        return any_of(ways)

    def _enters(self, request: int, slots: int) -> Iterator[BoolExpr]:
        """Yield "a request enters when so many of the others have left that there is a free slot"."""
        entry, arrival_us = self._entry_us(request), self._shop.workload.requests[request].arrival_us
        left = {other: self._left(request, other) for other in self._requests if other != request}
        waits = self._order.position(request) - slots + 1
        yield entry >= arrival_us
        yield count(left.values()) >= waits
        for other, literal in left.items():
            yield literal.implies(self.finish_us(other) <= entry)
        if self._exact:
            # The first ones to leave, no others; and not later than the last of these.
            yield count(left.values()) <= max_of((waits, 0))
            at_once = entry <= arrival_us
            for other, literal in left.items():
                yield any_of((literal, at_once, self.finish_us(other) >= entry))
            latest = (literal & (entry <= self.finish_us(other)) for other, literal in left.items())
            yield any_of((at_once, *latest))

    def _left(self, request: int, other: int) -> BoolVar:
        return BoolVar("left", (request, other))

    def bubbles_us(self) -> Expr:
        """Return the idle time of all units between their first start and last end."""
        busy = linear((1, self._lengths.length_us(cell)) for cell in cells_of(self._shop))
        spans = linear((1, self._clock("last", unit) - self._clock("first", unit)) for unit in self._units)
        return spans - busy

    def spans(self) -> Iterator[BoolExpr]:
        """Yield what first start and last end of each unit mean; both are equal for an unused unit."""
        for unit in self._units:
            first, last = self._clock("first", unit), self._clock("last", unit)
            yield first <= last
            cells = [(request, unit) for request in self._requests]
            for cell in cells:
                used = self._slicing.used(*cell)
                yield used.implies(first <= self.start_us(cell))
                yield used.implies(last >= self.end_us(cell))
            unused = ~self._slicing.unit_used(unit)
            earliest = (self._slicing.used(*cell) & (first >= self.start_us(cell)) for cell in cells)
            latest = (self._slicing.used(*cell) & (last <= self.end_us(cell)) for cell in cells)
            yield any_of((unused, *earliest))
            yield any_of((unused & (last <= first), *latest))

    def meetings(self, one: Cell, other: Cell, overlap: Expr) -> Iterator[Sequence[BoolExpr]]:
        """Yield the ways out of an overlap (`Clocks`); one of them holds for chunks that do not meet."""
        yield (
            overlap >= self.end_us(one) - self.start_us(other),
            overlap >= self.end_us(other) - self.start_us(one),
        )

    def together(self, one: Cell, other: Cell, overlap: Expr) -> BoolExpr:
        """Return "the overlap is at most what the two run together" (`Clocks`)."""
        return (overlap <= self.end_us(one) - self.start_us(other)) & (
            overlap <= self.end_us(other) - self.start_us(one)
        )

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every clock on a schedule."""
        runs = runs_of(values)
        found: dict[VariableKey, int] = {("makespan", ()): values.makespan_us}
        free = [0] * self._shop.unit_count
        for request in values.schedule.order:
            at = self._shop.workload.requests[request].arrival_us
            if self._slots is not None:
                at = self._assign_entry(values, request, self._slots, found)
            for unit in self._units:
                at = max(at, runs[request, unit][1]) if (request, unit) in runs else at
                if (request, unit) in runs:
                    free[unit] = at
                found["end", (request, unit)] = at
                found["free", (request, unit)] = free[unit]
        for unit in self._units:
            own = [run for (_, k), run in runs.items() if k == unit]
            found["first", (unit,)] = min((start for start, _ in own), default=0)
            found["last", (unit,)] = max((end for _, end in own), default=0)
        return found

    def _assign_entry(
        self, values: WorkloadValues, request: int, slots: int, found: dict[VariableKey, int]
    ) -> int:
        """Note who has left when a request enters; return when that is."""
        waits = max(values.position[request] - slots + 1, 0)
        others = sorted((end, other) for other, end in enumerate(values.finish_us) if other != request)
        gone = others[:waits]
        at = max([self._shop.workload.requests[request].arrival_us, *(end for end, _ in gone)])
        for _, other in others:
            found["left", (request, other)] = int(any(other == leaver for _, leaver in gone))
        found["entry", (request,)] = at
        return at


class ColumnClocks:
    """Clocks of Hetero2Pipe's synchronous model (Definition 3); parameters as `AsynchronousClocks`.

    The chunks with the same place + unit index start together, and the next column waits for the longest
    of them: C[j] >= D of each chunk in column j, and the makespan is the sum of all C.
    """

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
