"""Memory over time as a chart."""

from __future__ import annotations

from ..formulations.usage import Usage
from .charts import Axis, Kind, Line, Plane, Series, Stroke, time_unit
from .words import percent, size

_NEAR = 2.5
"""A capacity of at most this multiple of the peak is drawn; a larger one would flatten the chart."""

_COLUMNS = 2000
"""Columns of the chart; steps that fall on one of them are drawn as one: its largest and its last."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def memory_chart(usage: Usage, capacity: int | None, *, by_unit: bool) -> Plane:
    """Return the memory that a plan needs over time.

    `capacity`: of the device; None: not known. `by_unit`: whether units have capacities of their own instead.
    """
    peak = usage.peak_bytes
    shown = capacity is not None and capacity <= _NEAR * peak
    most = max(peak, capacity if capacity is not None and shown else 0)
    level = next(level for level in reversed(range(len(_UNITS))) if most >= 2 * 1024**level or not level)
    end_us = max(usage.steps[-1][0], 1)
    per_unit, name = time_unit(end_us)
    across = Axis(name="time", unit=name, low=0, high=end_us / per_unit)
    upwards = Axis(name="memory", unit=_UNITS[level], low=0, high=1.12 * most / 1024**level)
    guides = [(f"peak {size(peak)}", peak, Stroke.DOTTED)]
    guides += (
        [(f"capacity {size(capacity)}", capacity, Stroke.DASHED)] if capacity is not None and shown else []
    )
    return Plane(
        kind=Kind.LINES,
        title="Memory over time",
        words=_words(peak, capacity, by_unit=by_unit, shown=shown),
        across=across,
        upwards=upwards,
        series=(Series(name="", lines=(_line(usage, end_us, per_unit, 1024**level),)),),
        guides=tuple(
            Line(
                points=((0, value / 1024**level), (across.high, value / 1024**level)),
                stroke=stroke,
                name=text,
                alert=stroke is Stroke.DASHED,
            )
            for text, value, stroke in guides
        ),
        flat=True,
    )


def _line(usage: Usage, end_us: int, per_unit: int, per_size: int) -> Line:
    columns: dict[int, tuple[int, int]] = {}
    for time_us, used in usage.steps:
        x = round(_COLUMNS * time_us / end_us)
        columns[x] = max(columns.get(x, (0, 0))[0], used), used
    width = end_us / per_unit / _COLUMNS
    points = [
        (x * width, value / per_size) for x, values in columns.items() for value in dict.fromkeys(values)
    ]
    return Line(points=((0.0, 0.0), *points, (_COLUMNS * width, points[-1][1])), stairs=True, filled=True)


def _words(peak: int, capacity: int | None, *, by_unit: bool, shown: bool) -> str:
    if capacity is None and by_unit:
        return f"Peak {size(peak)} on all units together; what each of them has is in the table."
    if capacity is None:
        return f"Peak {size(peak)}; the capacity of the device is not known."
    words = (
        f"Peak {size(peak)}, {percent(round(1000 * peak / capacity))} of the {size(capacity)} of the device."
    )
    return words if shown else f"{words} The capacity is far above this chart."
