"""How schedules compare: what they break, and how much, before the terms of the objective."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ...formulations.flow_shop.quantities import FlowTerm
from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.limits import Limits, limits_missed
from ...formulations.problem import Problem
from ...formulations.workload import Execution
from ..shortfall import missed_by, shortfall

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
    """Measures schedules that keep to the cuts, the layers and the memory of each unit."""

    def __init__(self, problem: Problem) -> None:
        self._problem, self._shop = problem, shop_of(problem)
        self.terms = problem.objective.terms  # the terms of the objective
        self.rejected = 0  # how many schedules opaque rules have turned down
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
            and not self._shop.losses.contended
            and not self.constrained
        )

    @cached_property
    def by_units(self) -> bool:
        """Whether plans are as good if each unit serves the same requests in the same order."""
        return (
            not {FlowTerm.CONTENTION, FlowTerm.DISPLACEMENT} & set(self.terms)
            and not self.in_columns
            and self._shop.workload.task_slots is None
            and not self._problem.rules
            and self._problem.limits == Limits()
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
                yield missed_by(value, limit)
        for rule in self._problem.expression_rules:
            yield shortfall(rule.expr, values)


def _over(value: int, most: int) -> int:
    return 0 if value <= most else 1 + 1000 * (value - most) // max(most, 1)
