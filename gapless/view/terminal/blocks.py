"""Blocks in the terminal: sentences, tables, and text Gantt charts of which unit works on what, when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ...answers.blocks import Block, Column, Row, Section, Sentence, Shown, Table, Tone, kept
from ...answers.charts import Block as Span
from ...answers.charts import Gantt, HeatMap
from ...answers.charts import Row as Line
from ...answers.traces import steady
from ...answers.words import counted, millis
from ..layout import indented, plain_table
from .heat_map import heat_view

_STYLES = {
    Tone.PLAIN: "",
    Tone.STRONG: "bold",
    Tone.GOOD: "green",
    Tone.WARN: "yellow",
    Tone.BAD: "red",
    Tone.SOFT: "dim",
}


_BLANK = Sentence("")
"""A blank line, where there is none already."""


def blocks_view(blocks: Iterable[Block], *, details: bool = True) -> Group:
    """Return blocks for the terminal; `details`: with folded sections and all columns, or without."""
    return Group(*_parts(blocks, Shown.DETAILS if details else Shown.BRIEF))


def _parts(blocks: Iterable[Block], place: Shown) -> Iterator[RenderableType]:
    """Yield blocks; a blank line stands before and after tables, except before soft sentences about them."""
    before: Block | None = None
    for block in kept(blocks, place):
        about = isinstance(block, Sentence) and block.tone is Tone.SOFT
        both = isinstance(before, Sentence) and isinstance(block, Sentence)
        if (block == _BLANK or (before is not None and not both and not about)) and before != _BLANK:
            yield Text()
        before = block
        if block == _BLANK:
            continue
        match block:
            case Sentence():
                yield sentence_view(block)
            case Table():
                yield from table_view(block, place)
            case Gantt():
                yield GanttView(block)
            case HeatMap():
                yield from heat_view(block)
            case Section():
                if block.title:
                    yield Text(block.title, style="bold")
                for part in block.blocks:
                    yield from _inside(part, place)


def _inside(block: Block, place: Shown) -> Iterator[RenderableType]:
    """Yield a block of a section: nothing stands between its title and its table; titles go in."""
    if isinstance(block, Table):
        yield from table_view(block, place)
        return
    if isinstance(block, Section) and kept([block], place) and block.title:
        yield indented(Text(block.title, style="bold"))
        block = replace(block, title="")
    yield from _parts([block], place)


def sentence_view(one: Sentence) -> Text:
    """Return a sentence."""
    style = _STYLES[one.tone]
    if not one.lead:
        return Text(one.text, style=f"bold {style}" if one.tone is Tone.BAD else style)
    return Text.assemble((one.lead, f"bold {style}".strip()), one.text)


def table_view(given: Table, place: Shown = Shown.DETAILS) -> Iterator[RenderableType]:
    """Yield a table, and what its titles mean."""
    shown, hidden = given.of(place).first(given.most)
    found = plain_table(*(column.title for column in shown.columns))
    for drawn, column in zip(found.columns, shown.columns, strict=True):
        drawn.justify = "right" if column.unit.number else "left"
    for row in shown.rows:
        found.add_row(*_cells(row, shown.columns, place), style=_STYLES[row.tone])
    yield indented(found)
    if hidden:
        yield Text(f"  ... and {hidden} more (--json shows all)")
    if shown.legend:
        yield Text(shown.legend, style="dim")


def _cells(row: Row, columns: tuple[Column[object], ...], place: Shown) -> Iterator[Text]:
    for cell, column in zip(row.cells, columns, strict=True):
        yield Text(column.text(cell, note=place is not Shown.BRIEF), style=_STYLES[cell.tone])


_COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "red")
_LABEL_WIDTH = 16
_LEAST_WIDTH = 10
_BLOCK_WIDTH = 3
"""Cells that a block should have; a chart of more blocks is cut to steady state."""

_LEGEND_NAMES = 12


class GanttView:
    """A Gantt chart as wide as the console; what does not fit is cut to steady state.

    Each block stands for one chunk of one request and begins with its name: the last digit of the
    request's number, a letter for each request of a workload, or a letter for each stream and the digit.
    """

    def __init__(self, chart: Gantt) -> None:
        self._whole = chart

    def __rich_console__(self, console: Console, options: object) -> Iterable[RenderableType]:
        whole = self._whole
        if whole.title:
            yield Text.assemble((whole.title, "bold"), f": {whole.note}")
        label, cells = _columns(whole, console.width)
        most = max((len(row.blocks) for row in whole.rows), default=0)
        part = steady(whole, cells * len(whole.outputs_ns) // max(1, _BLOCK_WIDTH * most))
        yield from _lines(part, label, cells)
        yield from _covered(part, cells)
        yield from _notes(whole, part)
        yield from _letters(whole)


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


def _row(shown: Gantt, given: Line, cells: int) -> Text:
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


def _spans(shown: Gantt, blocks: tuple[Span, ...], cells: int) -> list[tuple[int, int]]:
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


def _letters(whole: Gantt) -> Iterable[Text]:
    """Yield what the letters in a chart mean, if there are any."""
    named = [f"{mark} {name}" for mark, name in whole.letters[:_LEGEND_NAMES]]
    hidden = len(whole.letters) - len(named)
    if named:
        yield Text(", ".join([*named, *([f"... and {hidden} more"] if hidden else [])]), style="dim")
