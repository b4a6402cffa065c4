"""How a schedule becomes a stream: tasks that one unit runs right after each other as one piece.

A piece is one model for its engine: it begins when all that its tasks read is there, and what they make is
there when all of it is done. So tasks become one piece only where, by the times of the schedule, nothing
starts later for it: what the later ones read is there when the first one starts, and nobody reads from the
earlier ones, or waits for their unit, before the last one is done.

No piece waits for itself: each begins when those that it waits for are done, which is later than they begin;
tasks that take no time stay apart, in the order of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

from ..blocks import Blocks, blocks_of
from ..plan import Chunk, Plan
from ..problem import Problem
from ..streams import Dataflow, Stream
from .judge import plan_of
from .quantities import ScheduleValues
from .tables import Schedule, TaskTables, tables_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """The pieces of a schedule, in the order in which they start."""

    tasks: tuple[tuple[int, ...], ...]  # the tasks of each piece, in their order
    units: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    """For each piece the earlier ones that it waits for: those that make its inputs, the one before it on its
    unit, those before it on units that exclude its own; not those that another of them waits for."""


def pieces_of(tables: TaskTables, code: Schedule) -> Pieces:
    """Return the pieces of a schedule."""
    return _Joining(tables, code).pieces()


def stream_of(problem: Problem, plan: Plan) -> Stream:
    """Return a plan as a stream: its pieces are the chunks, in a valid order of the layers."""
    tables, code = tables_of(problem), problem.formulation.code(problem, plan)
    found = pieces_of(tables, code)
    layers = [sorted(x for task in own for x in tables.tasks.members[task]) for own in found.tasks]
    order = tuple(layer for own in layers for layer in own)
    ends = pairwise(accumulate(map(len, layers), initial=0))
    alone = len(layers) == 1
    return Stream(
        name=tables.network,
        chunks=tuple(
            Chunk(network=tables.network, start=start, stop=stop, unit=tables.units[unit])
            for unit, (start, stop) in zip(found.units, ends, strict=True)
        ),
        task_slots=1,
        order=() if order == tuple(range(len(order))) else order,
        dataflow=None if alone else Dataflow(waits=found.waits, starts=plan_of(tables, code).order),
    )


class _Joining:
    """Joins tasks to pieces, in the order of their starts."""

    def __init__(self, tables: TaskTables, code: Schedule) -> None:
        self._tables, self._code = tables, code
        self._values = ScheduleValues(tables, code)
        self._time_us = [tables.time_us[task][unit] or 0 for task, unit in enumerate(code.units)]
        self._before = self._waits()
        self._after: list[list[tuple[int, int]]] = [[] for _ in self._before]
        for task, own in enumerate(self._before):
            for other, sent_us in own:
                self._after[other].append((task, sent_us))
        self._piece: dict[int, list[int]] = {}

    def _waits(self) -> list[list[tuple[int, int]]]:
        """Return for each task those that it waits for, and how long after their end."""
        tables, units = self._tables, self._code.units
        found = [
            [(other, square[units[other]][units[task]]) for other, square in before]
            for task, before in enumerate(tables.before)
        ]
        last: dict[int, int] = {}
        for task in self._code.order:
            near = {units[task], *tables.exclusive[units[task]]} & last.keys()
            found[task] += [(last[unit], 0) for unit in sorted(near)]
            last[units[task]] = task
        return found

    def pieces(self) -> Pieces:
        """Join all that can be joined."""
        last: dict[int, list[int]] = {}
        for task in self._code.order:
            unit = self._code.units[task]
            if unit in last and self._fits(last[unit], task):
                last[unit].append(task)
            else:
                last[unit] = [task]
            self._piece[task] = last[unit]
        starts = self._values.task_start_us
        place = {task: position for position, task in enumerate(self._code.order)}
        ordered = sorted(
            {own[0]: own for own in self._piece.values()}.values(),
            key=lambda own: (starts[own[0]], self._time_us[own[0]] > 0, place[own[0]]),
        )
        return Pieces(
            tasks=tuple(map(tuple, ordered)),
            units=tuple(self._code.units[own[0]] for own in ordered),
            waits=self._between(ordered).before,
        )

    def _between(self, ordered: list[list[int]]) -> Blocks:
        """Return the graph of the pieces."""
        number = {task: index for index, own in enumerate(ordered) for task in own}
        edges = {
            (number[other], number[task])
            for task, before in enumerate(self._before)
            for other, _ in before
            if number[other] != number[task]
        }
        return blocks_of(len(ordered), edges, ())

    def _fits(self, own: list[int], task: int) -> bool:
        """Return whether nothing starts later if a task is run with those before it on its unit."""
        begins, starts = self._values.task_start_us[own[0]], self._values.task_start_us
        entry_us = self._tables.entry_us[task][self._code.units[task]]
        ends = self._end_us(own) + self._time_us[task]
        if not (self._time_us[own[0]] and self._time_us[task]) or entry_us > begins:
            return False
        for other, sent_us in self._before[task]:
            if other not in own and self._end_us(self._piece[other]) + sent_us > begins:
                return False
        for one in own:
            if ends + self._tables.exit_us[one][self._code.units[one]] > self._values.latency_us:
                return False
            for other, sent_us in self._after[one]:
                reads_at = starts[self._piece.get(other, [other])[0]]
                if other != task and other not in own and ends + sent_us > reads_at:
                    return False
        return True

    def _end_us(self, own: list[int]) -> int:
        return self._values.task_start_us[own[0]] + sum(self._time_us[task] for task in own)
