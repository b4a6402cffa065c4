"""What a schedule of tasks is by index, and what it breaks, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import MalformedPlanError
from ..jobs.tables import JobPlan
from ..placed_layers import chunks_of_layers, too_full, units_of_layers
from ..plan import Plan
from ..scores import Violation
from .quantities import ScheduleValues
from .tables import TaskTables


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
