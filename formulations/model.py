"""Models: what the exact backends receive, as trees of expressions over variables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from .expr import BoolExpr, BoolVar, Expr, Variable, VariableKey

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
class Task:
    """Something that takes a fixed time, if it is done at all.

    Attributes
    ----------
    start
        When it begins.
    length
        How long it takes.
    present
        Whether it is done: a variable of the encoding.
    """

    start: Expr
    length: int
    present: BoolVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Tasks that share something which can do one of them at a time: no two of them overlap.

    Solvers that know tasks take them as they are, all others take the rows.

    Attributes
    ----------
    tasks
        The tasks.
    rows
        The same as expressions.
    """

    tasks: tuple[Task, ...]
    rows: tuple[BoolExpr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Constraints over the variables of an encoding and over the quantities of a plan.

    The variables are those that the expressions mention.

    Attributes
    ----------
    constraints
        All must hold.
    definitions
        What each quantity of a plan (`QuantityInfo`) means in terms of the encoding's own variables
        and of other quantities. Lowering puts in the ones that are used.
    sharing
        Tasks that keep each other waiting.
    """

    constraints: tuple[Constraint, ...]
    definitions: Mapping[VariableKey, Expr]
    sharing: tuple[Sharing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """A smaller model, for a bound: every plan is a solution of it, with a value of at most its first term.

    Attributes
    ----------
    constraints
        What holds of all plans.
    objective
        What is at most the first term of the objective.
    """

    constraints: tuple[BoolExpr, ...]
    objective: Expr


class Structure(StrEnum):
    """What a model is like, as far as solvers search differently for it.

    CHOICE
        Literals that choose among alternatives, and loads over them.
    INTEGRAL
        Its linear relaxation has integral corners.
    ORDERED
        Literals along an order, with few ways to keep it, and loads over them.
    TIMED
        Start times, orders and conditions between them.
    SLOWED
        The same, and how long something takes depends on what runs beside it.
    SCHEDULE
        Tasks on a choice of units (`Sharing`).
    """

    CHOICE = "choice"
    INTEGRAL = "integral"
    ORDERED = "ordered"
    TIMED = "timed"
    SLOWED = "slowed"
    SCHEDULE = "schedule"


CodeT = TypeVar("CodeT")
"""A plan by index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits(Generic[CodeT]):
    """The canonical order of plans whose terms are equal, as numbers that a model can speak about.

    Comparing the lists of digits of two plans lexicographically is comparing their canonical keys.

    Attributes
    ----------
    symbols
        One expression a digit.
    base
        Digits are at least 0 and less than this.
    of
        From a plan to its digits.
    """

    symbols: tuple[Expr, ...]
    base: int
    of: Callable[[CodeT], Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded(Generic[CodeT]):
    """A problem as a model, and the way back from its solutions to plans.

    Attributes
    ----------
    name
        Name of the encoding.
    model
        The model.
    decode
        Plan of a solution.
    exclude
        The condition that a plan is another one.
    structure
        What it is like.
    digits
        The canonical order in the model. None: plans with equal terms are not told apart; any will do.
    complete
        Whether every valid plan is a solution; otherwise a best one is.
    assign
        The value of every variable on a plan, for solvers that can start from one; None: not known.
    settle
        From a valid plan to an equally good one that is a solution.
    relaxed
        From a lower bound on the first term to a model that may have a larger one, quickly solved; None:
        there is none.
    tighter
        Further rows, which need not be there because plans are judged, for when a solution was worse than the
        model said; None: there are none.
    """

    name: str
    model: Model
    decode: Callable[[Values], CodeT]
    exclude: Callable[[CodeT], BoolExpr]
    structure: Structure = Structure.CHOICE
    digits: Digits[CodeT] | None = None
    complete: bool = True
    assign: Callable[[CodeT], Mapping[VariableKey, int]] | None = None
    settle: Callable[[CodeT], CodeT] = lambda code: code
    relaxed: Callable[[int], Relaxation] | None = None
    tighter: Callable[[], tuple[Constraint, ...]] | None = None
