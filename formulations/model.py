"""Models: what the exact backends receive, as trees of expressions over variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .chain import Part
from .expr import BoolExpr, Expr, Variable, VariableKey

Values = Callable[[Variable], int]
"""The value of each variable in a solution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """An expression that must be true.

    Attributes
    ----------
    name
        Where it comes from: a part of the encoding, the name of a limit or of a user's rule.
    expr
        The condition.
    """

    name: str
    expr: BoolExpr


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Constraints over the variables of an encoding and over the quantities of a plan.

    The variables are those that the expressions mention.

    Attributes
    ----------
    constraints
        All must hold.
    definitions
        What each quantity of a plan (`quantities.py`) means in terms of the encoding's own variables
        and of other quantities. Lowering puts in the ones that are used.
    """

    constraints: tuple[Constraint, ...]
    definitions: Mapping[VariableKey, Expr]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A problem as a model, and the way back from its solutions to plans.

    Attributes
    ----------
    name
        Name of the encoding.
    model
        The model.
    symbols
        One expression a layer: the index of the unit whose chunk ends at the layer, or the number of
        units when none does. Comparing these lists lexicographically is comparing the
        (stop, unit index) of the chunks of two plans, first chunk first.
    decode
        Chunks of a solution, in order of their layers.
    exclude
        The condition that a plan is not the one with these chunks.
    """

    name: str
    model: Model
    symbols: tuple[Expr, ...]
    decode: Callable[[Values], tuple[Part, ...]]
    exclude: Callable[[tuple[Part, ...]], BoolExpr]
