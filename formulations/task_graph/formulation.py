"""Task graphs as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from math import factorial, prod
from typing import ClassVar

from ..demands import Demand
from ..expr import FALSE, BoolExpr, Const, Expr, VariableKey, any_of, count, linear
from ..formulation import Formulation, of_tables
from ..jobs.encoding import ScheduleModel
from ..jobs.space import all_plans
from ..jobs.tables import JobPlan
from ..model import Encoded
from ..network import LARGEST_GRAPH
from ..problem import Problem
from ..scores import Violation
from ..task_graphs import TaskGraph
from ..terms import PlanNumbers
from . import judge
from .operation import TaskGraphOperation
from .quantities import QUANTITIES, TERMS, ScheduleTerm, ScheduleValues
from .quantities import ScheduleQuantity as Q
from .tables import TaskTables, build_tables, tables_of, tasks_of
from .view import ScheduleView


def _without_segments(problem: Problem) -> Problem:
    return replace(problem, data=replace(tasks_of(problem), segments=()))


_MOST_COUNTED = 20
"""Orders of more tasks than this are not counted: what counts then is that there are too many."""


def count_schedules(tables: TaskTables) -> int:
    """Return an upper bound on the number of schedules: units for tasks, times orders."""
    orders = _count_orders(tables) if tables.task_count <= _MOST_COUNTED else factorial(tables.task_count)
    return int(prod(max(1, len(own)) for own in tables.allowed)) * orders


def _count_orders(tables: TaskTables) -> int:
    """Return the number of topological orders, from the down-sets of the graph."""
    needs = [sum(1 << other for other, _ in own) for own in tables.before]
    ways = {0: 1}
    for _ in needs:
        more: dict[int, int] = {}
        for done, number in ways.items():
            for task, before in enumerate(needs):
                if not done >> task & 1 and before & ~done == 0:
                    more[done | 1 << task] = more.get(done | 1 << task, 0) + number
        ways = more
        if len(ways) > 10_000:
            return factorial(len(needs))
    return sum(ways.values())


def near_schedules(tables: TaskTables, code: JobPlan) -> Iterator[JobPlan]:
    """Yield schedules in which one task is on another unit, or two that follow each other are exchanged."""
    units = code.units
    for task, allowed in enumerate(tables.allowed):
        for unit in allowed:
            if unit != units[task]:
                yield tables.scheduled((*units[:task], unit, *units[task + 1 :]), code.order)
    for place, (one, other) in enumerate(pairwise(code.order)):
        if all(maker != one for maker, _ in tables.before[other]):
            order = (*code.order[:place], other, one, *code.order[place + 2 :])
            yield tables.scheduled(units, order)


class _TaskModel(ScheduleModel):
    """The model of one problem: tasks have start times, and units hold the weights of theirs."""

    tables: TaskTables
    name: ClassVar[str] = "start times"
    pace: ClassVar[str] = ScheduleTerm.LATENCY
    times: ClassVar[frozenset[str]] = frozenset({Q.START, Q.FINISH, Q.LATENCY})
    windows: ClassVar[int | None] = 4

    def _own_rows(self) -> dict[str, Iterator[BoolExpr]]:
        return {"unit_memory": self._memory(), "max_latency_us": self._timely()}

    def _bytes(self, unit: int) -> Expr:
        on = {task: x for task, own in self.chosen.items() for o, x in own.items() if o.unit == unit}
        return self.tables.weights.expr(lambda task: on.get(task, FALSE), lambda task: on.get(task, FALSE))

    def _memory(self) -> Iterator[BoolExpr]:
        weights, most = self.tables.weights, self.tables.device_memory
        for unit, capacity in enumerate(self.tables.unit_memory):
            if capacity is not None and capacity < weights.whole:
                yield self._bytes(unit) <= capacity
        if most is not None and weights.whole > most:
            yield FALSE
        elif most is not None and weights.copied > most:
            yield linear((1, self._bytes(unit)) for unit in self.units) <= most

    def _timely(self) -> Iterator[BoolExpr]:
        limit = self.problem.limits.max_latency_us
        if limit is not None:
            yield self.makespan <= limit

    def _definitions(self) -> dict[VariableKey, Expr]:
        found = super()._definitions()
        uses = [any_of(self._on(unit)) for unit in self.units]
        for unit in self.units:
            by_task = [
                next((x for o, x in self.chosen[task].items() if o.unit == unit), Const(0))
                for task in self.requests
            ]
            for layer, task in enumerate(self.tables.tasks.of):
                found[Q.ON, (layer, unit)] = by_task[task]
            found[Q.USES, (unit,)], found[Q.MEMORY, (unit,)] = uses[unit], self._bytes(unit)
        found[Q.LATENCY, ()], found[Q.UNITS, ()] = self.makespan, count(uses)
        return found


class TaskGraphFormulation(Formulation[TaskTables, JobPlan]):
    """One request of one network, its layers side by side on the units of a device."""

    name: ClassVar[str] = "task_graph"
    label: ClassVar[str] = "problems of layers side by side"
    data_key: ClassVar[str | None] = "tasks"
    data_type: ClassVar[type | None] = TaskGraph
    terms = TERMS
    quantities = QUANTITIES
    limits: ClassVar[tuple[str, ...]] = (
        "max_latency_us",
        "min_units",
        "max_units",
        "max_memory_bytes",
        "max_unit_memory_bytes",
    )
    one_network: ClassVar[bool] = True
    operation = TaskGraphOperation()
    most_layers: ClassVar[int] = LARGEST_GRAPH
    incomplete: ClassVar[str] = (
        "every layer can run somewhere, but no schedule has room for all: memory or segments are in the way"
    )
    tables = staticmethod(build_tables)
    view = of_tables(ScheduleView)
    code = of_tables(judge.well_formed)
    plan = of_tables(judge.plan_of)
    numbers = of_tables(ScheduleValues)
    count = of_tables(count_schedules)
    codes = of_tables(all_plans)
    neighbours = of_tables(near_schedules)

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the units and the network."""
        if len(problem.networks) != 1:
            yield f"layers side by side are of one network, the problem has {len(problem.networks)}"
        else:
            yield from tasks_of(problem).mismatches(problem.platform, problem.networks[0])

    def demands(self, problem: Problem) -> list[Demand]:
        """Return that layers of one segment stay together."""
        count = len(tasks_of(problem).segments)
        if not count:
            return []
        text = f"layers of one segment are one task; there are {count} segments"
        return [Demand(name="segments", text=text, without=_without_segments)]

    def broken(self, problem: Problem, code: JobPlan, numbers: PlanNumbers) -> Iterator[Violation]:
        """Yield support and capacities that a plan breaks."""
        assert isinstance(numbers, ScheduleValues)
        return judge.broken(numbers)

    def columns(self, numbers: PlanNumbers) -> Mapping[str, tuple[int | None, ...]]:
        """Return by unit the time and the bytes of its layers."""
        assert isinstance(numbers, ScheduleValues)
        found = {name: getattr(numbers, name) for name in ("busy_us", "memory_bytes")}
        return {name: tuple(map(row.get, range(numbers.tables.unit_count))) for name, row in found.items()}

    def rate(self, numbers: PlanNumbers) -> float:
        """Return the requests a second, one after the other."""
        assert isinstance(numbers, ScheduleValues)
        return 1e6 / max(1, numbers.latency_us)

    def key(self, problem: Problem, code: JobPlan) -> tuple[int, ...]:
        """Return the unit of each task, then their order."""
        return (*code.units, *code.order)

    def plan_class(self, problem: Problem) -> str:
        """Return that layers are neither split nor run twice."""
        what = "layer and segment" if tasks_of(problem).segments else "layer"
        return f"plans in which every {what} runs once, whole on one unit, as early as their order allows"

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: JobPlan | None = None
    ) -> Encoded[JobPlan]:
        """Return the model of start times."""
        return _TaskModel(problem, tables_of(problem), top=top, known=known).encoded()


FORMULATION = TaskGraphFormulation()
"""Layers side by side."""
