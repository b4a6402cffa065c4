"""What schedules are worth, and what rules speak about: starts, ends, loads and bytes."""

from __future__ import annotations

from enum import StrEnum

from ..terms import Dimension, Index, PlanNumbers, QuantityInfo, TermInfo, table
from .tables import Schedule, TaskTables


class ScheduleTerm(StrEnum):
    """Names of what can be minimised; `TERMS` says what they are."""

    LATENCY = "latency"
    WORK = "work"
    UNITS = "units"


class ScheduleQuantity(StrEnum):
    """Names of the variables that describe a plan, with their indices."""

    ON = "on"  # (layer, unit): the unit runs the layer
    USES = "uses"  # (unit): the unit runs at least one layer
    BUSY = "busy_us"  # (unit): time of its layers, 0 when not used
    MEMORY = "memory_bytes"  # (unit): bytes of its layers
    START = "start_us"  # (task): when it starts
    FINISH = "finish_us"  # (task): when it is done
    LATENCY = "latency_us"
    WORK = "work_us"
    UNITS = "units"


TERMS = table(
    (
        TermInfo(
            name=ScheduleTerm.LATENCY,
            field="latency_us",
            dimension=Dimension.MICROSECONDS,
            text="from the arrival of one request to its last output",
            label="latency",
        ),
        TermInfo(
            name=ScheduleTerm.WORK,
            field="work_us",
            dimension=Dimension.MICROSECONDS,
            text="time of all units for layers",
            label="work",
        ),
        TermInfo(
            name=ScheduleTerm.UNITS,
            field="units",
            dimension=Dimension.COUNT,
            text="number of units in use",
            label="units",
        ),
    )
)
"""What can be minimised."""


class ScheduleValues(PlanNumbers):
    """Every quantity of one well-formed plan, in exact integers.

    `tables`, `code`: the tables of the problem, and the plan by index.
    """

    def __init__(self, tables: TaskTables, code: Schedule) -> None:
        self.tables, self.code = tables, code
        self.task_start_us = tables.starts(code.units, code.order)
        self.task_end_us = [
            start + (tables.time_us[task][unit] or 0)
            for task, (start, unit) in enumerate(zip(self.task_start_us, code.units, strict=True))
        ]
        self.latency_us = max(
            end + tables.exit_us[task][code.units[task]] for task, end in enumerate(self.task_end_us)
        )
        self.busy_us = dict.fromkeys(sorted(set(code.units)), 0)
        for task, unit in enumerate(code.units):
            self.busy_us[unit] += tables.time_us[task][unit] or 0
        self.memory_bytes = {
            unit: tables.weights.of(task for task, own in enumerate(code.units) if own == unit)
            for unit in self.busy_us
        }
        self.work_us = sum(self.busy_us.values())
        self.units = len(self.busy_us)
        self.peak_bytes = sum(self.memory_bytes.values())


_UNIT = Index(name="unit", allowed=lambda tables, *_: range(tables.unit_count))
_LAYER = Index(name="layer", allowed=lambda tables, *_: range(len(tables.layers)))
_TASK = Index(name="task", allowed=lambda tables, *_: range(tables.task_count))


def _most_us(tables: TaskTables, *_: int) -> int:
    return tables.horizon_us


QUANTITIES = table(
    (
        QuantityInfo(
            name=ScheduleQuantity.ON,
            text="the unit runs the layer",
            indices=(_LAYER, _UNIT),
            read=lambda plan, layer, unit: int(plan.code.units[plan.tables.tasks.of[layer]] == unit),
        ),
        QuantityInfo(
            name=ScheduleQuantity.USES,
            text="the unit runs at least one layer",
            indices=(_UNIT,),
            read=lambda plan, unit: int(unit in plan.busy_us),
        ),
        QuantityInfo(
            name=ScheduleQuantity.BUSY, text="time of the layers of the unit", indices=(_UNIT,), most=_most_us
        ),
        QuantityInfo(
            name=ScheduleQuantity.MEMORY,
            text="bytes of the layers of the unit",
            indices=(_UNIT,),
            most=lambda tables, *_: tables.weights.whole,
        ),
        QuantityInfo(
            name=ScheduleQuantity.START,
            text="when the task, a layer or a segment of layers, starts",
            indices=(_TASK,),
            most=_most_us,
            read=lambda plan, task: plan.task_start_us[task],
        ),
        QuantityInfo(
            name=ScheduleQuantity.FINISH,
            text="when the task is done",
            indices=(_TASK,),
            most=_most_us,
            read=lambda plan, task: plan.task_end_us[task],
        ),
        QuantityInfo(name=ScheduleQuantity.LATENCY, text="arrival to last output", most=_most_us),
        QuantityInfo(name=ScheduleQuantity.WORK, text="time of all units for layers", most=_most_us),
        QuantityInfo(
            name=ScheduleQuantity.UNITS, text="units in use", most=lambda tables, *_: tables.unit_count
        ),
    )
)
"""What rules can speak about."""

ScheduleValues.terms, ScheduleValues.quantities = TERMS, QUANTITIES
