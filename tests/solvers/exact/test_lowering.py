"""The normal form, and the rows made of it: equal in truth to what was written."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from gapless.formulations.expr import (
    FALSE,
    TRUE,
    And,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    IntVar,
    LessEq,
    Linear,
    Max,
    Not,
    Or,
    Variable,
    VariableKey,
    abs_of,
    all_of,
    any_of,
    count,
    linear,
    max_of,
    min_of,
)
from gapless.formulations.model import Model
from gapless.solvers.exact.flat import Column, Flattener, Literal, Row, Sense, merged, unconditional
from gapless.solvers.exact.lowering import Arithmetic, Lowering, row_parts
from gapless.solvers.exact.search import reader_of

A, B, C, D = (BoolVar(name) for name in "abcd")
LITERALS = (A, B, C, D)
Values = Callable[[Variable], int]


def lowering(definitions: dict[VariableKey, Expr] | None = None) -> Lowering:
    return Lowering(Model(constraints=(), definitions=definitions or {}))


def assignments() -> Iterator[Values]:
    for bits in product((0, 1), repeat=len(LITERALS)):
        values = dict(zip((v.key for v in LITERALS), bits, strict=True))
        yield lambda variable, values=values: values[variable.key]  # type: ignore[misc]


def random_number(rng: random.Random, depth: int) -> Expr:
    kind = rng.randrange(5) if depth else 0
    if kind == 0:
        return rng.choice([*LITERALS, Const(rng.randint(-3, 3))])
    if kind == 1:
        return random_truth(rng, depth - 1)
    parts = [random_number(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if kind == 2:
        return max_of(parts)
    if kind == 3:
        return min_of(parts)
    return linear([(rng.choice([-3, -2, -1, 1, 2, 4]), part) for part in parts], rng.randint(-2, 2))


def random_truth(rng: random.Random, depth: int) -> BoolExpr:
    kind = rng.randrange(6) if depth else 0
    if kind == 0:
        return rng.choice(LITERALS)
    if kind == 1:
        return ~random_truth(rng, depth - 1)
    if kind in (2, 3):
        parts = [random_truth(rng, depth - 1) for _ in range(rng.randint(0, 3))]
        return all_of(parts) if kind == 2 else any_of(parts)
    left, right = random_number(rng, depth - 1), random_number(rng, depth - 1)
    return left <= right if kind == 4 else left == right


TRUTHS = [random_truth(random.Random(seed), 4) for seed in range(250)]


def in_normal_form(expr: BoolExpr) -> bool:
    match expr:
        case And() | Or():
            return len(expr.args) > 1 and all(map(in_normal_form, expr.args))
        case Not():
            return isinstance(expr.arg, BoolVar)
        case LessEq():
            terms, _ = row_parts(expr)
            return not any(isinstance(term, Linear | Const) for _, term in terms)
        case _:
            return isinstance(expr, BoolVar | Const)


def test_lowering_keeps_the_truth() -> None:
    for expr in TRUTHS:
        lowered = lowering().truth(expr)
        assert in_normal_form(lowered) or lowered in (TRUE, FALSE)
        for values in assignments():
            assert lowered.evaluate(values) == expr.evaluate(values)


def test_splitting_maxima_keeps_the_truth_and_removes_them() -> None:
    for expr in TRUTHS:
        lowered = lowering().truth(expr)
        if isinstance(lowered, LessEq):
            split = Arithmetic().split_max(lowered, 10_000)
            parts = split.args if isinstance(split, And | Or) else (split,)
            for part in parts:
                if isinstance(part, LessEq):
                    assert not any(isinstance(term, Max) for _, term in row_parts(part)[0])
            for values in assignments():
                assert split.evaluate(values) == expr.evaluate(values)


def test_splitting_stops_at_its_limit() -> None:
    wide = max_of([A + B, C + D, A + 2 * C])
    comparison = lowering().truth(wide + max_of([A + D, B + C]) <= 2)
    assert isinstance(comparison, LessEq)
    assert Arithmetic().split_max(comparison, 5) is comparison
    assert isinstance(Arithmetic().split_max(comparison, 6), And)


def test_definitions_are_put_in_and_shared() -> None:
    total = IntVar("total", (), 0, 99)
    twice = IntVar("twice", (), 0, 99)
    definitions: dict[VariableKey, Expr] = {
        total.key: max_of([3 * A, 5 * B + 1]),
        twice.key: IntVar("total", (), 0, 99) * 2,
    }
    lower = lowering(definitions)
    assert lower.number(IntVar("total", (), 0, 99)) is lower.number(total)
    # 2 total - total <= 5 is total <= 5: one term
    comparison = lower.truth(twice - total <= 5)
    assert isinstance(comparison, LessEq)
    assert [(factor, type(term)) for factor, term in row_parts(comparison)[0]] == [(1, Max)]


def test_a_counted_truth_gets_a_literal_only_where_one_is_needed() -> None:
    used = BoolVar("used")
    lower = lowering({used.key: count([A, B])})
    assert lower.truth(used <= 0).evaluate(lambda variable: 0) == 1
    assert lower.channels == []
    assert lower.truth(used | C).evaluate(lambda v: int(v.key == used.key)) == 1
    assert len(lower.channels) == 2
    lower.truth(~used | D)
    assert len(lower.channels) == 2
    for a, literal in product((0, 1), repeat=2):
        values = {A.key: a, B.key: 0, used.key: literal}
        kept = all(channel.evaluate(lambda v, values=values: values[v.key]) for channel in lower.channels)  # type: ignore[misc]
        assert kept == (a == literal)


def test_constants_fold_and_divisors_go() -> None:
    lower = lowering()
    assert lower.truth(A + B <= 2) is TRUE
    assert lower.truth(A + B >= 3) is FALSE
    assert lower.truth(all_of([])) is TRUE
    assert lower.truth(any_of([FALSE, A & FALSE])) is FALSE
    assert lower.truth(A - A <= 0) is TRUE
    assert lower.number(max_of([Const(3), A + 1, Const(2)])).evaluate(lambda v: 1) == 3
    assert isinstance(lower.number(max_of([Const(3), A + 1])), Const)
    terms, most = row_parts(lower.truth(6 * A + 4 * B <= 7))  # type: ignore[arg-type]
    assert (sorted(factor for factor, _ in terms), most) == ([2, 3], 3)
    assert lower.bounds(lower.number(abs_of(A - 2 * B))) == (-1, 2)


def satisfiable(flat: Flattener, rows: list[Row], fixed: dict[int, int]) -> bool:
    """Return whether the auxiliary columns can be chosen, by propagation and trying every value."""
    domains = [(fixed.get(i, c.low), fixed.get(i, c.high)) for i, c in enumerate(flat.columns)]
    return _search(domains, rows)


def _search(domains: list[tuple[int, int]], rows: list[Row]) -> bool:
    for row in rows:
        if all(low == high for _, c in row.terms for low, high in [domains[c]]):
            value = sum(factor * domains[column][0] for factor, column in row.terms)
            in_range = (row.least is None or row.least <= value) and (row.most is None or value <= row.most)
            if not in_range and all(_holds(literal, domains) for literal in row.conditions):
                return False
    open_ = [index for index, (low, high) in enumerate(domains) if low < high]
    if not open_:
        return True
    low, high = domains[open_[0]]
    for value in range(low, high + 1):
        narrowed = list(domains)
        narrowed[open_[0]] = (value, value)
        if _search(narrowed, rows):
            return True
    return False


def _holds(literal: Literal, domains: list[tuple[int, int]]) -> bool:
    low, high = domains[literal if literal >= 0 else ~literal]
    return low == high == int(literal >= 0)


@pytest.mark.parametrize("big_m", [False, True])
def test_rows_hold_exactly_if_the_condition_does(big_m: bool) -> None:
    tried = 0
    for seed in range(150):
        expr = random_truth(random.Random(seed), 3)
        flat = Flattener()
        required = flat.require(lowering().truth(expr))
        rows = [*required, *flat.rows]
        if len(flat.columns) > 9:
            continue
        if big_m:
            rows = [always for row in rows for always in unconditional(row, flat.columns)]
            assert not any(row.conditions for row in rows)
        tried += 1
        for values in assignments():
            known = [(flat.find(variable.key), values(variable)) for variable in LITERALS]
            fixed = {column: value for column, value in known if column is not None}
            assert satisfiable(flat, rows, fixed) == bool(expr.evaluate(values)), seed
    assert tried > 60


def test_polarity_saves_the_choices() -> None:
    largest = max_of([3 * A + B, 2 * C + D])
    above = Flattener()
    above.require(lowering().truth(largest <= 2))
    assert len(above.columns) == len(LITERALS) + 1
    assert len(above.rows) == 2
    below = Flattener()
    below.require(lowering().truth(largest >= 2))
    assert len(below.columns) == len(LITERALS) + 3


def test_opposite_sides_are_joined() -> None:
    rows = [
        Row(terms=((1, 0), (2, 1)), most=5),
        Row(terms=((-1, 0), (-2, 1)), most=-5),
        Row(terms=((1, 0), (2, 1)), most=7),
        Row(terms=((1, 0),), most=1, conditions=(2,)),
    ]
    equation, conditional = merged(rows)
    assert (equation.least, equation.most) == (5, 5)
    assert (conditional.least, conditional.most) == (None, 1)


def test_big_m_is_as_small_as_it_can_be() -> None:
    columns = [
        Column(name="x", low=0, high=10, stands_for=IntVar("x", (), 0, 10)),
        Column(name="c", low=0, high=1, stands_for=BoolVar("c")),
    ]
    (row,) = unconditional(Row(terms=((1, 0),), most=4, conditions=(1,)), columns)
    assert (row.terms, row.most) == (((1, 0), (6, 1)), 10)
    assert unconditional(Row(terms=((1, 0),), most=10, conditions=(1,)), columns) == []


def test_an_objective_needs_only_the_upper_side() -> None:
    flat = Flattener()
    value = flat.affine(lowering().number(max_of([A + B, 2 * C]) - min_of([A, D])), Sense.UPPER)
    assert len(value.terms) == 2
    assert all(not row.conditions for row in flat.rows)


def test_all_columns_follow_from_the_variables() -> None:
    x, y, z = IntVar("x", (), 0, 20), IntVar("y", (), 0, 20), BoolVar("z")
    flat = Flattener()
    condition = (max_of((x, y)) >= 7) & (z | (x <= 3) | (max_of((x + 2, y)) <= 11))
    rows = [*flat.require(lowering().truth(condition)), *flat.rows]
    for values in ({"x": 9, "y": 4, "z": 1}, {"x": 3, "y": 8, "z": 0}, {"x": 9, "y": 11, "z": 0}):
        columns = flat.complete(reader_of({(name, ()): value for name, value in values.items()}))
        for row in rows:
            if all(columns[c] if c >= 0 else 1 - columns[~c] for c in row.conditions):
                total = sum(factor * columns[column] for factor, column in row.terms)
                assert row.least is None or total >= row.least
                assert row.most is None or total <= row.most
