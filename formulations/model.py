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
    """An expression that must be true."""

    name: str  # where it comes from: a part of the encoding, the name of a limit or of a user's rule
    expr: BoolExpr  # the condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Something that takes a fixed time, if it is done at all."""

    start: Expr  # when it begins
    length: int  # how long it takes
    present: BoolVar  # whether it is done: a variable of the encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Tasks that share something which can do one of them at a time: no two of them overlap.

    Solvers that know tasks take them as they are, all others take the rows.
    """

    tasks: tuple[Task, ...]
    rows: tuple[BoolExpr, ...]  # the same as expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Constraints over the variables of an encoding and over the quantities of a plan.

    The variables are those that the expressions mention.
    """

    constraints: tuple[Constraint, ...]  # all must hold
    definitions: Mapping[VariableKey, Expr]
    """What each quantity of a plan (`QuantityInfo`) means in terms of the encoding's own variables and of
    other quantities. Lowering puts in the ones that are used."""
    sharing: tuple[Sharing, ...] = ()  # tasks that keep each other waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """A smaller model, for a bound: each plan is a solution of it, with a value of at most its first term."""

    constraints: tuple[BoolExpr, ...]  # what holds of all plans
    objective: Expr  # what is at most the first term of the objective


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
    """

    symbols: tuple[Expr, ...]  # one expression a digit
    base: int  # digits are at least 0 and less than this
    of: Callable[[CodeT], Sequence[int]]  # from a plan to its digits


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded(Generic[CodeT]):
    """A problem as a model, and the way back from its solutions to plans."""

    name: str  # name of the encoding
    model: Model
    decode: Callable[[Values], CodeT]  # plan of a solution
    exclude: Callable[[CodeT], BoolExpr]  # the condition that a plan is another one
    structure: Structure = Structure.CHOICE  # what it is like
    digits: Digits[CodeT] | None = None
    """The canonical order in the model. None: plans with equal terms are not told apart; any will do."""
    complete: bool = True  # whether every valid plan is a solution; otherwise a best one is
    assign: Callable[[CodeT], Mapping[VariableKey, int]] | None = None
    """The value of every variable on a plan, for solvers that can start from one; None: not known."""
    settle: Callable[[CodeT], CodeT] = lambda code: code
    """From a valid plan to an equally good one that is a solution."""
    relaxed: Callable[[int], Relaxation] | None = None
    """From a lower bound on the first term to a model that may have a larger one, quickly solved; None: there
    is none."""
    tighter: Callable[[], tuple[Constraint, ...]] | None = None
    """Further rows, which need not be there because plans are judged, for when a solution was worse than the
    model said; None: there are none."""
