"""Expressions as JSON: nested lists that begin with the name of their node.

An integer stands for itself; `["var", "on", 3, 1]`, `["sum", 5, [2, x], [-1, y]]`, `["<=", x, y]`,
`["not", a]`, `["and", a, b]`, `["or", a, b]`, `["max", x, y]` for the other nodes.
"""

from __future__ import annotations

from typing import Any

from .chain import Chain
from .errors import InvalidProblemError
from .expr import And, BoolExpr, BoolVar, Const, Expr, IntVar, LessEq, Linear, Max, Not, Or, as_bool
from .quantities import Quantity, QuantityVariables

Data = int | list[Any]


def to_data(expr: Expr) -> Data:
    """Return an expression as nested lists."""
    match expr:
        case Const():
            return expr.value
        case BoolVar() | IntVar():
            return ["var", str(expr.name), *expr.args]
        case Linear():
            return ["sum", expr.constant, *([factor, to_data(term)] for factor, term in expr.terms)]
        case LessEq():
            return ["<=", to_data(expr.left), to_data(expr.right)]
        case Not():
            return ["not", to_data(expr.arg)]
        case And() | Or() | Max():
            return [type(expr).__name__.lower(), *map(to_data, expr.args)]
    raise TypeError(f"{type(expr).__name__} is not one of the nine nodes")


def from_data(data: object, chain: Chain) -> BoolExpr:
    """Return the truth expression that nested lists describe, with the variables of a chain.

    Raises
    ------
    InvalidProblemError
        The lists do not describe an expression, or name a variable that the chain does not have.
    ExpressionError
        A number stands where a truth value is needed.
    """
    return as_bool(_Reader(chain).read(data))


class _Reader:
    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._variables = QuantityVariables(chain)

    def read(self, data: object) -> Expr:
        if isinstance(data, int) and not isinstance(data, bool):
            return Const(data)
        match data:
            case ["var", str(name), *args]:
                return self._variable(name, args)
            case ["sum", int(constant), *terms]:
                return Linear(tuple(map(self._term, terms)), constant)
            case ["<=", left, right]:
                return LessEq(self.read(left), self.read(right))
            case ["not", arg]:
                return Not(as_bool(self.read(arg)))
            case ["and", *args]:
                return And(tuple(as_bool(self.read(arg)) for arg in args))
            case ["or", *args]:
                return Or(tuple(as_bool(self.read(arg)) for arg in args))
            case ["max", first, *args]:
                return Max(tuple(map(self.read, (first, *args))))
        raise InvalidProblemError(f"{_short(data)} is not an expression")

    def _term(self, data: object) -> tuple[int, Expr]:
        match data:
            case [int(factor), term]:
                return factor, self.read(term)
        raise InvalidProblemError(f"{_short(data)} is not a [factor, expression] of a sum")

    def _variable(self, name: str, args: list[object]) -> Expr:
        chain, make = self._chain, self._variables
        layers, units = range(chain.layer_count), range(chain.unit_count)
        match name, args:
            case Quantity.ON, [int(layer), int(unit)] if layer in layers and unit in units:
                return make.on(layer, unit)
            case Quantity.USES, [int(unit)] if unit in units:
                return make.uses(unit)
            case Quantity.CUT, [int(boundary)] if boundary in range(1, chain.layer_count):
                return make.cut(boundary)
            case Quantity.BUSY, [int(unit)] if unit in units:
                return make.busy_us(unit)
            case Quantity.MEMORY, [int(unit)] if unit in units:
                return make.memory_bytes(unit)
            case _, [] if name in _TOTALS:
                return make.total(Quantity(name))
        raise InvalidProblemError(
            f"{_short(['var', name, *args])} names no quantity of this problem: "
            f"{len(layers)} layers, {len(units)} units; quantities are {', '.join(Quantity)}"
        )


_TOTALS = frozenset(Quantity) - {
    Quantity.ON,
    Quantity.USES,
    Quantity.CUT,
    Quantity.BUSY,
    Quantity.MEMORY,
}


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 80 else text[:77] + "..."
