"""Task graphs as a formulation: what the rest of gapless knows about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, product
from math import factorial, prod
from typing import ClassVar

from ..demands import Demand
from ..formulation import Formulation
from ..model import Encoded
from ..network import LARGEST_GRAPH
from ..plan import Plan
from ..problem import Problem
from ..scores import Violation
from ..task_graphs import TaskGraph
from ..terms import PlanNumbers
from . import judge
from .encoding import encode_schedules
from .operation import TaskGraphOperation
from .quantities import QUANTITIES, TERMS, ScheduleValues
from .tables import Schedule, TaskTables, build_tables, tables_of, tasks_of
from .view import ScheduleView


class TaskGraphFormulation(Formulation[TaskTables, Schedule]):
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

    def defects(self, problem: Problem) -> Iterator[str]:
        """Yield what does not go with the units and the network."""
        if len(problem.networks) != 1:
            yield f"layers side by side are of one network, the problem has {len(problem.networks)}"
        else:
            yield from tasks_of(problem).mismatches(problem.platform, problem.networks[0])

    def tables(self, problem: Problem) -> TaskTables:
        """Return the tables of the graph."""
        return build_tables(problem)

    def view(self, problem: Problem) -> ScheduleView:
        """Return what rules can say."""
        return ScheduleView(tables_of(problem))

    def demands(self, problem: Problem) -> list[Demand]:
        """Return that layers of one segment stay together."""
        count = len(tasks_of(problem).segments)
        if not count:
            return []
        text = f"layers of one segment are one task; there are {count} segments"
        return [Demand(name="segments", text=text, without=_without_segments)]

    def code(self, problem: Problem, plan: Plan) -> Schedule:
        """Return the unit of each task, and who starts when."""
        return judge.well_formed(tables_of(problem), plan)

    def plan(self, problem: Problem, code: Schedule) -> Plan:
        """Return the layers of each unit, as runs of the given order, and the order of their starts."""
        return judge.plan_of(tables_of(problem), code)

    def numbers(self, problem: Problem, code: Schedule) -> ScheduleValues:
        """Return the numbers of a plan."""
        return ScheduleValues(tables_of(problem), code)

    def broken(self, problem: Problem, code: Schedule, numbers: PlanNumbers) -> Iterator[Violation]:
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

    def key(self, problem: Problem, code: Schedule) -> tuple[int, ...]:
        """Return the unit of each task, then their order."""
        return (*code.units, *code.order)

    def plan_class(self, problem: Problem) -> str:
        """Return that layers are neither split nor run twice."""
        what = "layer and segment" if tasks_of(problem).segments else "layer"
        return f"plans in which every {what} runs once, whole on one unit, as early as their order allows"

    def count(self, problem: Problem) -> int:
        """Return an upper bound on the number of plans."""
        return count_schedules(tables_of(problem))

    def codes(self, problem: Problem) -> Iterator[Schedule]:
        """Yield every plan."""
        return all_schedules(tables_of(problem))

    def neighbours(self, problem: Problem, code: Schedule) -> Iterator[Schedule]:
        """Yield plans in which one task is on another unit, or two that follow each other are exchanged."""
        return near_schedules(tables_of(problem), code)

    def encode(
        self, problem: Problem, *, top: int = 1, relaxation: bool = False, known: Schedule | None = None
    ) -> Encoded[Schedule]:
        """Return the model of start times (`encoding.py`)."""
        return encode_schedules(problem, top=top, known=known)


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
        for done, count in ways.items():
            for task, before in enumerate(needs):
                if not done >> task & 1 and before & ~done == 0:
                    more[done | 1 << task] = more.get(done | 1 << task, 0) + count
        ways = more
        if len(ways) > 10_000:
            return factorial(len(needs))
    return sum(ways.values())


def all_schedules(tables: TaskTables) -> Iterator[Schedule]:
    """Yield every schedule once: all units for all tasks, all orders that differ in a start."""
    orders = list(_orders(tables))
    for units in product(*tables.allowed):
        seen = set()
        for order in orders:
            found = tables.ordered(units, order)
            if found.order not in seen:
                seen.add(found.order)
                yield found


def _orders(tables: TaskTables) -> Iterator[tuple[int, ...]]:
    order: list[int] = []
    done = [False] * tables.task_count

    def extend() -> Iterator[tuple[int, ...]]:
        if len(order) == tables.task_count:
            yield tuple(order)
        for task, before in enumerate(tables.before):
            if not done[task] and all(done[other] for other, _ in before):
                done[task] = True
                order.append(task)
                yield from extend()
                order.pop()
                done[task] = False

    return extend()


def near_schedules(tables: TaskTables, code: Schedule) -> Iterator[Schedule]:
    """Yield schedules in which one task is on another unit, or two that follow each other are exchanged."""
    for task, allowed in enumerate(tables.allowed):
        for unit in allowed:
            if unit != code.units[task]:
                yield tables.ordered((*code.units[:task], unit, *code.units[task + 1 :]), code.order)
    for place, (one, other) in enumerate(pairwise(code.order)):
        if all(maker != one for maker, _ in tables.before[other]):
            order = (*code.order[:place], other, one, *code.order[place + 2 :])
            yield tables.ordered(code.units, order)


FORMULATION = TaskGraphFormulation()
"""Layers side by side."""
