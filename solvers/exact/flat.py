"""Normal-form expressions as rows of integer columns, for CP-SAT and MILP solvers.

A row is `least <= sum of factor * column <= most`, if all its conditions hold. Polarity keeps it
small (Plaisted and Greenbaum 1986): where only "at least as large" matters, `Max` is a column above
its arguments and a condition is implied in one direction; choices are added where both directions
matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import cast

from ...formulations.expr import (
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
    VariableKey,
)
from ...formulations.model import Values
from .lowering import row_parts

_LOOKS = 4
"""How often a row is looked at on average while bounds are narrowed."""

Literal = int
"""A 0/1 column by index, or its negation as ~index."""


class Sense(IntEnum):
    """What a column has to do with the value it stands for.

    UPPER
        Never less than the value, and free to equal it.
    LOWER
        Never more.
    EXACT
        Equal.
    """

    UPPER = 1
    EXACT = 0
    LOWER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """An integer unknown with its bounds.

    `stands_for` is the expression whose value it takes in a solution. `derived` columns are integers
    because of the others: a MILP solver need not demand it.
    """

    name: str
    low: int
    high: int
    stands_for: Expr
    derived: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """least <= sum of factor * column <= most, if all conditions hold; None: no such side."""

    terms: tuple[tuple[int, int], ...]
    least: int | None = None
    most: int | None = None
    conditions: tuple[Literal, ...] = ()


@dataclass(slots=True)
class Affine:
    """constant + sum of factor * column."""

    terms: dict[int, int]
    constant: int = 0

    def add(self, factor: int, other: Affine) -> None:
        """Add factor * other."""
        self.constant += factor * other.constant
        for column, weight in other.terms.items():
            self.terms[column] = self.terms.get(column, 0) + factor * weight

    def row(self, most: int, conditions: Iterable[Literal] = ()) -> Row:
        """Return the row `self <= most`."""
        terms = tuple((factor, column) for column, factor in sorted(self.terms.items()) if factor)
        return Row(terms=terms, most=most - self.constant, conditions=tuple(conditions))


def literal_value(literal: Literal) -> Affine:
    """Return a literal as a number."""
    return Affine({literal: 1}) if literal >= 0 else Affine({~literal: -1}, 1)


class Flattener:
    """Turns normal-form expressions into columns and rows."""

    def __init__(self) -> None:
        self.columns: list[Column] = []  # all columns so far
        # rows that say what auxiliary columns mean. They never exclude a plan, so they can stay when the
        # condition that needed them is gone
        self.rows: list[Row] = []
        self._index: dict[VariableKey, int] = {}
        self._cache: dict[tuple[int, Sense], tuple[Expr, Affine]] = {}
        self._literals: dict[tuple[int, Sense], tuple[Expr, Literal]] = {}

    def column(self, variable: BoolVar | IntVar) -> int:
        """Return the column of a variable."""
        if variable.key not in self._index:
            derived = isinstance(variable, IntVar)  # encodings have none that their literals leave open
            low, high = (variable.low, variable.high) if isinstance(variable, IntVar) else (0, 1)
            name = f"{variable.name}{variable.args}"
            self._index[variable.key] = self._new(name, low, high, variable, derived=derived)
        return self._index[variable.key]

    def find(self, key: VariableKey) -> int | None:
        """Return the column of a variable, or None if no row mentions it."""
        return self._index.get(key)

    def require(self, expr: BoolExpr, conditions: tuple[Literal, ...] = ()) -> list[Row]:
        """Return rows that make a condition true; what they need is added to `rows`."""
        return merged(self._require(expr, conditions))

    def affine(self, expr: Expr, sense: Sense) -> Affine:
        """Return a number as columns."""
        key = (id(expr), sense)
        if key not in self._cache:
            self._cache[key] = (expr, self._affine(expr, sense))
        return self._cache[key][1]

    def bounds(self, value: Affine) -> tuple[int, int]:
        """Return bounds of an affine value from those of its columns."""
        low = high = value.constant
        for column, factor in value.terms.items():
            ends = (factor * self.columns[column].low, factor * self.columns[column].high)
            low, high = low + min(ends), high + max(ends)
        return low, high

    def complete(self, values: Values) -> list[int]:
        """Return the value of every column, given those of the variables."""
        return [column.stands_for.evaluate(values) for column in self.columns]

    def _new(self, name: str, low: int, high: int, stands_for: Expr, *, derived: bool = False) -> int:
        column = Column(name=name, low=low, high=high, stands_for=stands_for, derived=derived)
        self.columns.append(column)
        return len(self.columns) - 1

    def _require(self, expr: BoolExpr, conditions: tuple[Literal, ...]) -> list[Row]:
        match expr:
            case And():
                return [row for arg in expr.args for row in self._require(arg, conditions)]
            case Or():
                return self._require_any(expr.args, conditions)
            case LessEq():
                return [self._row(expr, conditions)]
            case Const():
                return [] if expr.value else [self._clause([~c for c in conditions])]
            case _:
                return [self._clause([self._literal(expr, Sense.LOWER), *(~c for c in conditions)])]

    def _require_any(self, args: tuple[BoolExpr, ...], conditions: tuple[Literal, ...]) -> list[Row]:
        """Require one of the arguments; a single comparison among literals becomes a conditional row."""
        simple = [arg for arg in args if isinstance(arg, BoolVar | Not)]
        rest = [arg for arg in args if not isinstance(arg, BoolVar | Not)]
        chosen = [self._literal(arg, Sense.LOWER) for arg in simple]
        if len(rest) == 1:
            return self._require(rest[0], (*conditions, *(~literal for literal in chosen)))
        chosen += [self._literal(arg, Sense.LOWER) for arg in rest]
        return [self._clause([*chosen, *(~c for c in conditions)])]

    def _row(self, comparison: LessEq, conditions: tuple[Literal, ...] = ()) -> Row:
        left, most = self._left(comparison)
        return left.row(most, conditions)

    def _left(self, comparison: LessEq) -> tuple[Affine, int]:
        terms, most = row_parts(comparison)
        left = Affine({})
        for factor, term in terms:
            left.add(factor, self.affine(term, Sense.UPPER if factor > 0 else Sense.LOWER))
        return left, most

    def _clause(self, literals: list[Literal]) -> Row:
        total = Affine({})
        for literal in literals:
            total.add(-1, literal_value(literal))
        return total.row(-1)

    def _affine(self, expr: Expr, sense: Sense) -> Affine:
        match expr:
            case Const():
                return Affine({}, expr.value)
            case BoolVar() | IntVar():
                return Affine({self.column(expr): 1})
            case Linear():
                total = Affine({}, expr.constant)
                for factor, term in expr.terms:
                    total.add(factor, self.affine(term, sense if factor > 0 else Sense(-sense)))
                return total
            case Max():
                return self._max(expr, sense)
            case _:
                return literal_value(self._literal(cast("BoolExpr", expr), sense))

    def _max(self, expr: Max, sense: Sense) -> Affine:
        args = [self.affine(arg, sense) for arg in expr.args]
        bounds = [self.bounds(arg) for arg in args]
        low, high = max(b[0] for b in bounds), max(b[1] for b in bounds)
        value = Affine({self._new(f"max{len(self.columns)}", low, high, expr, derived=True): 1})
        if sense is not Sense.LOWER:
            self.rows += [self._at_least(value, arg, ()) for arg in args]
        if sense is not Sense.UPPER:
            choices = [self._new(f"largest{len(self.columns)}", 0, 1, expr <= arg) for arg in expr.args]
            self.rows += [self._at_least(arg, value, (c,)) for arg, c in zip(args, choices, strict=True)]
            self.rows.append(self._clause(choices))
        return value

    def _at_least(self, large: Affine, small: Affine, conditions: tuple[Literal, ...]) -> Row:
        difference = Affine({})
        difference.add(1, small)
        difference.add(-1, large)
        return difference.row(0, conditions)

    def _literal(self, expr: BoolExpr, sense: Sense) -> Literal:
        """Return a literal that implies the condition (LOWER), is implied by it (UPPER), or both."""
        match expr:
            case BoolVar():
                return self.column(expr)
            case Not():
                return ~self._literal(expr.arg, Sense(-sense))
        key = (id(expr), sense)
        if key not in self._literals:
            self._literals[key] = (expr, self._define(expr, sense))
        return self._literals[key][1]

    def _define(self, expr: BoolExpr, sense: Sense) -> Literal:
        literal = self._new(f"if{len(self.columns)}", 0, 1, expr)
        if sense is not Sense.UPPER:
            self.rows += self._require(expr, (literal,))
        if sense is not Sense.LOWER:
            self.rows += self._refute(expr, (~literal,))
        return literal

    def _refute(self, expr: BoolExpr, conditions: tuple[Literal, ...]) -> list[Row]:
        """Return rows that make a condition false."""
        match expr:
            case Or():
                return [row for arg in expr.args for row in self._refute(arg, conditions)]
            case And():
                broken = [~self._literal(arg, Sense.UPPER) for arg in expr.args]
                return [self._clause([*broken, *(~c for c in conditions)])]
            case LessEq():
                terms, most = row_parts(expr)
                right = Affine({})
                for factor, term in terms:
                    right.add(-factor, self.affine(term, Sense.LOWER if factor > 0 else Sense.UPPER))
                return [right.row(-most - 1, conditions)]
            case _:
                return [self._clause([~self._literal(expr, Sense.UPPER), *(~c for c in conditions)])]


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return rows with opposite sides of one sum joined, e.g. two inequalities as one equation."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        flip = bool(row.terms) and row.terms[0][0] < 0
        if flip:
            terms = tuple((-factor, column) for factor, column in row.terms)
            row = replace(row, terms=terms, least=_minus(row.most), most=_minus(row.least))  # noqa: PLW2901
        key = (row.terms, row.conditions)
        known = found.get(key, row)
        least = [side for side in (known.least, row.least) if side is not None]
        most = [side for side in (known.most, row.most) if side is not None]
        found[key] = replace(row, least=max(least, default=None), most=min(most, default=None))
    return list(found.values())


def _minus(side: int | None) -> int | None:
    return None if side is None else -side


def unconditional(row: Row, columns: Sequence[Column]) -> list[Row]:
    """Return a conditional row as rows that always hold (big-M, with the least constants).

    With k conditions c_i and a sum of at most U, `sum <= most` becomes
    sum + (U - most) * (c_1 + ... + c_k) <= U + (U - most) * (k - 1).
    """
    if not row.conditions:
        return [row]
    found = []
    for sign, side in ((1, row.most), (-1, _minus(row.least))):
        if side is None:
            continue
        total = Affine({})
        reach = 0
        for factor, column in row.terms:
            total.add(sign * factor, Affine({column: 1}))
            ends = (factor * columns[column].low, factor * columns[column].high)
            reach += max(sign * end for end in ends)
        if reach <= side:
            continue
        for literal in row.conditions:
            total.add(reach - side, literal_value(literal))
        found.append(total.row(reach + (reach - side) * (len(row.conditions) - 1)))
    return found


def narrowed(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column] | None:
    """Return columns with the bounds that rows leave them, in exact integers; None: nothing is left.

    Rows are looked at a few times at most: no bound has to be the best one. Conditional ones say nothing.
    """
    rows = [row for row in rows if not row.conditions]
    ends = [(column.low, column.high) for column in columns]
    users: dict[int, list[Row]] = {}
    for row in rows:
        for _, column in row.terms:
            users.setdefault(column, []).append(row)
    waiting, looks = deque(rows), _LOOKS * len(rows)
    while waiting and looks:
        row, looks = waiting.popleft(), looks - 1
        for sign, side in ((1, row.most), (-1, _minus(row.least))):
            if side is None:
                continue
            spare = side - sum(min(sign * factor * end for end in ends[c]) for factor, c in row.terms)
            if spare < 0:
                return None
            for factor, column in row.terms:
                low, high = ends[column]
                reach = spare // abs(factor)
                near = (low, min(high, low + reach)) if sign * factor > 0 else (max(low, high - reach), high)
                if near != (low, high):
                    ends[column] = near
                    waiting += users[column]
    return [replace(c, low=low, high=high) for c, (low, high) in zip(columns, ends, strict=True)]


def without_fixed(row: Row, columns: Sequence[Column]) -> Row:
    """Return a row without the columns that have one value."""
    fixed = sum(factor * columns[c].low for factor, c in row.terms if columns[c].low == columns[c].high)
    return replace(
        row,
        terms=tuple((factor, c) for factor, c in row.terms if columns[c].low < columns[c].high),
        least=None if row.least is None else row.least - fixed,
        most=None if row.most is None else row.most - fixed,
    )
