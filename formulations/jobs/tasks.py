"""Tasks of a graph as requests of one section: layers of one network side by side on the units of a device.

A task, a layer or a segment of layers that run one right after the other, waits for the tasks that it reads
from, and for what they send. Source: Topcuoglu, Hariri and Wu, IEEE TPDS 2002 (`formulations.task_graphs`);
partition, section 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from ..blocks import Blocks, blocks_of
from ..errors import MalformedPlanError
from ..expr import IntVar
from ..hardware import Platform
from ..limits import capped
from ..losses import Losses, Mark
from ..placed_layers import chunks_of_layers, placed_quantities, too_full, units_of_layers
from ..plan import Plan
from ..play import Part
from ..problem import Problem
from ..scores import Violation
from ..task_graphs import TaskGraph
from ..terms import Index, QuantityInfo, Term, TermInfo, quantity_table, table
from ..terms import Quantity as Q
from ..views import GraphView, LayerRef, whole
from ..weights import Weights
from .quantities import PlayedPlan, most_us
from .tables import JobPlan, Option, ScheduleTables, Square, Visits


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskTables(ScheduleTables):
    """The tables of one problem: a task, a layer or a segment of layers, is a request of one section.

    It waits for the tasks that it reads from, and for what they send: one tensor after another. `entry_us`,
    `exit_us`: what it takes to bring in what it reads from outside, and to hand on what it makes for outside.
    """

    network: str
    layers: tuple[str, ...]  # names
    tasks: Blocks  # the layers of each task, and the order between tasks
    time_us: tuple[tuple[int | None, ...], ...]  # time by [task][unit]; None: cannot run there
    weights: Weights  # bytes that tasks take of the memory of their unit
    unit_memory: tuple[int | None, ...]  # capacities in bytes, or None
    device_memory: int | None

    @property
    def task_count(self) -> int:
        """Number of tasks."""
        return self.tasks.count

    def section_count(self, request: int) -> int:
        """Return that a task is one section."""
        return 1

    @cached_property
    def options(self) -> tuple[tuple[Option, ...], ...]:
        """The units that can run each task."""
        return tuple(
            tuple(Option(0, 1, unit, time) for unit, time in enumerate(row) if time is not None)
            for row in self.time_us
        )

    def work_us(self, request: int, part: Part) -> int:
        """Return how long a task takes; 0 where it cannot run."""
        return self.time_us[request][part[2]] or 0

    def mark(self, request: int, part: Part) -> Mark:
        """Return that no task minds another one."""
        return 0, 0

    @cached_property
    def readers(self) -> tuple[tuple[tuple[int, Square], ...], ...]:
        """For each task those that read from it, with the time of what they read by [from][to]."""
        found: list[list[tuple[int, Square]]] = [[] for _ in self.before]
        for task, own in enumerate(self.before):
            for other, square in own:
                found[other].append((task, square))
        return tuple(map(tuple, found))

    @cached_property
    def allowed(self) -> tuple[tuple[int, ...], ...]:
        """The units that can run each task."""
        return tuple(tuple(unit for unit, time in enumerate(row) if time is not None) for row in self.time_us)

    @cached_property
    def horizon_us(self) -> int:
        """A time by which every plan is done: one task after the other, each at its slowest."""
        work = sum(max((time or 0 for time in row), default=0) for row in self.time_us)
        sent = sum(max(map(max, square)) for own in self.before for _, square in own)
        return work + sent + sum(map(max, self.entry_us)) + sum(map(max, self.exit_us))

    def scheduled(self, units: Sequence[int], order: Iterable[int]) -> JobPlan:
        """Return the plan of tasks on units, in an order in which each stands behind what it reads."""
        return self.ordered(order, tuple(((0, 1, unit),) for unit in units))


def tasks_of(problem: Problem) -> TaskGraph:
    """Return how the layers of a problem run."""
    return cast("TaskGraph", problem.data)


def tables_of(problem: Problem) -> TaskTables:
    """Return the tables of a problem, which keeps them."""
    return cast("TaskTables", problem.tables)


def build_tables(problem: Problem) -> TaskTables:
    """Return the tables of a problem."""
    network, data = problem.network, tasks_of(problem)
    platform = capped(problem.platform, problem.limits)
    layer_us = problem.costs.of(network.name).layer_us
    edges = [(source, target) for source, target, _ in _edges(problem)]
    together = (*data.segments, *((cut - 1, cut) for cut in network.forbidden_cuts))
    tasks = blocks_of(len(network.layers), edges, together)
    entry_us, exit_us = _outside(problem, tasks)
    units = platform.unit_names
    return TaskTables(
        units=units,
        chain_of=tuple(range(tasks.count)),
        losses=Losses(networks=(network.name,), unit_count=len(units), interference=None),
        turns=_turns(platform),
        excluded=(frozenset(),) * len(units),
        visits=Visits(once=False, rank=None),
        network=network.name,
        layers=network.layer_names,
        tasks=tasks,
        time_us=tuple(_sum_us([layer_us[layer] for layer in own]) for own in tasks.members),
        weights=network.weights.grouped(tasks.of, tasks.count),
        before=_before(problem, tasks),
        entry_us=entry_us,
        exit_us=exit_us,
        unit_memory=tuple(unit.memory_bytes for unit in platform.units),
        device_memory=platform.memory_bytes,
    )


def _turns(platform: Platform) -> tuple[tuple[int, ...], ...]:
    """Return sets of units of which one works at a time; each two that exclude each other are in one."""
    exclusive, found = platform.exclusive, list[tuple[int, ...]]()
    for unit, others in enumerate(exclusive):
        for other in sorted({unit, *others}):
            if other >= unit and not any({unit, other} <= {*own} for own in found):
                found.append(_clique(exclusive, {unit, other}))
    return tuple(own for own in found if not any({*own} < {*other} for other in found))


def _clique(exclusive: Sequence[frozenset[int]], own: set[int]) -> tuple[int, ...]:
    """Return a largest set of units that all exclude each other, with given ones in it."""
    for more, others in enumerate(exclusive):
        if own - {more} <= others:
            own.add(more)
    return tuple(sorted(own))


def _sum_us(rows: Sequence[Sequence[int | None]]) -> tuple[int | None, ...]:
    return tuple(
        None if None in column else sum(time or 0 for time in column) for column in zip(*rows, strict=True)
    )


def _edges(problem: Problem) -> Iterator[tuple[int, int, int]]:
    """Yield (maker, reader, tensor) of each tensor between two layers."""
    count = len(problem.network.layers)
    for index, tensor in enumerate(problem.network.tensors):
        for target in tensor.targets:
            if tensor.source >= 0 and target < count:
                yield tensor.source, target, index


def _before(problem: Problem, tasks: Blocks) -> tuple[tuple[tuple[int, Square], ...], ...]:
    """Return what each task reads from which others; a tensor goes from one task to another once."""
    sent: dict[tuple[int, int], dict[int, None]] = {}
    for source, target, tensor in _edges(problem):
        pair = tasks.of[source], tasks.of[target]
        if pair[0] != pair[1]:
            sent.setdefault(pair, {})[tensor] = None
    found: list[list[tuple[int, Square]]] = [[] for _ in tasks.members]
    squares, units = tasks_of(problem).transfer_us, len(problem.platform.units)
    for (maker, reader), tensors in sorted(sent.items()):
        rows: Square = ((0,) * units,) * units
        for tensor in tensors if squares else ():
            pairs = zip(rows, squares[tensor], strict=True)
            rows = tuple(tuple(map(int.__add__, one, other)) for one, other in pairs)
        found[reader].append((maker, rows))
    return tuple(map(tuple, found))


def _outside(problem: Problem, tasks: Blocks) -> tuple[Square, Square]:
    """Return by [task][unit] what tensors from and to the outside take; a task brings each in once."""
    rows, count = tasks_of(problem).outside_us, len(problem.network.layers)
    entry = [[0] * len(problem.platform.units) for _ in tasks.members]
    leave = [[*row] for row in entry]
    for tensor, row in zip(problem.network.tensors, rows, strict=False):
        readers = {tasks.of[target] for target in tensor.targets if target < count}
        touched = [entry[task] for task in readers] if tensor.source < 0 else []
        if tensor.source >= 0 and count in tensor.targets:
            touched.append(leave[tasks.of[tensor.source]])
        for own in touched:
            own[:] = map(int.__add__, own, row)
    return tuple(map(tuple, entry)), tuple(map(tuple, leave))


class ScheduleValues(PlayedPlan):
    """The numbers of one plan of tasks: of requests of which each is one chunk."""

    tables: TaskTables

    @property
    def latency_us(self) -> int:
        """From the arrival to the last output."""
        return self.makespan_us

    def unit_of(self, layer: int) -> int:
        """Return the unit of a layer."""
        return self.code.parts[self.tables.tasks.of[layer]][0][2]

    @cached_property
    def memory_bytes(self) -> dict[int, int]:
        """The bytes of the tasks of each unit in use."""
        units = self.code.units
        return {
            unit: self.tables.weights.of(task for task, own in enumerate(units) if own == unit)
            for unit in self.busy_us
        }

    @property
    def peak_bytes(self) -> int:
        """The bytes of all units."""
        return sum(self.memory_bytes.values())


_TASK = Index(name="task", allowed=lambda tables, *_: range(tables.task_count))

TERMS = table(
    (
        TermInfo(Term.LATENCY, "from the arrival of one request to its last output", most=most_us),
        TermInfo(Term.WORK, "time of all units for layers", most=most_us),
        TermInfo(Term.UNITS, "number of units in use", most=lambda tables, *_: tables.unit_count),
    )
)
"""What can be minimised."""

QUANTITIES = quantity_table(
    (
        *placed_quantities("time of the layers of the unit", most_us),
        QuantityInfo(
            Q.START, "when the task, a layer or a segment of layers, starts", (_TASK,), most=most_us
        ),
        QuantityInfo(Q.FINISH, "when the task is done", (_TASK,), most=most_us),
    ),
    TERMS,
)
"""What rules can speak about."""

ScheduleValues.terms, ScheduleValues.quantities = TERMS, QUANTITIES


class ScheduleView(GraphView):
    """Atoms of rules about schedules: a unit is busy with its layers."""

    infos = QUANTITIES

    def start_us(self, layer: LayerRef) -> IntVar:
        """Return when a layer starts, microseconds from the arrival; in a segment, when the segment does."""
        return self._variables.number(Q.START, self._tables.tasks.of[self._layer(layer)])

    def finish_us(self, layer: LayerRef) -> IntVar:
        """Return when a layer is done, microseconds from the arrival; in a segment, when the segment is."""
        return self._variables.number(Q.FINISH, self._tables.tasks.of[self._layer(layer)])

    latency_us = whole(Q.LATENCY, "the time from the arrival to the last output, microseconds")


def well_formed(tables: TaskTables, plan: Plan) -> JobPlan:
    """Return a plan by index; where it names no order, its layers start in that of the network."""
    unit_of, wrong = units_of_layers(plan, tables)
    if not wrong:
        wrong += [*_divided(tables, unit_of), *_disorder(tables, plan.order)]
    if wrong:
        raise MalformedPlanError(plan, wrong)
    index = {name: layer for layer, name in enumerate(tables.layers)}
    order = dict.fromkeys(tables.tasks.of[index[name]] for name in plan.order) or range(tables.task_count)
    return tables.scheduled([unit_of[own[0]] for own in tables.tasks.members], order)


def plan_of(tables: TaskTables, code: JobPlan) -> Plan:
    """Return a plan by name: for each unit its layers, as runs of the given order; and when who starts."""
    units = code.units
    unit_of = [units[task] for task in tables.tasks.of]
    chunks = chunks_of_layers(unit_of, tables)
    order = tuple(tables.layers[layer] for task in code.order for layer in tables.tasks.members[task])
    return Plan(chunks=chunks, order=order)


def _divided(tables: TaskTables, unit_of: list[int]) -> Iterator[Violation]:
    for own in tables.tasks.members:
        units = {unit_of[layer] for layer in own}
        if len(units) > 1:
            named = ", ".join(repr(tables.layers[layer]) for layer in own[:5])
            there = ", ".join(sorted(repr(tables.units[unit]) for unit in units))
            yield Violation(rule="segments", message=f"layers {named} are one segment, but are on {there}")


def _disorder(tables: TaskTables, order: tuple[str, ...]) -> Iterator[Violation]:
    """Yield what is wrong with the order of the layers."""
    place = {name: position for position, name in enumerate(order)}
    if not place:
        return
    if len(place) < len(order) or {*place} != {*tables.layers}:
        missing = sorted({*tables.layers} - {*place})[:5] or sorted({*place} - {*tables.layers})[:5]
        named = f"; look at {', '.join(map(repr, missing))}" if missing else ""
        text = f"the order names {len(order)} layers, not each of {len(tables.layers)} once{named}"
        yield Violation(rule="order", message=text)
        return
    for own in tables.tasks.members:
        places = [place[tables.layers[layer]] for layer in own]
        if places != [*range(places[0], places[0] + len(own))]:
            named = ", ".join(repr(tables.layers[layer]) for layer in own[:5])
            yield Violation(
                rule="segments", message=f"layers {named} are not one after the other in the order"
            )
    for task, before in enumerate(tables.before):
        for other, _ in before:
            reader, maker = (tables.layers[tables.tasks.members[each][0]] for each in (task, other))
            if place[reader] < place[maker]:
                yield Violation(
                    rule="order", message=f"the order has {reader!r} before {maker!r}, which it reads from"
                )


def broken(values: ScheduleValues) -> Iterator[Violation]:
    """Yield tasks that units cannot run, and capacities that a schedule breaks.

    That units which exclude each other take turns is how starts are made: no plan can break it.
    """
    tables = values.tables
    for task, unit in enumerate(values.code.units):
        if tables.time_us[task][unit] is None:
            layer = tables.layers[tables.tasks.members[task][0]]
            text = f"unit {tables.units[unit]!r} cannot run layer {layer!r}, or one of its segment"
            yield Violation(rule="support", message=text)
    yield from too_full(values.memory_bytes, tables)
