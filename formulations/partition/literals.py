"""The literals of partitions: where blocks are, in which order, and on which kinds of units parts are.

The first part of the model in `encoding.py`.
"""

from __future__ import annotations

from ..expr import BoolExpr, BoolVar, Const, Expr, count, linear
from ..problem import Problem
from .bounds import PartBounds, bounds_of
from .quantities import PartTerm, PartValues
from .tables import Code, graph_to_search


class PartLiterals:
    """The literals of one problem.

    `known`: a valid plan, or None.
    """

    def __init__(self, problem: Problem, *, one: bool, known: Code | None) -> None:
        self.problem, self.one = problem, one
        self._number_in: dict[tuple[int, int], Expr] = {}
        self.graph = graph = graph_to_search(problem, one=one, known=known)
        self.blocks = graph.blocks
        self.kinds = graph.alike() if one else tuple((unit,) for unit in range(graph.unit_count))
        self.kind_of = {unit: kind for kind, units in enumerate(self.kinds) for unit in units}
        self.parts = range(min(graph.unit_count, problem.limits.max_units or graph.unit_count))
        self.times = [[row[units[0]] for units in self.kinds] for row in graph.block_us]
        self.weights, self.pins = graph.block_weights, graph.block_pins
        self.bounds = self._bounds()
        self.known_us = self._known_us(known)
        self.windows = self._windows()
        self.held = {
            (pin, part): BoolVar("h", (pin, part))
            for pin, pins in enumerate(self.pins)
            for part in self.parts
            if any(self.windows[block][0] <= part <= self.windows[block][1] for block in pins.layers)
        }

    def _bounds(self) -> PartBounds:
        return bounds_of(self.graph, len(self.parts))

    def _known_us(self, known: Code | None) -> int | None:
        """Return a period that nothing worse than is wanted, or None."""
        if known is None or not self.one or self.problem.ranking[0] != PartTerm.PERIOD:
            return None
        return PartValues(self.graph, known).period_us

    def _windows(self) -> list[tuple[int, int]]:
        """Return the first and the last part that each block can be in, in plans that are not worse."""
        if self.known_us is None:
            return [(0, self.parts[-1])] * self.blocks.count
        return self.bounds.windows(self.known_us)

    def _later(self, block: int, part: int) -> BoolExpr:
        """Return "the block is in this part or a later one"."""
        first, last = self.windows[block]
        return Const(int(part <= first)) if part <= first or part > last else BoolVar("y", (block, part))

    def _inside(self, block: int, part: int) -> Expr:
        """Return "the block is in this part" as a number."""
        key = block, part
        if key not in self._number_in:
            ends = [(1, self._later(block, part)), (-1, self._later(block, part + 1))]
            self._number_in[key] = linear(ends)
        return self._number_in[key]

    def _bytes(self, part: int, *, step: int = 1) -> Expr:
        """Return the bytes of a part, in units of `step` bytes."""
        return self.weights.expr(
            lambda block: self._inside(block, part), lambda block: self._inside(block, part) >= 1, step=step
        )

    def _kind(self, part: int, kind: int) -> BoolExpr:
        return BoolVar("t", (part, kind)) if len(self.kinds) > 1 else Const(1)

    def _order(self) -> list[BoolExpr]:
        rows: list[BoolExpr] = []
        for block in range(self.blocks.count):
            first, last = self.windows[block]
            inside = range(first + 1, last + 1)
            rows += [self._later(block, part) <= self._later(block, part - 1) for part in inside]
            for other in self.blocks.before[block]:
                rows += [self._later(other, part) <= self._later(block, part) for part in self.parts[1:]]
        return rows

    def _kinds(self) -> list[BoolExpr]:
        if len(self.kinds) == 1:
            return []
        rows = [count(self._kind(part, k) for k in range(len(self.kinds))) == 1 for part in self.parts]
        for kind, units in enumerate(self.kinds):
            total = count(self._kind(part, kind) for part in self.parts)
            rows.append(
                total == len(units) if len(self.parts) == self.graph.unit_count else total <= len(units)
            )
        return rows

    @property
    def _counts(self) -> bool:
        """Whether it matters which parts are empty."""
        limits = self.problem.limits
        counted = PartTerm.UNITS in self.problem.ranking or limits.min_units or any(self.graph.exclusive)
        return bool(counted) or not self.one

    def _used(self, part: int) -> BoolVar:
        return BoolVar("n", (part,))

    def _counting(self) -> list[BoolExpr]:
        """Return what ties n to the blocks; empty parts are the last ones."""
        sinks = [block for block in range(self.blocks.count) if not self.blocks.after[block]]
        rows: list[BoolExpr] = []
        for part in self.parts:
            reached = [self._later(block, part) for block in sinks]
            rows += [each <= self._used(part) for each in reached]
            inside = linear((1, self._inside(block, part)) for block in range(self.blocks.count))
            rows.append(self._used(part) <= inside)
        return rows
