"""Expressions: the nine nodes in which rules, models and objectives are written, and their JSON form.

An expression is a frozen tree over integers; truth is 0 or 1. Every backend and the judge read the
same tree: exact backends lower it, all of them evaluate it on a plan.

========== =============================================================
node       meaning
========== =============================================================
`Const`    an integer
`BoolVar`  a variable in {0, 1}
`IntVar`   an integer variable with bounds
`Linear`   constant + sum of coefficient * expression
`LessEq`   left <= right
`Not`      negation of a truth value
`And`      all of
`Or`       any of
`Max`      largest of one or more integers
========== =============================================================

Everything else (`==`, `implies`, `min_of`, `abs_of`, `count`, ...) is sugar onto these.

Expressions as JSON: nested lists that begin with the name of their node.

An integer stands for itself; `["var", "on", 3, 1]`, `["sum", 5, [2, x], [-1, y]]`, `["<=", x, y]`,
`["not", a]`, `["and", a, b]`, `["or", a, b]`, `["max", x, y]` for the other nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NoReturn, Union

from .errors import ExpressionError, InvalidProblemError

Interval = tuple[int, int]
"""Smallest and largest value that an expression can take."""


class Expr:
    """Base of all nodes: operators build trees, nothing is computed."""

    __slots__ = ()

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        """Return an interval that holds the value, given an interval for each variable."""
        raise TypeError(f"{type(self).__name__} is not one of the nine nodes")

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        """Return the value, given the value of each variable."""
        raise TypeError(f"{type(self).__name__} is not one of the nine nodes")

    def __add__(self, other: ExprLike) -> Expr:
        return linear([(1, self), (1, as_expr(other))])

    __radd__ = __add__

    def __sub__(self, other: ExprLike) -> Expr:
        return linear([(1, self), (-1, as_expr(other))])

    def __rsub__(self, other: ExprLike) -> Expr:
        return linear([(-1, self), (1, as_expr(other))])

    def __mul__(self, factor: int) -> Expr:
        if isinstance(factor, bool) or not isinstance(factor, Integral):
            raise ExpressionError(
                f"an expression can be multiplied by an integer only, not by {factor!r}; "
                "scale fractions up, e.g. 1000 * a <= 1500 * b"
            )
        return linear([(int(factor), self)])

    __rmul__ = __mul__

    def __neg__(self) -> Expr:
        return linear([(-1, self)])

    def __le__(self, other: ExprLike) -> BoolExpr:
        return LessEq(self, as_expr(other))

    def __ge__(self, other: ExprLike) -> BoolExpr:
        return LessEq(as_expr(other), self)

    def __lt__(self, other: ExprLike) -> BoolExpr:
        return LessEq(self + 1, as_expr(other))

    def __gt__(self, other: ExprLike) -> BoolExpr:
        return LessEq(as_expr(other) + 1, self)

    def __eq__(self, other: object) -> BoolExpr:  # type: ignore[override]
        right = as_expr(other)
        return And((LessEq(self, right), LessEq(right, self)))

    def __ne__(self, other: object) -> BoolExpr:  # type: ignore[override]
        return Not(self == other)

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            "an expression has no truth value while a rule is being built. Write a & b for 'a and b', "
            "a | b for 'a or b', ~a for 'not a', a.implies(b) for 'if a: b', "
            "(low <= x) & (x <= high) for a chained comparison, and max_of/min_of for max/min. "
            "A rule that needs ordinary Python on a finished plan is an OpaqueRule"
        )


class BoolExpr(Expr):
    """An expression whose value is 0 or 1."""

    __slots__ = ()

    def __and__(self, other: BoolLike) -> BoolExpr:
        return And((*_operands(And, self), as_bool(other)))

    __rand__ = __and__

    def __or__(self, other: BoolLike) -> BoolExpr:
        return Or((*_operands(Or, self), as_bool(other)))

    __ror__ = __or__

    def __invert__(self) -> BoolExpr:
        return Not(self)

    def implies(self, other: BoolLike) -> BoolExpr:
        """Return "if this, then other"."""
        return Or((Not(self), as_bool(other)))


@dataclass(frozen=True, slots=True, eq=False)
class Const(BoolExpr):
    """An integer; 0 and 1 also stand for false and true."""

    value: int

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        return self.value, self.value

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class BoolVar(BoolExpr):
    """A variable in {0, 1}, known by its name and indices, e.g. `on` of (layer, unit)."""

    name: str
    args: tuple[int, ...] = ()

    @property
    def key(self) -> VariableKey:
        """Name and indices: what identifies the variable."""
        return self.name, self.args

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        return domain(self)

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return value(self)


@dataclass(frozen=True, slots=True, eq=False)
class IntVar(Expr):
    """An integer variable with inclusive bounds, known by its name and indices."""

    name: str
    args: tuple[int, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def key(self) -> VariableKey:
        """Name and indices: what identifies the variable."""
        return self.name, self.args

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        return domain(self)

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return value(self)


@dataclass(frozen=True, slots=True, eq=False)
class Linear(Expr):
    """constant + sum of coefficient * expression; build it with `linear`."""

    terms: tuple[tuple[int, Expr], ...]
    constant: int = 0

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        low = high = self.constant
        for factor, term in self.terms:
            least, most = term.bounds(domain)
            low += factor * (least if factor > 0 else most)
            high += factor * (most if factor > 0 else least)
        return low, high

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return self.constant + sum(factor * term.evaluate(value) for factor, term in self.terms)


@dataclass(frozen=True, slots=True, eq=False)
class LessEq(BoolExpr):
    """left <= right."""

    left: Expr
    right: Expr

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        left_low, left_high = self.left.bounds(domain)
        right_low, right_high = self.right.bounds(domain)
        return int(left_high <= right_low), int(left_low <= right_high)

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return int(self.left.evaluate(value) <= self.right.evaluate(value))


@dataclass(frozen=True, slots=True, eq=False)
class Not(BoolExpr):
    """Negation."""

    arg: BoolExpr

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        low, high = self.arg.bounds(domain)
        return 1 - high, 1 - low

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return 1 - self.arg.evaluate(value)


@dataclass(frozen=True, slots=True, eq=False)
class And(BoolExpr):
    """All of the arguments; true when there are none."""

    args: tuple[BoolExpr, ...]

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        pairs = [arg.bounds(domain) for arg in self.args]
        return min((low for low, _ in pairs), default=1), min((high for _, high in pairs), default=1)

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return int(all(arg.evaluate(value) for arg in self.args))


@dataclass(frozen=True, slots=True, eq=False)
class Or(BoolExpr):
    """Any of the arguments; false when there are none."""

    args: tuple[BoolExpr, ...]

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        pairs = [arg.bounds(domain) for arg in self.args]
        return max((low for low, _ in pairs), default=0), max((high for _, high in pairs), default=0)

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return int(any(arg.evaluate(value) for arg in self.args))


@dataclass(frozen=True, slots=True, eq=False)
class Max(Expr):
    """The largest argument; there is at least one."""

    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        if not self.args:
            raise ExpressionError("the largest of nothing has no value: max_of needs an argument")

    def bounds(self, domain: Callable[[Variable], Interval]) -> Interval:
        pairs = [arg.bounds(domain) for arg in self.args]
        return max(low for low, _ in pairs), max(high for _, high in pairs)

    def evaluate(self, value: Callable[[Variable], int]) -> int:
        return max(arg.evaluate(value) for arg in self.args)


def _operands(kind: type[And] | type[Or], expr: BoolExpr) -> tuple[BoolExpr, ...]:
    """Keep `a & b & c & ...` flat, so that long rules do not become deep trees."""
    return expr.args if isinstance(expr, kind) else (expr,)


Variable = Union[BoolVar, IntVar]
VariableKey = tuple[str, tuple[int, ...]]
ExprLike = Union[Expr, int]
BoolLike = Union[BoolExpr, int]

TRUE = Const(1)
FALSE = Const(0)


def as_expr(value: object) -> Expr:
    """Return `value` as an expression: expressions stay, integers become `Const`."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Integral):
        return Const(int(value))
    raise ExpressionError(
        f"{value!r} cannot stand in an expression: use an integer "
        "(times in whole microseconds, sizes in whole bytes) or another expression"
    )


