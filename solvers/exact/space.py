"""Spaces: the plans of one problem as the search for the best ones sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from ...formulations.chain import Part
from ...formulations.expr import BoolExpr, VariableKey
from ...formulations.judge import check
from ...formulations.model import Encoded, Values
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from .levels import Level, build_levels, key_of
from .lowering import Lowering

Key = tuple[int, ...]
"""The position of a plan in the canonical order: first the values of the levels."""

CodeT = TypeVar("CodeT")
"""A plan by index."""


class Space(Protocol[CodeT]):
    """The plans of one problem, and what a solver knows about them.

    Attributes
    ----------
    name
        Name of the encoding.
    levels
        What the search optimises, most important first.
    levels_decide
        Whether they tell all plans apart. Otherwise keys are longer, and any of the plans that are
        equal at all levels will do.
    complete
        Whether every valid plan is a solution of the model; otherwise a best one is.
    """

    name: str
    levels: tuple[Level[Any], ...]
    levels_decide: bool
    complete: bool

    def decode(self, values: Values) -> CodeT:
        """Return the plan of a solution."""
        ...

    def exclude(self, code: CodeT) -> BoolExpr:
        """Return the condition, in normal form, that a plan is another one."""
        ...

    def plan(self, code: CodeT) -> Plan:
        """Return a plan by name."""
        ...

    def judge(self, code: CodeT) -> tuple[Key, frozenset[str]]:
        """Return the key of a plan (empty if it is malformed) and the rules that it breaks."""
        ...

    def hint(self, code: CodeT) -> Mapping[VariableKey, int] | None:
        """Return the value of every variable of the model on a plan, if that is known."""
        ...


class ChainSpace:
    """Chunks of one network; keys tell all plans apart."""

    levels_decide = True
    complete = True

    def __init__(self, problem: Problem, encoded: Encoded, lowering: Lowering, largest_number: int) -> None:
        self.name = encoded.name
        self.levels = build_levels(problem, encoded, lowering, largest_number)
        self.decode = encoded.decode
        self.plan = problem.chain.plan
        self._problem, self._encoded, self._lowering = problem, encoded, lowering

    def exclude(self, code: tuple[Part, ...]) -> BoolExpr:
        """Return the condition that the chunks are others."""
        return self._lowering.truth(self._encoded.exclude(code))

    def judge(self, code: tuple[Part, ...]) -> tuple[Key, frozenset[str]]:
        """Return the key and what is broken."""
        broken = frozenset(violation.rule for violation in check(self._problem, self.plan(code)))
        return (() if broken else key_of(self.levels, self._problem.chain, code)), broken

    def hint(self, code: tuple[Part, ...]) -> None:
        """Return nothing: these models are solved without."""
        return
