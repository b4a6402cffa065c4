"""The longest paths to and from tasks: when each can start, and what is left when it is done, at least."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .tables import TaskTables


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """Bounds by task and unit; of units that cannot run a task, nothing is said (0)."""

    tables: TaskTables  # the tables of the problem
    head_us: tuple[tuple[int, ...], ...]
    """By [task][unit] the earliest start: the longest path to it, each task on it on its best unit."""
    tail_us: tuple[tuple[int, ...], ...]  # by [task][unit] what is left after its end, likewise

    def through_us(self, task: int, unit: int) -> int:
        """Return the least latency of plans that have a task on a unit, as far as paths tell."""
        own_us = self.tables.time_us[task][unit] or 0
        return self.head_us[task][unit] + own_us + self.tail_us[task][unit]

    @cached_property
    def longest_us(self) -> int:
        """No latency is less: the longest path."""
        return max(
            min((self.through_us(task, unit) for unit in allowed), default=0)
            for task, allowed in enumerate(self.tables.allowed)
        )


def paths_of(tables: TaskTables) -> Paths:
    """Return the longest paths of a graph."""
    units = range(tables.unit_count)
    head = [[*row] for row in tables.entry_us]
    for task, before in enumerate(tables.before):
        for other, square in before:
            ends = [
                (head[other][u] + (tables.time_us[other][u] or 0), square[u]) for u in tables.allowed[other]
            ]
            for unit in units:
                head[task][unit] = max(
                    head[task][unit], min((end + row[unit] for end, row in ends), default=0)
                )
    tail = [[*row] for row in tables.exit_us]
    for task in range(tables.task_count - 1, -1, -1):
        for other, square in tables.after[task]:
            rests = [((tables.time_us[other][v] or 0) + tail[other][v], v) for v in tables.allowed[other]]
            for unit in units:
                tail[task][unit] = max(
                    tail[task][unit], min((rest + square[unit][v] for rest, v in rests), default=0)
                )
    return Paths(tables=tables, head_us=tuple(map(tuple, head)), tail_us=tuple(map(tuple, tail)))
