"""How far a plan is from keeping to a rule or a limit: what searches and repairs descend."""

from __future__ import annotations

from collections.abc import Callable

from ..formulations.expr import And, BoolExpr, Expr, LessEq, Not, Or, Variable


def missed_by(value: int, limit: int) -> int:
    """Return how far a value is from a limit that it does not keep, in permille of the larger one."""
    return 1 + 1000 * abs(value - limit) // max(value, limit, 1)


def shortfall(expr: BoolExpr, value: Callable[[Variable], int], *, wanted: bool = True) -> int:
    """Return how far a condition is from being true (or false): 0 exactly if it is.

    A comparison that fails counts the difference in permille of its larger side, a conjunction the sum
    of its parts, a disjunction the least of them, anything else 1.
    """
    match expr:
        case Not():
            return shortfall(expr.arg, value, wanted=not wanted)
        case And() | Or():
            parts = (shortfall(arg, value, wanted=wanted) for arg in expr.args)
            every = isinstance(expr, And) is wanted
            return sum(parts) if every else min(parts, default=1)
        case LessEq():
            sides = (expr.left, expr.right) if wanted else (expr.right, expr.left)
            return _apart(*sides, value, margin=0 if wanted else 1)
        case _:
            return int(bool(expr.evaluate(value)) is not wanted)


def _apart(low: Expr, high: Expr, value: Callable[[Variable], int], *, margin: int) -> int:
    below, above = low.evaluate(value) + margin, high.evaluate(value)
    if below <= above:
        return 0
    return 1 + 1000 * (below - above) // max(abs(below), abs(above), 1)
