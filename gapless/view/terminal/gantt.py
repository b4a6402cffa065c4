"""Traces in the terminal: a text Gantt chart of which unit works on which request, when."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...answers.charts import Block, Gantt, Row
from ...answers.traces import letter, steady, trace_chart
from ...answers.words import counted, millis
from ...formulations.history import History

_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
_LABEL_WIDTH = 16
_LEAST_WIDTH = 10
_BLOCK_WIDTH = 3
"""Cells that a block should have; a chart of more blocks is cut to steady state."""

_LEGEND_NAMES = 12


def gantt(trace: History, width: int) -> list[Text]:
    """Return the lines of a chart of all of a trace: a unit each, and the time axis.

    Each block stands for one chunk of one request and begins with its name: the last digit of the
    request's number, a letter for each request of a workload, or a letter for each stream and the digit.
    """
    whole = trace_chart(trace)
    return _lines(whole, *_columns(whole, width))


def block_name(trace: History, request: int) -> str:
    """Return what stands for a request in a chart: a letter in a workload, else the last digit."""
    return letter(request) if trace.names else str(request % 10)


class _Chart:
    """A Gantt chart as wide as the console, of as many requests as are readable there."""

    def __init__(self, trace: History) -> None:
        self._whole = trace_chart(trace)

    def __rich_console__(self, console: Console, options: object) -> Iterable[RenderableType]:
        whole = self._whole
        label, cells = _columns(whole, console.width)
        most = max((len(row.blocks) for row in whole.rows), default=0)
        part = steady(whole, cells * len(whole.outputs_ns) // max(1, _BLOCK_WIDTH * most))
        yield from _lines(part, label, cells)
        yield from _covered(part, cells)
        yield from _notes(whole, part)


def gantt_view(trace: History) -> RenderableType:
    """Return a chart that fills whatever console shows it; what does not fit is cut to steady state."""
    return _Chart(trace)


def titled_chart(trace: History, title: str) -> list[RenderableType]:
    """Return a chart with a title, if there is one, that also says what is drawn."""
    words = ": each block is one request on one unit, dots are idle time"
    if any(row.link for row in trace_chart(trace).rows):
        words = ": each block is one item on one device or link (->), dots are idle time"
    return [*([Text.assemble((title, "bold"), words)] if title else []), gantt_view(trace)]


def _columns(shown: Gantt, width: int) -> tuple[int, int]:
    """Return the columns of the labels, and of the chart."""
    longest = max((len(row.name) for row in shown.rows), default=1)
    label = max(3, min(_LABEL_WIDTH, longest, width // 3)) if longest > 3 else longest
    return label, max(_LEAST_WIDTH, width - label - 3)


def _lines(shown: Gantt, label: int, cells: int) -> list[Text]:
    lines = []
    for row in shown.rows:
        if row.heading:
            lines.append(Text(f" {row.heading}", style="bold"))
        name = row.name if len(row.name) <= label else row.name[: label - 1] + "~"
        lines.append(Text(f" {name:<{label}} ").append_text(_row(shown, row, cells)))
    return [*lines, Text(" " * (label + 2) + _axis(shown, cells), style="dim")]


def _row(shown: Gantt, given: Row, cells: int) -> Text:
    """Return the blocks of one unit, or of one link; even the shortest takes one cell."""
    fill = "-" if given.link else "="
    row = Text()
    for block, (start, stop) in zip(given.blocks, _spans(shown, given.blocks, cells), strict=True):
        row.append("." * (start - len(row)), style="dim")
        width = stop - start
        # What began before the chart begins has its name further to the left.
        name = block.short if block.start_ns >= shown.start_ns else ""
        colour = _COLOURS[block.colour % len(_COLOURS)]
        row.append(f"{name}{fill * width}"[:width], style=f"black on {colour}")
    return row.append("." * (cells - len(row)), style="dim")


def _spans(shown: Gantt, blocks: tuple[Block, ...], cells: int) -> list[tuple[int, int]]:
    """Return from which cell to which each block is seen: the next one lies over it; not at all if equal."""
    length = max(1, shown.end_ns - shown.start_ns)
    spans = []
    for block in blocks:
        start = min(cells - 1, max(0, block.start_ns - shown.start_ns) * cells // length)
        spans.append((start, min(cells, max(start + 1, (block.end_ns - shown.start_ns) * cells // length))))
    following = [*(start for start, _ in spans[1:]), cells][: len(spans)]
    return [
        (start, max(start, min(stop, limit))) for (start, stop), limit in zip(spans, following, strict=True)
    ]


def _covered(shown: Gantt, cells: int) -> list[Text]:
    """Return how many blocks are not seen, because another one lies in the same cell."""
    spans = (span for row in shown.rows for span in _spans(shown, row.blocks, cells))
    hidden = sum(start == stop for start, stop in spans)
    if not hidden:
        return []
    words = f"{counted(hidden, 'block')} not seen: too short for a column, which another block has"
    return [Text(words, style="dim")]


def _axis(shown: Gantt, cells: int) -> str:
    """Return a line with the time at its end, and as far as there is room at its start and middle."""
    times_us = [at // 1000 for at in (shown.start_ns, (shown.start_ns + shown.end_ns) // 2, shown.end_ns)]
    first, middle, last = ("0 ms" if at == 0 else millis(at) for at in times_us)
    line = [" "] * cells
    for at, text in ((cells - len(last), last), (0, first), ((cells - len(middle)) // 2, middle)):
        around = line[max(0, at - 1) : at + len(text) + 1]
        if at >= 0 and at + len(text) <= cells and not "".join(around).strip():
            line[at : at + len(text)] = text
    return "".join(line)


def _notes(whole: Gantt, part: Gantt) -> Iterable[Text]:
    """Yield which part of a trace is shown."""
    if part is not whole:
        (first, last), (_, end) = part.shown, whole.shown
        words = f"cut to steady state: {whole.noun}s {first} to {last} of 0 to {end}"
        yield Text(f"{words}; a wider terminal shows more", style="dim")


def legend_view(trace: History) -> list[Text]:
    """Return what the letters in a chart mean, if there are any."""
    legend = trace_chart(trace).letters
    named = [f"{mark} {name}" for mark, name in legend[:_LEGEND_NAMES]]
    hidden = len(legend) - len(named)
    words = ", ".join([*named, *([f"... and {hidden} more"] if hidden else [])])
    return [Text(words, style="dim")] if words else []


def written_view(trace: History, out: Path) -> Group:
    """Return what `gapless tools trace` shows."""
    file = Text(f"wrote {out}: open it at ui.perfetto.dev; `gapless show {out}` shows it here again")
    return Group(*traced_view(trace), "", file)


def traced_view(trace: History) -> list[RenderableType]:
    """Return what was traced in one line, and its chart."""
    block = (
        "one item on one device or link (->)"
        if any(row.link for row in trace_chart(trace).rows)
        else "one request on one unit"
    )
    if trace.measured:
        block += ", from copying its inputs to copying its outputs"
    text = Text(traced_words(trace), style="bold")
    text.append(f": each block is {block}; dots are idle time", style="not bold")
    return [text, gantt_view(trace), *legend_view(trace)]


def traced_words(trace: History) -> str:
    """Return what was traced, e.g. "20 rounds of 3 requests, measured"."""
    if not trace.measured:
        return f"{counted(len(trace.arrivals_us), 'request')}, simulated"
    streams, count = len(trace.streams), 1 + max(event.request for event in trace.events)
    if trace.in_rounds:
        return f"{counted(count, 'round')} of {counted(streams, 'request')}, measured"
    each = f" of each of {streams} streams" if streams > 1 else ""
    return f"{counted(count, 'request')}{each}, measured"
