"""What an exact solver has to offer so that `lexicographic.py` can enumerate plans with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from ...formulations.expr import BoolExpr, Expr, VariableKey
from ...formulations.model import Task, Values
from ..protocol import Deadline


class LargeNumbersError(ArithmeticError):
    """A condition or an objective whose sums leave the numbers that a solver can count with."""


class Verdict(StrEnum):
    """What a solver knows after one question.

    OPTIMAL
        The values are a best solution, proven.
    FEASIBLE
        The values are a solution; the time was up before a proof.
    INFEASIBLE
        There is no solution, proven.
    UNKNOWN
        Nothing.
    """

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question to a solver; all expressions are in the normal form of `lowering.py`."""

    objective: Expr  # what to minimise
    conditions: tuple[BoolExpr, ...]  # what must hold in addition, for this question only
    at_least: int | None
    """A lower bound of the objective that is known already: a solution that reaches it is optimal."""
    deadline: Deadline  # when to stop
    progress: Callable[[Values | None, int | None], None]
    """To be called with every better solution and bound on the way (either may be None), by solvers that
    can."""
    hint: Mapping[VariableKey, int] | None = None
    """The value of every variable in a solution that is known already, or None; for solvers that can start
    from one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortAnswer:
    """What a solver found: a solution, if any, and a proven lower bound of the objective, if any."""

    verdict: Verdict
    values: Values | None = None
    bound: int | None = None


def reader_of(hint: Mapping[VariableKey, int]) -> Values:
    """Return the values of variables as a function; what the hint leaves open is 0."""
    return lambda variable: hint.get(variable.key, 0)


class Port(Protocol):
    """A solver that holds a growing set of conditions."""

    def add(self, condition: BoolExpr) -> None:
        """Add a condition in normal form, for all questions to come."""
        ...

    def minimise(self, query: Query) -> PortAnswer:
        """Answer one question."""
        ...


@runtime_checkable
class Scheduler(Protocol):
    """A port whose solver knows tasks that cannot be done at the same time."""

    def share(self, tasks: Sequence[Task]) -> None:
        """Add "no two of these tasks overlap"; their expressions are in normal form."""
        ...
