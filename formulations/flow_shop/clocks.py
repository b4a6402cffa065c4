"""Clocks: when chunks start and end, as every model of execution states it.

A *cell* is a request on a unit: the chunk of the request there, or nothing if it skips the unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Protocol

from ..expr import BoolExpr, Expr, VariableKey
from .tables import FlowShop
from .values import WorkloadValues

Cell = tuple[int, int]
"""A request and a unit."""


class Clocks(Protocol):
    """Start and end of every cell as expressions; of cells that are not used they mean nothing."""

    def constraints(self) -> Iterator[BoolExpr]:
        """Yield the rows."""
        ...

    def start_us(self, cell: Cell) -> Expr:
        """Return when a chunk starts."""
        ...

    def end_us(self, cell: Cell) -> Expr:
        """Return when a chunk ends."""
        ...

    def finish_us(self, request: int) -> Expr:
        """Return when the last chunk of a request ends."""
        ...

    def makespan_us(self) -> Expr:
        """Return when the last chunk of all ends."""
        ...

    def bubbles_us(self) -> Expr:
        """Return the bubbles of all units."""
        ...

    def spans(self) -> Iterator[BoolExpr]:
        """Yield the rows that bubbles need on top."""
        ...

    def meetings(self, one: Cell, other: Cell, overlap: Expr) -> Iterator[Sequence[BoolExpr]]:
        """Yield ways out: for each of them `overlap` is at least what the two run together, or one holds.

        The shorter of the two chunks is a way out too, and not listed.
        """
        ...

    def together(self, one: Cell, other: Cell, overlap: Expr) -> BoolExpr:
        """Return "`overlap` is at most what the two run together", for two chunks that do."""
        ...

    def assign(self, values: WorkloadValues) -> dict[VariableKey, int]:
        """Return the value of every variable on a schedule."""
        ...


def cells_of(shop: FlowShop) -> tuple[Cell, ...]:
    """Return all cells."""
    return tuple(product(range(shop.request_count), range(shop.unit_count)))


def runs_of(values: WorkloadValues) -> dict[Cell, tuple[int, int]]:
    """Return start and end of every chunk of a schedule, by cell."""
    return {(run.request, run.unit): (run.start_us, run.end_us) for run in values.runs}
