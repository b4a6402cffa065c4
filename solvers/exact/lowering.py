"""Passes shared by the exact backends: from rules over quantities to a small normal form.

`Lowering` puts in the definitions of a model, folds what is constant, moves every negation down to a
variable, and writes each comparison as `sum <= constant` over merged terms. Nodes are shared: equal
quantities become one object, so that a backend translates each of them once and sees that the period
on the left and on the right of a comparison is the same.
"""

from __future__ import annotations

from ...formulations.expr import (
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
    linear,
)
from ...formulations.model import Model
from .arithmetic import Arithmetic


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
