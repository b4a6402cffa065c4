"""How schedules compare: what they break, and how much, before the terms of the objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ...formulations.expr import And, BoolExpr, Expr, LessEq, Not, Or, Variable
from ...formulations.flow_shop.quantities import FlowTerm
from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.limits import Limits, limits_missed
from ...formulations.problem import Problem
from ...formulations.workload import Execution

Key = tuple[int, ...]
"""How far a schedule is from valid (0: it is valid), then the values of the terms."""


@dataclass(frozen=True, slots=True)
class MeasuredSchedule:
    """A schedule with its key and its quantities."""

    schedule: Schedule
    key: Key
    values: WorkloadValues

    @property
    def valid(self) -> bool:
        """Whether it breaks nothing."""
        return self.key[0] == 0


class Measure:
    """Measures schedules that keep to the cuts, the layers and the memory of each unit.

    Parameters
    ----------
    problem
        The problem.

    Attributes
    ----------
    terms
        The terms of the objective.
    rejected
        How many schedules opaque rules have turned down.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._shop = problem, shop_of(problem)
        self.terms = problem.objective.terms
        self.rejected = 0
        self._capacity = self._shop.chains[0].device_memory
        self._deadlines = [
            (index, request.deadline_us)
            for index, request in enumerate(self._shop.workload.requests)
            if request.deadline_us is not None
        ]

    @cached_property
    def in_columns(self) -> bool:
        """Whether the units keep step."""
        return self._shop.workload.execution is Execution.COLUMNS

    @cached_property
    def constrained(self) -> bool:
        """Whether a schedule can be invalid at all."""
        problem = self._problem
        return bool(
            problem.rules or self._deadlines or self._capacity is not None or problem.limits != Limits()
        )

    @cached_property
    def is_longest_path(self) -> bool:
        """Whether the makespan without slowdown, barriers and slots is all that counts."""
        workload = self._shop.workload
        return (
            self.terms == (FlowTerm.MAKESPAN,)
            and not self.in_columns
            and workload.task_slots is None
            and not self._shop.contended
            and not self.constrained
        )

    def of(self, schedule: Schedule) -> MeasuredSchedule:
        """Measure one schedule."""
        values = WorkloadValues(self._shop, schedule)
        excess = sum(self._excesses(values)) if self.constrained else 0
        if self._problem.opaque_rules and not excess:
            plan = self._shop.plan(schedule)
            excess = sum(not rule.holds(plan) for rule in self._problem.opaque_rules)
            self.rejected += excess > 0
        return MeasuredSchedule(schedule, (excess, *values.values(self.terms)), values)

    def _excesses(self, values: WorkloadValues) -> Iterator[int]:
        """Yield how far each constraint is from being kept, in permille of its size or so."""
        for request, most_us in self._deadlines:
            yield _over(values.request_latency_us[request], most_us)
        if self._capacity is not None:
            yield _over(values.peak_bytes, self._capacity)
        if self._problem.limits != Limits():
            for _, value, limit in limits_missed(self._problem.limits, values):
                yield 1 + 1000 * abs(value - limit) // max(value, limit)
        for rule in self._problem.expression_rules:
            yield shortfall(rule.expr, values)


def shortfall(expr: BoolExpr, value: Callable[[Variable], int], *, wanted: bool = True) -> int:
    """Return how far a condition is from being true (or false): 0 exactly if it is.

    A comparison that fails counts the difference in permille of its larger side, a conjunction the sum
    of its parts, a disjunction the least of them, anything else 1.
    """
    match expr:
        case Not():
            return shortfall(expr.arg, value, wanted=not wanted)
        case And() | Or():
            parts = (shortfall(arg, value, wanted=wanted) for arg in expr.args)
            every = isinstance(expr, And) is wanted
            return sum(parts) if every else min(parts, default=1)
        case LessEq():
            sides = (expr.left, expr.right) if wanted else (expr.right, expr.left)
            return _apart(*sides, value, margin=0 if wanted else 1)
        case _:
            return int(bool(expr.evaluate(value)) is not wanted)


def _apart(low: Expr, high: Expr, value: Callable[[Variable], int], *, margin: int) -> int:
    below, above = low.evaluate(value) + margin, high.evaluate(value)
    if below <= above:
        return 0
    return 1 + 1000 * (below - above) // max(abs(below), abs(above), 1)


def _over(value: int, most: int) -> int:
    return 0 if value <= most else 1 + 1000 * (value - most) // max(most, 1)
