"""A text Gantt chart: which unit works on which request, when."""

from __future__ import annotations

import string
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

from ..formulations.simulate import Trace
from .words import millis

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
_LABEL_WIDTH = 16
_LEAST_WIDTH = 20
_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def gantt(trace: Trace, width: int) -> list[Text]:
    """Return the lines of a chart: a unit each, in the order of the chunks, and the time axis.

    Each block stands for one request on one unit and begins with its `block_name`.

    Parameters
    ----------
    trace
        What happened when.
    width
        Columns to fill.
    """
    used = [chunk.unit for chunk in trace.plan.chunks]
    if trace.names:
        used = [unit for unit in trace.units if unit in set(used)]
    label = min(_LABEL_WIDTH, max(map(len, used)))
    cells = max(_LEAST_WIDTH, width - label - 3)
    lines = []
    for unit in used:
        name = unit if len(unit) <= label else unit[: label - 1] + "~"
        lines.append(Text(f" {name:<{label}} ").append_text(_row(trace, unit, cells)))
    return [*lines, Text(" " * (label + 2) + _axis(trace.makespan_us, cells), style="dim")]


def block_name(trace: Trace, request: int) -> str:
    """Return what stands for a request in a chart: a letter in a workload, else the last digit."""
    return _LETTERS[request % len(_LETTERS)] if trace.names else str(request % 10)


class _Chart:
    """A Gantt chart as wide as the console."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def __rich_console__(self, console: Console, options: object) -> Iterable[RenderableType]:
        yield from gantt(self._trace, console.width)


def gantt_view(trace: Trace) -> RenderableType:
    """Return a chart that fills whatever console shows it."""
    return _Chart(trace)


def _row(trace: Trace, unit: str, cells: int) -> Text:
    """Return the blocks of one unit; even the shortest takes one cell."""
    end_us = trace.makespan_us
    blocks = []
    for event in trace.on(unit):
        start = min(cells - 1, event.start_us * cells // end_us)
        blocks.append((start, max(start + 1, event.end_us * cells // end_us), event.request))
    row = Text()
    starts = [start for start, _, _ in blocks[1:]] + [cells]
    for (start, stop, request), following in zip(blocks, starts, strict=True):
        row.append("." * (start - len(row)), style="dim")
        width = min(stop, following) - start
        row.append(
            f"{block_name(trace, request)}{'=' * width}"[:width],
            style=f"black on {_COLOURS[request % len(_COLOURS)]}",
        )
    return row.append("." * (cells - len(row)), style="dim")


def _axis(end_us: int, cells: int) -> str:
    """Return a line with the time at its start, middle and end."""
    marks = [(0, "0 ms"), (cells // 2, f"{millis(end_us // 2)}"), (cells, millis(end_us))]
    line = [" "] * cells
    for at, text in marks:
        start = max(0, min(at - len(text) // 2, cells - len(text)))
        line[start : start + len(text)] = text
    return "".join(line)[:cells]
