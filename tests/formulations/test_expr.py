"""Expressions: operators build the nine nodes, bounds hold, Python control flow is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.formulations.errors import ExpressionError
from gapless.formulations.expr import (
    BoolVar,
    Const,
    Expr,
    IntVar,
    Linear,
    Max,
    Variable,
    abs_of,
    all_of,
    any_of,
    as_bool,
    count,
    linear,
    max_of,
    min_of,
    variables,
)

A, B = BoolVar("a"), BoolVar("b")
X, Y = IntVar("x", (), -5, 5), IntVar("y", (), 0, 9)


class _Untyped:
    """`ANY[x]` is x without its type: for passing what a type checker would refuse."""

    def __getitem__(self, value: Any) -> Any:
        return value


ANY = _Untyped()
VALUES = {A.key: 1, B.key: 0, X.key: -3, Y.key: 7}


def value(variable: Variable) -> int:
    return VALUES[variable.key]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (X + 2 * Y - 1, 10),
        (3 - X, 6),
        (-Y, -7),
        (X <= Y, 1),
        (X >= Y, 0),
        (X < -3, 0),
        (X > -4, 1),
        (X == -3, 1),
        (X != -3, 0),
        (A & ~B, 1),
        (A & B, 0),
        (B | A, 1),
        (1 & A, 1),
        (B.implies(A), 1),
        (A.implies(B), 0),
        (A + B <= 1, 1),
        (count([A, B, True]), 2),
        (all_of([]), 1),
        (any_of([]), 0),
        (max_of([X, Y, 2]), 7),
        (min_of([X, Y, 2]), -3),
        (abs_of(X), 3),
        (Const(4) * 2, 8),
    ],
)
def test_evaluate(expr: Expr, expected: int) -> None:
    assert expr.evaluate(value) == expected


@pytest.mark.parametrize(
    "use",
    [
        lambda: bool(A),
        lambda: A and B,
        lambda: not A,
        lambda: 1 <= X <= 5,
        lambda: max(X, Y),
        lambda: X in (1, 2),
        lambda: 1 if A else 2,
    ],
)
def test_python_control_flow_says_what_to_write(use: Callable[[], object]) -> None:
    with pytest.raises(ExpressionError, match="a & b for 'a and b'"):
        use()


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda: X * ANY[1.5], "multiplied by an integer"),
        (lambda: X + ANY[0.5], "whole microseconds"),
        (lambda: ANY[X] <= ANY["7"], "cannot stand"),
        (lambda: A & ANY[X], "compare it"),
        (lambda: A & 7, "truth value"),
        (lambda: as_bool(Const(3)), "truth value"),
        (lambda: max_of([]), "largest of nothing"),
    ],
)
def test_wrong_operands_are_refused(use: Callable[[], object], words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        use()


def test_sums_are_flat() -> None:
    total = linear([(2, X + 3), (1, Y - X)], 4)
    assert isinstance(total, Linear)
    assert total.constant == 10
    assert [(f, t) for f, t in total.terms if t is Y] != []
    assert all(not isinstance(term, Linear) for _, term in total.terms)


def test_long_conjunctions_are_flat() -> None:
    rule = as_bool(True)
    for _ in range(5000):
        rule = rule & A
    assert rule.evaluate(value) == 1


def test_variables_are_found_once() -> None:
    expr = (X + Y <= 3) & (A | ~A) & (max_of([X, Y]) >= 2)
    assert set(variables(expr)) == {X.key, Y.key, A.key}


def expressions() -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from([A, B, X, Y]) | st.integers(-4, 4).map(Const)

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda p: p[0] + 2 * p[1]),
            pairs.map(lambda p: p[0] - p[1]),
            pairs.map(lambda p: p[0] <= p[1]),
            pairs.map(lambda p: (p[0] <= 1) & (p[1] >= 0)),
            pairs.map(lambda p: (p[0] == 1) | (p[1] < 2)),
            inner.map(lambda e: ~(e >= 1)),
            pairs.map(Max),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@given(expressions(), st.integers(0, 1), st.integers(0, 1), st.integers(-5, 5), st.integers(0, 9))
def test_bounds_hold_for_every_value(expr: Expr, a: int, b: int, x: int, y: int) -> None:
    values = {A.key: a, B.key: b, X.key: x, Y.key: y}
    wide = {A.key: (0, 1), B.key: (0, 1), X.key: (-5, 5), Y.key: (0, 9)}
    found = expr.evaluate(lambda variable: values[variable.key])
    low, high = expr.bounds(lambda variable: wide[variable.key])
    assert low <= found <= high
    exact = expr.bounds(lambda variable: (values[variable.key], values[variable.key]))
    assert exact == (found, found)
