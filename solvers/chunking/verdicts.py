"""What can only be checked on finished plans: opaque rules, and expressions beyond 64 bits."""

from __future__ import annotations

from ...formulations.chain import Part
from ...formulations.chunking.tables import chain_of
from ...formulations.plan import Plan
from ...formulations.problem import Problem
from ...formulations.rules import Rule


class Verdicts:
    """Asks every plan once, and counts how many opaque rules have turned down."""

    def __init__(self, problem: Problem, late: tuple[Rule, ...], most_rejections: int) -> None:
        self._problem, self._late, self._most = problem, late, most_rejections
        self._known: dict[tuple[Part, ...], Plan | None] = {}
        self.rejected = 0

    @property
    def exhausted(self) -> bool:
        """Whether too many plans were turned down."""
        return self.rejected > self._most

    def ask(self, parts: tuple[Part, ...]) -> Plan | None:
        """Return the plan if it passes, else None."""
        if parts not in self._known:
            self._known[parts] = self._judge(parts)
        return self._known[parts]

    def _judge(self, parts: tuple[Part, ...]) -> Plan | None:
        plan = chain_of(self._problem).plan(parts)
        if self._late:
            values = self._problem.formulation.numbers(self._problem, parts)
            if not all(rule.holds(values) for rule in self._late):
                return None
        if all(rule.holds(plan) for rule in self._problem.opaque_rules):
            return plan
        self.rejected += 1
        return None
