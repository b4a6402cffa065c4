"""Spaces: the plans of one problem as the search for the best ones sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from ...formulations.expr import BoolExpr, VariableKey
from ...formulations.judge import examined
from ...formulations.model import CodeT, Encoded, Values
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from .levels import build_levels
from .lowering import Lowering

Key = tuple[int, ...]
"""The position of a plan in the canonical order: first the values of the levels."""


class Space(Generic[CodeT]):
    """The plans of one problem, and what a solver knows about them.

    `largest_number`: largest coefficient that the solver handles well in an objective.
    `name`: name of the encoding. `complete`: whether every valid plan is a solution of the model; otherwise a
    best one is.
    """

    def __init__(
        self, problem: Problem, encoded: Encoded[CodeT], lowering: Lowering, largest_number: int
    ) -> None:
        self.name, self.complete = encoded.name, encoded.complete
        # what the search optimises, most important first
        self.levels = build_levels(problem, encoded, lowering, largest_number)
        # whether they tell all plans apart. Otherwise keys are longer, and any of the plans that are equal at
        # all levels will do
        self.levels_decide = encoded.digits is not None
        self._problem, self._encoded, self._lowering = problem, encoded, lowering

    def decode(self, values: Values) -> CodeT:
        """Return the plan of a solution."""
        return self._encoded.decode(values)

    def exclude(self, code: CodeT) -> BoolExpr:
        """Return the condition, in normal form, that a plan is another one."""
        return self._lowering.truth(self._encoded.exclude(code))

    def tighter(self) -> list[BoolExpr]:
        """Return further rows in normal form (`Encoded.tighter`)."""
        rows = () if self._encoded.tighter is None else self._encoded.tighter()
        return [self._lowering.truth(row.expr) for row in rows]

    def plan(self, code: CodeT) -> Plan:
        """Return a plan by name."""
        return self._problem.formulation.plan(self._problem, code)

    def judge(self, code: CodeT) -> tuple[Key, frozenset[str]]:
        """Return the key of a plan (empty if it is not valid) and the rules that it breaks.

        Raises MalformedPlanError: what the model holds to be a plan is none.
        """
        formulation = self._problem.formulation
        formulation.code(self._problem, self.plan(code))
        numbers, broken = examined(self._problem, code)
        if broken:
            return (), frozenset(violation.rule for violation in broken)
        key = tuple(level.value(code, numbers) for level in self.levels)
        return key if self.levels_decide else key + formulation.key(self._problem, code), frozenset()

    def hint(self, code: CodeT) -> Mapping[VariableKey, int] | None:
        """Return the value of every variable of the model on a plan, if that is known."""
        return None if self._encoded.assign is None else self._encoded.assign(code)
