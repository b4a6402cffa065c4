"""Memory over time against the capacity of the device, and of each unit against its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...formulations.usage import Usage
from ..words import percent, size
from .scale import Tick, nice_step, share, time_ticks
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table

WIDTH, HEIGHT = 4000, 1000
"""Units of the drawing: how fine it is."""

_NEAR = 2.5
"""A capacity of at most so many times the peak is drawn; a larger one would flatten the chart."""

_BINARY = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChart:
    """Memory over time."""

    path: str  # the steps as an SVG path in a box of `WIDTH` x `HEIGHT`
    peak: float  # percent from the top
    peak_text: str
    capacity: float | None  # percent from the top; None: not known, or far above the chart
    capacity_text: str
    times: tuple[Tick, ...]
    sizes: tuple[Tick, ...]
    words: str  # peak and capacity, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory: over time (None: no trace is known), and of each unit."""

    chart: MemoryChart | None
    units: Table


def memory(subject: Subject) -> Memory | None:
    """Return what is known of the memory of a subject; None: nothing."""
    usage, has_units = subject.memory, subject.score is not None or subject.measurement is not None
    drawn = usage is not None and bool(usage.steps) and usage.peak_bytes > 0
    if not drawn and not has_units:
        return None
    return Memory(chart=_chart(subject, usage) if drawn and usage else None, units=_units(subject))


def _chart(subject: Subject, usage: Usage) -> MemoryChart:
    capacity, peak = subject.problem.platform.memory_bytes, usage.peak_bytes
    shown = capacity is not None and peak <= capacity <= _NEAR * peak
    too_little = capacity is not None and capacity < peak
    top = 1.12 * max(peak, capacity if shown and capacity else 0)
    end = max(usage.steps[-1][0], 1)
    if capacity is None and any(unit.memory_bytes is not None for unit in subject.problem.platform.units):
        words = f"Peak {size(peak)} on all units together; what each of them has is in the table."
    elif capacity is None:
        words = f"Peak {size(peak)}; the capacity of the device is not known."
    else:
        part = percent(round(1000 * peak / capacity))
        words = f"Peak {size(peak)}, {part} of the {size(capacity)} of the device."
        if not shown and not too_little:
            words += " The capacity is far above this chart."
    return MemoryChart(
        path=_path(usage, end, top),
        peak=_down(peak, top),
        peak_text=f"peak {size(peak)}",
        capacity=_down(capacity, top) if capacity is not None and (shown or too_little) else None,
        capacity_text="" if capacity is None else f"capacity {size(capacity)}",
        times=time_ticks(end),
        sizes=tuple(_size_ticks(top)),
        words=words,
    )


def _down(value: float, top: float) -> float:
    return round(100 - share(value, top), 3)


def _path(usage: Usage, end: int, top: float) -> str:
    """Return the steps; of those that fall on one pixel column the largest and the last are kept."""
    columns: dict[int, tuple[int, int]] = {}
    for time, used in usage.steps:
        x = round(WIDTH * time / end)
        most, _ = columns.get(x, (0, 0))
        columns[x] = max(most, used), used
    parts, at = [f"M0 {HEIGHT}"], HEIGHT
    for x, values in columns.items():
        parts.append(f"H{x}")
        for value in dict.fromkeys(values):
            y = round(HEIGHT * (1 - value / top))
            if y != at:
                parts.append(f"V{y}")
            at = y
    return "".join([*parts, f"H{WIDTH}V{HEIGHT}Z"])


def _size_ticks(top: float) -> Iterator[Tick]:
    """Yield round numbers of the largest binary unit that fits."""
    unit = 1.0
    while top / unit >= 2 * _BINARY:
        unit *= _BINARY
    step = nice_step(top / unit, 5)
    names = {1.0: "B", _BINARY: "KiB", _BINARY**2: "MiB", _BINARY**3: "GiB"}
    count = int(top / unit / step)
    for number in range(count + 1):
        value = number * step
        yield Tick(at=_down(value * unit, top), text=f"{value:g} {names.get(unit, 'TiB')}")


def _units(subject: Subject) -> Table:
    judged, found = subject.score, subject.measurement
    count = len(subject.problem.platform.units)
    by_unit = (None if judged is None else judged.columns.get("memory_bytes")) or (None,) * count
    worker = {} if found is None else {unit.unit: unit.rss_bytes for unit in found.units}
    titles = columns(
        "unit", *numbers("plan", "own capacity", "share"), *(numbers("its worker") if worker else ())
    )
    rows = []
    for index, unit in enumerate(subject.problem.platform.units):
        needs = by_unit[index]
        if needs is None and unit.name not in worker:
            continue
        row: list[TableCell | str] = [TableCell(text=unit.name, kind="name"), size(needs)]
        if unit.memory_bytes is None:
            row += ["none of its own", "-"]
        else:
            part = None if needs is None else round(1000 * needs / max(1, unit.memory_bytes))
            row += [size(unit.memory_bytes), percent(part)]
        rows.append(row + ([size(worker.get(unit.name))] if worker else []))
    return table("Memory of each unit", titles, rows)
