"""List schedules: tasks by priority, each on the unit where it, or what follows, ends first.

HEFT (Topcuoglu, Hariri and Wu 2002): by upward rank, at mean times; on the unit where the task ends first,
also in a gap between others. PEFT (Arabnejad and Barbosa 2014, "List Scheduling Algorithm for Heterogeneous
Systems by an Optimistic Cost Table"): on the unit where its end and the optimistic cost of what follows are
least together; that cost is the tail of the task on the unit (`Paths.tail_us`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence

from ...formulations.task_graph.paths import Paths
from ...formulations.task_graph.tables import Schedule, TaskTables
from ..topological_orders import by_priority

Ahead = Sequence[Sequence[int]]
"""What is added to the end of each task on each unit when units are compared."""


def upward_ranks(tables: TaskTables) -> list[float]:
    """Return for each task its longest path to the end, at mean times of units and of pairs of them."""
    pairs = max(1, tables.unit_count * (tables.unit_count - 1))
    ranks = [0.0] * tables.task_count
    for task in range(tables.task_count - 1, -1, -1):
        times = [tables.time_us[task][unit] or 0 for unit in tables.allowed[task]]
        rest = max(
            (sum(map(sum, square)) / pairs + ranks[other] for other, square in tables.after[task]),
            default=0.0,
        )
        ranks[task] = sum(times) / max(1, len(times)) + rest
    return ranks


def list_schedule(
    tables: TaskTables, order: Sequence[int], ahead: Ahead | None = None, units: Collection[int] | None = None
) -> Schedule | None:
    """Return the schedule of a topological order; None: no unit can run a task.

    Where no unit has room for a task, one is too full, which a repair may mend.

    `ahead`: see `Ahead`; None: nothing, as in HEFT. `units`: those that may be used; None: all.
    """
    busy: list[list[tuple[int, int]]] = [[] for _ in tables.units]
    room, held = [*tables.unit_memory], [set[int]() for _ in tables.units]
    unit_of, end, start = [0] * tables.task_count, [0] * tables.task_count, [0] * tables.task_count
    for task in order:
        best: tuple[bool, int, int, int, int] | None = None
        for unit in tables.allowed[task]:
            if units is not None and unit not in units:
                continue
            free = room[unit]
            full = free is not None and free < tables.weights.more(task, held[unit])
            ready = tables.entry_us[task][unit]
            for other, square in tables.before[task]:
                ready = max(ready, end[other] + square[unit_of[other]][unit])
            time_us = tables.time_us[task][unit] or 0
            begin = _first_gap(busy[unit], ready, time_us)
            stop = begin + time_us
            found = (full, stop + (ahead[task][unit] if ahead else 0), stop, begin, unit)
            best = found if best is None else min(best, found)
        if best is None:
            return None
        _, _, end[task], start[task], unit = best
        unit_of[task] = unit
        left = room[unit]
        room[unit] = None if left is None else left - tables.weights.more(task, held[unit])
        held[unit].add(task)
        for near in {unit, *tables.exclusive[unit]}:
            insort(busy[near], (start[task], end[task]))
    return tables.ordered(unit_of, sorted(order, key=lambda task: (start[task], task)))


def _first_gap(busy: list[tuple[int, int]], ready: int, time_us: int) -> int:
    """Return when a unit is first free for so long, not before `ready`; its busy times are sorted."""
    begin = ready
    if busy and busy[-1][1] > ready:
        for start, stop in busy:
            if stop > begin:
                if start - begin >= time_us:
                    return begin
                begin = stop
    return begin


def first_schedules(tables: TaskTables, paths: Paths, units: Collection[int] | None = None) -> list[Schedule]:
    """Return schedules of HEFT and PEFT, by upward rank and by the longest path, and of single units."""
    tails = [
        min((paths.through_us(task, unit) - paths.head_us[task][unit] for unit in own), default=0)
        for task, own in enumerate(tables.allowed)
    ]
    found = []
    for priority in (upward_ranks(tables), tails):
        order = by_priority(tables.tasks, [-rank for rank in priority])
        found += [list_schedule(tables, order, ahead, units) for ahead in (None, paths.tail_us)]
    order = list(range(tables.task_count))
    for unit in range(tables.unit_count) if units is None else units:
        found.append(list_schedule(tables, order, None, (unit,)))
    return [*dict.fromkeys(each for each in found if each is not None)]
