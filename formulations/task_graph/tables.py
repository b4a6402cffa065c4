"""A graph of tasks and its units as plain integers by index: where judge, encoding and searches start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from ..blocks import Blocks, blocks_of
from ..limits import capped
from ..problem import Problem
from ..task_graphs import TaskGraph
from ..weights import Weights

Square = tuple[tuple[int, ...], ...]
"""Microseconds by [from][to]."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A plan by index."""

    units: tuple[int, ...]  # the unit of each task
    order: tuple[int, ...]
    """The tasks in the order of their starts, ties by index: each starts as soon as what it reads is on its
    unit, and all tasks before it on its unit, and on units that exclude it, are done."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskTables:
    """The tables of one problem. A task is a layer, or a segment of layers.

    `network`, `layers`, `units`: names, to come back from indices; `entry_us`, `exit_us`: by [task][unit]
    what it takes to bring in what the task reads from outside, and to hand on what it makes for outside;
    `unit_memory`, `device_memory`: capacities in bytes, or None.
    """

    network: str
    layers: tuple[str, ...]
    units: tuple[str, ...]
    tasks: Blocks  # the layers of each task, and the order between tasks
    time_us: tuple[tuple[int | None, ...], ...]  # time by [task][unit]; None: cannot run there
    weights: Weights  # bytes that tasks take of the memory of their unit
    before: tuple[tuple[tuple[int, Square], ...], ...]
    """For each task those that it reads from, with the time of what they send by [from][to]: one tensor after
    another."""
    entry_us: tuple[tuple[int, ...], ...]
    exit_us: tuple[tuple[int, ...], ...]
    unit_memory: tuple[int | None, ...]
    device_memory: int | None
    exclusive: tuple[frozenset[int], ...]
    """For each unit the set of the units that exclude it: they do not run at the same time."""

    @property
    def task_count(self) -> int:
        """Number of tasks."""
        return self.tasks.count

    @property
    def unit_count(self) -> int:
        """Number of units."""
        return len(self.units)

    @cached_property
    def after(self) -> tuple[tuple[tuple[int, Square], ...], ...]:
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
    def turns(self) -> tuple[tuple[int, ...], ...]:
        """Sets of units that take turns: each unit is in one, and so are each two that exclude each other."""
        found: list[tuple[int, ...]] = []
        for unit in range(self.unit_count):
            for other in sorted({unit, *self.exclusive[unit]}):
                if other >= unit and not any({unit, other} <= {*own} for own in found):
                    found.append(self._clique(unit, other))
        return tuple(own for own in found if not any({*own} < {*other} for other in found))

    def _clique(self, unit: int, other: int) -> tuple[int, ...]:
        """Return a largest set of units that all exclude each other, with two given ones in it."""
        own = {unit, other}
        for more in range(self.unit_count):
            if own - {more} <= self.exclusive[more]:
                own.add(more)
        return tuple(sorted(own))

    @cached_property
    def horizon_us(self) -> int:
        """A time by which every plan is done: one task after the other, each at its slowest."""
        work = sum(max((time or 0 for time in row), default=0) for row in self.time_us)
        sent = sum(max(map(max, square)) for own in self.before for _, square in own)
        return work + sent + sum(map(max, self.entry_us)) + sum(map(max, self.exit_us))

    def ordered(self, units: Sequence[int], order: Iterable[int]) -> Schedule:
        """Return a plan whose tasks stand in the order of their starts."""
        starts = self.starts(units, order)
        return Schedule(tuple(units), tuple(sorted(range(self.task_count), key=lambda t: (starts[t], t))))

    def starts(self, units: Sequence[int], order: Iterable[int]) -> list[int]:
        """Return when each task starts: as early as it can in this order; it must be topological."""
        free, start, end = [0] * self.unit_count, [0] * self.task_count, [0] * self.task_count
        for task in order:
            unit = units[task]
            begin = max(free[unit], self.entry_us[task][unit])
            for other in self.exclusive[unit]:
                begin = max(begin, free[other])
            for other, square in self.before[task]:
                begin = max(begin, end[other] + square[units[other]][unit])
            start[task] = begin
            end[task] = free[unit] = begin + (self.time_us[task][unit] or 0)
        return start


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
    return TaskTables(
        network=network.name,
        layers=network.layer_names,
        units=platform.unit_names,
        tasks=tasks,
        time_us=tuple(_sum_us([layer_us[layer] for layer in own]) for own in tasks.members),
        weights=network.weights.grouped(tasks.of, tasks.count),
        before=_before(problem, tasks),
        entry_us=entry_us,
        exit_us=exit_us,
        unit_memory=tuple(unit.memory_bytes for unit in platform.units),
        device_memory=platform.memory_bytes,
        exclusive=platform.exclusive,
    )


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
