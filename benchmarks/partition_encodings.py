"""Convex parts: what each part of the encoding is worth, on the same graphs with the same plan to start from.

    python -m benchmarks.partition_encodings                                # CP-SAT and Z3
    python -m benchmarks.partition_encodings --backends pulp --seconds 60   # HiGHS

Rows are ways to write one problem. `windows`: blocks have windows of parts; `rows`: the first parts, and the
last ones, hold no more work than they can. Both are taken from bounds that count messages, or that do not.
The last row is no order encoding: one literal for each block and part, as usual in integer programming.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.partition_graphs import HARDER, PUBLIC_LIKE
from gapless.formulations.expr import BoolExpr, BoolVar, Const, Expr, VariableKey, count, linear
from gapless.formulations.model import Encoded
from gapless.formulations.partition.bounds import PartBounds
from gapless.formulations.partition.encoding import OrderEncoding
from gapless.formulations.partition.tables import Code
from gapless.formulations.problem import Problem
from gapless.solvers.exact.base import ExactBackend
from gapless.solvers.families import Start
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

GRAPHS = ("residual-8", "inception-layers", "inception-16")
INSTANCES = {instance.name: instance for instance in (*PUBLIC_LIKE, *HARDER)}


class WithoutMessages(OrderEncoding):
    """Windows and rows from the work of blocks alone."""

    def _bounds(self) -> PartBounds:
        return replace(super()._bounds(), stretches=None)


class WithoutRows(OrderEncoding):
    """Windows, but no rows about the first and the last parts."""

    def _work(self) -> list[BoolExpr]:
        return []

    def _ends(self) -> list[Expr]:
        return []


class WithoutWindows(OrderEncoding):
    """Rows, but no windows."""

    def _windows(self) -> list[tuple[int, int]]:
        return [(0, self.parts[-1])] * self.blocks.count


class OrderAlone(WithoutRows, WithoutWindows):
    """Neither."""


class Assignment(OrderAlone):
    """x[b, s] = "block b is in part s", one each; on a -> b not x[b, s] and x[a, s'] if s < s'."""

    def _chosen_part(self, block: int, part: int) -> BoolExpr:
        return BoolVar("x", (block, part)) if part in self.parts else Const(0)

    def _inside(self, block: int, part: int) -> Expr:
        return self._chosen_part(block, part)

    def _later(self, block: int, part: int) -> Any:
        return linear((1, self._chosen_part(block, later)) for later in self.parts[part:])

    def _order(self) -> list[BoolExpr]:
        blocks, parts = range(self.blocks.count), self.parts
        rows = [count(self._chosen_part(block, part) for part in parts) == 1 for block in blocks]
        return rows + [
            ~(self._chosen_part(block, early) & self._chosen_part(other, late))
            for block in blocks
            for other in self.blocks.before[block]
            for early, late in combinations(parts, 2)
        ]

    def _assign(self, code: Code) -> Mapping[VariableKey, int]:
        found = dict(super()._assign(code))
        for block in range(self.blocks.count):
            later = [found.get(("y", (block, part)), 1) for part in self.parts] + [0]
            found |= {("x", (block, part)): later[part] - later[part + 1] for part in self.parts}
        return found


VARIANTS: dict[str, type[OrderEncoding]] = {
    "order, windows, rows": OrderEncoding,
    "the same, without messages": WithoutMessages,
    "order, windows": WithoutRows,
    "order, rows": WithoutWindows,
    "order alone": OrderAlone,
    "assignment": Assignment,
}


def variant_of(backend: str, encoding: type[OrderEncoding]) -> ExactBackend:
    """Return a backend that solves problems in an encoding."""
    base: Any = type(get_backend(backend))

    class Variant(base):  # type: ignore[misc]
        def encode(self, problem: Problem, options: SolveOptions, start: Start) -> Encoded[Code]:
            return encoding(problem, one=True, known=start.code).encoded()

    return Variant()


def main() -> int:
    """Print a table for each backend; return 1 if two proofs contradict each other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--graphs", nargs="+", choices=INSTANCES, default=GRAPHS)
    parser.add_argument("--backends", nargs="+", default=["cpsat", "z3"])
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each solve")
    options = parser.parse_args()
    problems = {name: INSTANCES[name].problem() for name in options.graphs}
    proved: dict[str, set[int]] = {name: set() for name in problems}
    for backend in options.backends:
        table = Table("encoding", *problems, title=f"{backend}: seconds to proof, or the gap at the limit")
        for name, encoding in VARIANTS.items():
            cells = [
                _solved(problem, variant_of(backend, encoding), options.seconds, proved[graph])
                for graph, problem in problems.items()
            ]
            table.add_row(name, *cells)
        Console(width=150).print(table)
    return int(any(len(values) > 1 for values in proved.values()))


def _solved(problem: Problem, backend: ExactBackend, seconds: float, proved: set[int]) -> str:
    began = perf_counter()
    result = solve(problem, backend, SolveOptions(time_limit_s=seconds), explain=False)
    took = perf_counter() - began
    if result.gap == 0 and result.objective is not None:
        proved.add(result.objective)
        return f"{took:.1f} s"
    return "-" if result.gap is None else f"{100 * result.gap:.1f} %"


if __name__ == "__main__":
    sys.exit(main())
