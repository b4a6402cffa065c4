"""Every schedule of a small graph: what the oracle walks, and what is a small change away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from math import factorial, prod

from .tables import Schedule, TaskTables

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
