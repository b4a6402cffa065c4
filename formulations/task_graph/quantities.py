"""What schedules are worth, and what rules speak about: starts, ends, loads and bytes."""

from __future__ import annotations

from enum import StrEnum

from ..terms import Dimension as D
from ..terms import Index, PlanNumbers, QuantityInfo, TermInfo, quantity_table, table
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


TERMS = table(
    (
        TermInfo(
            ScheduleTerm.LATENCY,
            "from the arrival of one request to its last output",
            D.MICROSECONDS,
            most=_most_us,
        ),
        TermInfo(ScheduleTerm.WORK, "time of all units for layers", D.MICROSECONDS, most=_most_us),
        TermInfo(ScheduleTerm.UNITS, "number of units in use", most=lambda tables, *_: tables.unit_count),
    )
)
"""What can be minimised."""

QUANTITIES = quantity_table(
    (
        QuantityInfo(
            ScheduleQuantity.ON,
            "the unit runs the layer",
            (_LAYER, _UNIT),
            read=lambda plan, layer, unit: int(plan.code.units[plan.tables.tasks.of[layer]] == unit),
        ),
        QuantityInfo(
            ScheduleQuantity.USES,
            "the unit runs at least one layer",
            (_UNIT,),
            read=lambda plan, unit: int(unit in plan.busy_us),
        ),
        QuantityInfo(ScheduleQuantity.BUSY, "time of the layers of the unit", (_UNIT,), most=_most_us),
        QuantityInfo(
            ScheduleQuantity.MEMORY,
            "bytes of the layers of the unit",
            (_UNIT,),
            most=lambda tables, *_: tables.weights.whole,
        ),
        QuantityInfo(
            ScheduleQuantity.START,
            "when the task, a layer or a segment of layers, starts",
            (_TASK,),
            most=_most_us,
            read=lambda plan, task: plan.task_start_us[task],
        ),
        QuantityInfo(
            ScheduleQuantity.FINISH,
            "when the task is done",
            (_TASK,),
            most=_most_us,
            read=lambda plan, task: plan.task_end_us[task],
        ),
    ),
    TERMS,
)
"""What rules can speak about."""

ScheduleValues.terms, ScheduleValues.quantities = TERMS, QUANTITIES
