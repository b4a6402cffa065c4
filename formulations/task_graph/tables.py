"""A graph of tasks and its units as plain integers by index: where judge, encoding and searches start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from ..blocks import Blocks, blocks_of
from ..hardware import Platform
from ..jobs.play import Part
from ..jobs.tables import JobPlan, Option, ScheduleTables, Square, Visits
from ..limits import capped
from ..losses import Losses, Mark
from ..problem import Problem
from ..task_graphs import TaskGraph
from ..weights import Weights


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
