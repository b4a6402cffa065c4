"""Expressions as JSON: nested lists that begin with the name of their node.

An integer stands for itself; `["var", "on", 3, 1]`, `["sum", 5, [2, x], [-1, y]]`, `["<=", x, y]`,
`["not", a]`, `["and", a, b]`, `["or", a, b]`, `["max", x, y]` for the other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .errors import InvalidProblemError
from .expr import And, BoolExpr, BoolVar, Const, Expr, IntVar, LessEq, Linear, Max, Not, Or, as_bool

Data = int | list[Any]
Variables = Callable[[str, Sequence[Any]], Expr]
"""From the name and the indices of a variable to the variable; KeyError if there is none."""


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


def from_data(data: object, variables: Variables) -> BoolExpr:
    """Return the truth expression that nested lists describe.

    `variables`: `Quantities.find` of the problem.
    Raises InvalidProblemError: the lists do not describe an expression, or name a variable that is not there;
    ExpressionError: a number stands where a truth value is needed.
    """
    return as_bool(_Reader(variables).read(data))


class _Reader:
    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def read(self, data: object) -> Expr:
        if type(data) is int:
            return Const(data)
        match _without_truths(data):
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
        match _without_truths(data):
            case [int(factor), term]:
                return factor, self.read(term)
        raise InvalidProblemError(f"{_short(data)} is not a [factor, expression] of a sum")

    def _variable(self, name: str, args: list[object]) -> Expr:
        try:
            return self._variables(name, args)
        except KeyError as error:
            text = f"{_short(['var', name, *args])} names no quantity of this problem: {error.args[0]}"
            raise InvalidProblemError(text) from None


def _without_truths(data: object) -> object:
    """Return a list as it is; true and false are numbers to Python, but not in files."""
    if isinstance(data, list | tuple) and any(isinstance(item, bool) for item in data):
        raise InvalidProblemError(f"{_short(data)} has a truth value where a number is needed")
    return data


def _short(data: object) -> str:
    text = repr(data)
    return text if len(text) <= 80 else text[:77] + "..."