def as_bool(value: object) -> BoolExpr:
    """Return `value` as a truth expression: true and false become `Const`."""
    if isinstance(value, Const) and value.value not in (0, 1):
        raise ExpressionError(f"{value.value} is a number where a truth value is needed")
    if isinstance(value, BoolExpr):
        return value
    if isinstance(value, Expr):
        raise ExpressionError("a number stands where a truth value is needed; compare it, e.g. x >= 1")
    if value in (0, 1):
        return Const(int(value))
    raise ExpressionError(f"{value!r} stands where a truth value is needed")


def linear(terms: Iterable[tuple[int, Expr]], constant: int = 0) -> Expr:
    """Return constant + sum of coefficient * expression, with nested sums flattened."""
    flat: list[tuple[int, Expr]] = []
    for factor, term in terms:
        if isinstance(term, Const):
            constant += factor * term.value
        elif isinstance(term, Linear):
            constant += factor * term.constant
            flat.extend((factor * inner, leaf) for inner, leaf in term.terms)
        elif factor:
            flat.append((factor, term))
    return Linear(tuple(flat), constant) if flat else Const(constant)


def count(conditions: Iterable[BoolLike]) -> Expr:
    """Return how many of the conditions hold."""
    return linear((1, as_bool(condition)) for condition in conditions)


