"""Blocks as text: Markdown and comma-separated values for files, HTML for notebooks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..answers.blocks import Block, Cell, Column, Sentence, Shown, Table, Unit
from ..formulations.printing import html_table, printable

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""How a text begins that a spreadsheet takes for a formula."""

_SCALES: dict[Unit, tuple[str, float, int]] = {
    Unit.MICROSECONDS: (" ms", 1000, 3),
    Unit.MEASURED: (" ms", 1000, 3),
    Unit.NANOSECONDS: (" ms", 1e6, 6),
    Unit.NANOJOULES: (" mJ", 1e6, 6),
    Unit.BYTES: (" bytes", 1, 0),
    Unit.PERMILLE: (" %", 10, 1),
    Unit.COUNT: ("", 1, 0),
    Unit.SECONDS: (" s", 1, 3),
    Unit.SHARE: (" %", 0.01, 2),
    Unit.CHANGE: (" %", 0.01, 2),
    Unit.FACTOR: ("", 1, 3),
}
"""What columns of numbers say behind their names, what the numbers are divided by, and their places."""


def markdown_text(table: Table) -> str:
    """Return a table as Markdown, aligned so that it reads as plain text too; its cells read as elsewhere."""
    shown = table.of(Shown.FILES)
    cells = [[column.name for column in shown.columns]]
    cells += [[_words(*pair) for pair in zip(row.cells, shown.columns, strict=True)] for row in shown.rows]
    escaped = [[printable(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in cells]
    widths = [max(map(len, column)) for column in zip(*escaped, strict=True)]
    rule = ["-" * width for width in widths]
    lines = (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (escaped[0], rule, *escaped[1:])
    )
    return "\n".join(lines) + "\n"


def _words(cell: Cell, column: Column[Any]) -> str:
    return "" if cell.value is None else column.text(cell, note=True)


def table_csv(table: Table) -> str:
    """Return a table as comma-separated values: plain numbers, with their unit behind the name of a column.

    An interval takes two columns. An empty cell is not known, or has no meaning.
    """
    shown = table.of(Shown.FILES)
    columns = list(enumerate(shown.columns))
    pairs = {i for i, _ in columns if any(isinstance(row.cells[i].value, tuple) for row in shown.rows)}

    def header() -> Iterator[str]:
        for index, column in columns:
            unit = _SCALES.get(column.unit, ("",))[0]
            ends = (" from", " to") if index in pairs else ("",)
            yield from (f"{column.name}{end}{unit}" for end in ends)

    def line(cells: Sequence[Cell]) -> Iterator[str | float]:
        for index, column in columns:
            value = cells[index].value
            ends = value if isinstance(value, tuple) else (value,) * (2 if index in pairs else 1)
            yield from (_plain(Cell(end, note=cells[index].note), column) for end in ends)

    return lines_csv([tuple(header()), *(tuple(line(row.cells)) for row in shown.rows)])


def _plain(cell: Cell, column: Column[Any]) -> str | float:
    """Return a number in the unit of its column; other values as they read elsewhere."""
    if cell.value is None or isinstance(cell.value, str | tuple) or column.unit not in _SCALES:
        return _words(cell, column)
    _, divisor, places = _SCALES[column.unit]
    return round(cell.value / divisor, places) if places else round(cell.value)


def lines_csv(lines: Iterable[Sequence[object]]) -> str:
    """Return lines of values as comma-separated values.

    Names come from files of strangers: control characters are written out, and a text that a spreadsheet
    would take for a formula gets an apostrophe in front.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_escaped(value) for value in line] for line in lines)
    return out.getvalue()


def _escaped(value: object) -> object:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULAS) else text


def notebook_html(caption: str, blocks: Iterable[Block]) -> str:
    """Return what notebooks show of blocks in brief, escaped: tables, and below them their sentences."""
    found = [block for block in blocks if not isinstance(block, Sentence) or block.shown & Shown.BRIEF]
    tables = [one.of(Shown.BRIEF) for one in found if isinstance(one, Table) and one.rows]
    notes = [f"{one.lead}{one.text}" for one in found if isinstance(one, Sentence)]

    def html(shown: Table, caption: str, notes: Sequence[str]) -> str:
        rows = [[c.text(cell) for c, cell in zip(shown.columns, r.cells, strict=True)] for r in shown.rows]
        return html_table(caption, [column.title for column in shown.columns], rows, notes)

    last = len(tables) - 1
    parts = (html(one, "" if at else caption, () if at < last else notes) for at, one in enumerate(tables))
    return "".join(parts) or html_table(caption, (), (), notes)
