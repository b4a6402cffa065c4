"""What schedules are worth, and what rules speak about: starts, ends, loads and bytes."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

from ..jobs.quantities import PlayedPlan
from ..terms import Dimension as D
from ..terms import Index, QuantityInfo, TermInfo, quantity_table, table
from .tables import TaskTables


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


class ScheduleValues(PlayedPlan):
    """The numbers of one plan of tasks: of requests of which each is one chunk."""

    tables: TaskTables

    @property
    def latency_us(self) -> int:
        """From the arrival to the last output."""
        return self.makespan_us

    @cached_property
    def memory_bytes(self) -> dict[int, int]:
        """The bytes of the tasks of each unit in use."""
        units = self.code.units
        return {
            unit: self.tables.weights.of(task for task, own in enumerate(units) if own == unit)
            for unit in self.busy_us
        }

    @property
    def units(self) -> int:
        """Number of units in use."""
        return len(self.busy_us)

    @property
    def peak_bytes(self) -> int:
        """The bytes of all units."""
        return sum(self.memory_bytes.values())


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
            read=lambda plan, layer, unit: int(plan.code.parts[plan.tables.tasks.of[layer]][0][2] == unit),
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
        ),
        QuantityInfo(ScheduleQuantity.FINISH, "when the task is done", (_TASK,), most=_most_us),
    ),
    TERMS,
)
"""What rules can speak about."""

ScheduleValues.terms, ScheduleValues.quantities = TERMS, QUANTITIES
