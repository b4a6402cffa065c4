"""Passes shared by the exact backends: from rules over quantities to a small normal form.

`Lowering` puts in the definitions of a model, folds what is constant, moves every negation down to a
variable, and writes each comparison as `sum <= constant` over merged terms. Nodes are shared: equal
quantities become one object, so that a backend translates each of them once and sees that the period
on the left and on the right of a comparison is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, prod
from typing import cast

from ...formulations.expr import (
    FALSE,
    TRUE,
    And,
    BoolExpr,
    BoolVar,
    Const,
    Expr,
    Interval,
    IntVar,
    LessEq,
    Linear,
    Max,
    Not,
    Or,
    Variable,
    VariableKey,
    linear,
)
from ...formulations.model import Model


class Arithmetic:
    """Builds nodes in normal form; bounds are computed once for each node."""

    def __init__(self) -> None:
        self._bounds: dict[int, tuple[Expr, Interval]] = {}

    def bounds(self, expr: Expr) -> Interval:
        """Return the bounds of an expression in normal form."""
        found = self._bounds.get(id(expr))
        if found is None:
            # The node is kept beside its bounds, so that its id is not given to another one.
            found = self._bounds[id(expr)] = (expr, self._compute_bounds(expr))
        return found[1]

    def _compute_bounds(self, expr: Expr) -> Interval:
        match expr:
            case Linear():
                low = high = expr.constant
                for factor, term in expr.terms:
                    ends = [factor * end for end in self.bounds(term)]
                    low, high = low + min(ends), high + max(ends)
                return low, high
            case Max():
                pairs = [self.bounds(arg) for arg in expr.args]
                return max(low for low, _ in pairs), max(high for _, high in pairs)
            case _:
                return expr.bounds(_domain)

    def sum(self, terms: Iterable[tuple[int, Expr]], constant: int = 0) -> Expr:
        """Return a sum whose terms are different nodes, none of them constant."""
        flat = linear(terms, constant)
        if not isinstance(flat, Linear):
            return flat
        merged: dict[int, tuple[int, Expr]] = {}
        for factor, term in flat.terms:
            before, _ = merged.get(id(term), (0, term))
            merged[id(term)] = (before + factor, term)
        kept = [(factor, term) for factor, term in merged.values() if factor]
        if not flat.constant and len(kept) == 1 and kept[0][0] == 1:
            return kept[0][1]
        return Linear(tuple(kept), flat.constant) if kept else Const(flat.constant)

    def largest(self, args: Iterable[Expr]) -> Expr:
        """Return the largest of some numbers, without those that never are."""
        flat: list[Expr] = []
        for arg in args:
            flat.extend(arg.args if isinstance(arg, Max) else (arg,))
        least = max(self.bounds(arg)[0] for arg in flat)
        kept = [arg for arg in flat if self.bounds(arg)[1] > least]
        # Of those that never exceed a lower bound of the whole, one constant is enough.
        kept += [arg for arg in flat if self.bounds(arg) == (least, least)][:1]
        return kept[0] if len(kept) == 1 else Max(tuple(dict.fromkeys(kept)))

    def compare(self, left: Expr, most: int) -> BoolExpr:
        """Return left <= most; the common divisor of the coefficients is taken out."""
        low, high = self.bounds(left)
        if high <= most:
            return TRUE
        if low > most:
            return FALSE
        if not isinstance(left, Linear):
            return LessEq(left, Const(most))
        divisor = gcd(*(factor for factor, _ in left.terms))
        terms = tuple((factor // divisor, term) for factor, term in left.terms)
        return LessEq(Linear(terms), Const((most - left.constant) // divisor))

    def join(self, args: Iterable[BoolExpr], *, every: bool) -> BoolExpr:
        """Return the conjunction (or disjunction) of conditions, flat and without constants."""
        kind = And if every else Or
        flat: list[BoolExpr] = []
        for arg in args:
            flat.extend(arg.args if isinstance(arg, kind) else (arg,))
        if any(isinstance(arg, Const) and bool(arg.value) != every for arg in flat):
            return FALSE if every else TRUE
        kept = list(dict.fromkeys(arg for arg in flat if not isinstance(arg, Const)))
        if not kept:
            return TRUE if every else FALSE
        return kept[0] if len(kept) == 1 else kind(tuple(kept))

    def split_max(self, comparison: LessEq, most_cases: int) -> BoolExpr:
        """Return a comparison without `Max`: all (or any) of its arguments in its place."""
        terms, most = row_parts(comparison)
        tops = [(factor, term) for factor, term in terms if isinstance(term, Max)]
        if not tops or prod(len(top.args) for _, top in tops) > most_cases:
            return comparison
        factor, top = tops[0]
        rest = [(f, term) for f, term in terms if term is not top]
        cases = (self.compare(self.sum([*rest, (factor, arg)]), most) for arg in top.args)
        split = [self.split_max(c, most_cases) if isinstance(c, LessEq) else c for c in cases]
        return self.join(split, every=factor > 0)


def _domain(variable: Variable) -> Interval:
    return (0, 1) if isinstance(variable, BoolVar) else (variable.low, variable.high)


def row_parts(comparison: LessEq) -> tuple[tuple[tuple[int, Expr], ...], int]:
    """Return terms and right-hand side of a comparison in normal form: sum of terms <= constant."""
    most = cast("Const", comparison.right).value
    if isinstance(comparison.left, Linear):
        return comparison.left.terms, most
    return ((1, comparison.left),), most


class Lowering(Arithmetic):
    """Rewrites the expressions of one model; see the module."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._definitions = model.definitions
        self._numbers: dict[VariableKey, Expr] = {}
        self._literals: dict[VariableKey, BoolExpr] = {}
        self._done: dict[int, tuple[Expr, Expr]] = {}
        # equations that tie a truth quantity, which an encoding defines as a sum, to a literal of its own.
        # They appear when such a quantity stands where a literal is needed; a caller that rewrites an
        # expression also takes what is new here
        self.channels: list[BoolExpr] = []

    def truth(self, expr: BoolExpr) -> BoolExpr:
        """Return a condition in normal form: And, Or, Not of a variable, LessEq, variables, constants."""
        return self._truth(expr, negated=False)

    def number(self, expr: Expr) -> Expr:
        """Return a number in normal form: linear over variables, `Max` and conditions."""
        found = self._done.get(id(expr))
        if found is None:
            # The original is kept beside its rewriting, so that its id is not given to another node.
            found = self._done[id(expr)] = (expr, self._number(expr))
        return found[1]

    def at_most(self, expr: Expr, most: int) -> BoolExpr:
        """Return `expr <= most` in normal form."""
        return self.compare(self.number(expr), most)

    def _number(self, expr: Expr) -> Expr:
        match expr:
            case BoolVar() | IntVar():
                return self._variable(expr)
            case Linear():
                return self.sum([(factor, self.number(term)) for factor, term in expr.terms], expr.constant)
            case Max():
                return self.largest([self.number(arg) for arg in expr.args])
            case Const():
                return expr
            case BoolExpr():
                return self.truth(expr)
        raise TypeError(f"{type(expr).__name__} is not one of the nine nodes")

    def _variable(self, variable: Variable) -> Expr:
        """Return the definition of a quantity, or the one object that stands for a variable."""
        if variable.key not in self._numbers:
            definition = self._definitions.get(variable.key)
            self._numbers[variable.key] = variable if definition is None else self.number(definition)
        return self._numbers[variable.key]

    def _literal(self, variable: BoolVar) -> BoolExpr:
        if variable.key not in self._literals:
            value = self._variable(variable)
            if not isinstance(value, BoolExpr):
                self.channels += (
                    self.compare(self.sum([(1, variable), (-1, value)]), 0),
                    self.compare(self.sum([(-1, variable), (1, value)]), 0),
                )
                value = variable
            self._literals[variable.key] = value
        return self._literals[variable.key]

    def _truth(self, expr: BoolExpr, *, negated: bool) -> BoolExpr:
        match expr:
            case Const():
                return TRUE if bool(expr.value) != negated else FALSE
            case BoolVar():
                literal = self._literal(expr)
                if not isinstance(literal, BoolVar):
                    return self._truth(literal, negated=negated)
                return Not(literal) if negated else literal
            case Not():
                return self._truth(expr.arg, negated=not negated)
            case LessEq() if negated:
                # not (left <= right)  =  right - left <= -1
                return self.compare(self.number(linear([(1, expr.right), (-1, expr.left)])), -1)
            case LessEq():
                return self.compare(self.number(linear([(1, expr.left), (-1, expr.right)])), 0)
            case And():
                return self.join([self._truth(a, negated=negated) for a in expr.args], every=not negated)
            case Or():
                return self.join([self._truth(a, negated=negated) for a in expr.args], every=negated)
        raise TypeError(f"{type(expr).__name__} is not a truth value")
