"""How schedules compare, what they break and how much before the terms, and the best ones so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ...formulations.flow_shop.space import Groups, settled
from ...formulations.flow_shop.tables import Schedule, shop_of
from ...formulations.flow_shop.values import WorkloadValues
from ...formulations.limits import Limits, limits_missed
from ...formulations.problem import Problem
from ...formulations.terms import Term
from ...formulations.workload import Execution
from ..repairing import missed_by, shortfall

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
        return self.demanding or self._capacity is not None

    @cached_property
    def demanding(self) -> bool:
        """Whether more is asked of a schedule than that the device has room for it."""
        problem = self._problem
        return bool(problem.rules or self._deadlines or problem.limits != Limits())

    @cached_property
    def is_longest_path(self) -> bool:
        """Whether the makespan without slowdown, barriers and slots is all that counts."""
        workload = self._shop.workload
        return (
            self.terms == (Term.MAKESPAN,)
            and not self.in_columns
            and workload.task_slots is None
            and not self._shop.losses.contended
            and not self.constrained
        )

    @cached_property
    def by_units(self) -> bool:
        """Whether plans are as good if each unit serves the same requests in the same order."""
        return (
            not {Term.CONTENTION, Term.DISPLACEMENT} & set(self.terms)
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


class KeptSchedules:
    """The best valid schedules seen, and the best key of any.

    `alike`: requests that can trade places: schedules that differ by nothing else are kept once.
    """

    def __init__(self, most: int, on_better: Callable[[Key, Schedule], None], alike: Groups = ()) -> None:
        self._most, self._on_better = most, on_better
        self._alike = alike if most > 1 else ()
        self._kept: dict[Schedule, Key] = {}

    @property
    def full(self) -> bool:
        """Whether as many as wanted are there."""
        return len(self._kept) >= self._most

    @property
    def schedules(self) -> list[Schedule]:
        """The schedules in canonical order."""
        return sorted(self._kept, key=lambda s: (self._kept[s], s.order, s.cuts))

    @property
    def best(self) -> Key | None:
        """The least key."""
        return min(self._kept.values(), default=None)

    def wants(self, key: Key) -> bool:
        """Return whether a schedule with this key would be kept."""
        return key[0] == 0 and (not self.full or key < max(self._kept.values()))

    def add(self, key: Key, schedule: Schedule) -> None:
        """Keep a schedule that is wanted."""
        better = self.best is None or key < self.best
        schedule = settled(schedule, self._alike) if self._alike else schedule
        self._kept[schedule] = key
        if len(self._kept) > self._most:
            del self._kept[max(self._kept, key=lambda s: (self._kept[s], s.order, s.cuts))]
        if better:
            self._on_better(key, schedule)