def all_of(conditions: Iterable[BoolLike]) -> BoolExpr:
    """Return whether all conditions hold."""
    return And(tuple(as_bool(condition) for condition in conditions))


def any_of(conditions: Iterable[BoolLike]) -> BoolExpr:
    """Return whether at least one condition holds."""
    return Or(tuple(as_bool(condition) for condition in conditions))


def max_of(values: Iterable[ExprLike]) -> Expr:
    """Return the largest value."""
    return Max(tuple(as_expr(value) for value in values))


def min_of(values: Iterable[ExprLike]) -> Expr:
    """Return the smallest value."""
    return -Max(tuple(-as_expr(value) for value in values))


def abs_of(value: ExprLike) -> Expr:
    """Return the absolute value."""
    inner = as_expr(value)
    return Max((inner, -inner))


def variables(expr: Expr) -> dict[VariableKey, Variable]:
    """Return the variables of a tree, each once."""
    found: dict[VariableKey, Variable] = {}
    stack = [expr]
    while stack:
        node = stack.pop()
        match node:
            case BoolVar() | IntVar():
                found[node.key] = node
            case Linear():
                stack.extend(term for _, term in node.terms)
            case LessEq():
                stack += (node.left, node.right)
            case Not():
                stack.append(node.arg)
            case And() | Or() | Max():
                stack.extend(node.args)
    return found


def rewritten(expr: Expr, atom: Callable[[Variable], Expr]) -> Expr:
    """Return a tree with something else in place of each variable."""

    def truth(arg: BoolExpr) -> BoolExpr:
        return as_bool(rewritten(arg, atom))

    match expr:
        case BoolVar() | IntVar():
            return atom(expr)
        case Linear():
            return linear(((factor, rewritten(term, atom)) for factor, term in expr.terms), expr.constant)
        case LessEq():
            return LessEq(rewritten(expr.left, atom), rewritten(expr.right, atom))
        case Not():
            return Not(truth(expr.arg))
        case And() | Or():
            return type(expr)(tuple(map(truth, expr.args)))
        case Max():
            return Max(tuple(rewritten(arg, atom) for arg in expr.args))
        case _:
            return expr


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
