"""Heat maps in the terminal and as an SVG file: green is fast, yellow in between, red slow.

One drawing for every grid of cells; ratios of times beside load and alone are red above 1 and green below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap

from rich.console import RenderableType
from rich.text import Text

from ...answers.charts import HeatCell, HeatMap
from ..layout import indented, plain_table

_GREEN, _YELLOW, _RED = (90, 180, 110), (250, 224, 130), (232, 100, 90)
"""Colours of fast, middling and slow; black is readable on all of them."""

_CELL, _ROW, _GAP, _MARGIN = 84, 34, 3, 16
_DENSE_ROW, _DENSE_FROM = 20, 25
"""Height of a row where there are so many of them."""

_SWATCHES = 9
"""Colours of the legend."""

_CHARACTER = 8.2
"""Widths and heights in pixels; a character of 13 pixels is about that wide."""

_LONGEST_LABEL, _LONGEST_NOTE = 28, 100
"""Characters."""

_MOST_COLUMNS, _MOST_NAME = 12, 34
"""Columns of a map in the terminal, and characters of a name there."""


def blend(position: float) -> str:
    """Return a colour as #rrggbb: green at -1, yellow at 0, red at 1."""
    distance = max(-1.0, min(1.0, position))
    end = _RED if distance > 0 else _GREEN
    mixed = (round(a + abs(distance) * (b - a)) for a, b in zip(_YELLOW, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def heat_view(given: HeatMap) -> Iterator[RenderableType]:
    """Yield a heat map for the terminal, and what is said of it; cells without a level have no colour."""
    names = [_cut(name, _MOST_NAME) for name in given.columns[:_MOST_COLUMNS]]
    columns = [[_text_of(row.cells[place]) for row in given.rows] for place in range(len(names))]
    widths = [max(map(len, (name, *texts))) for name, texts in zip(names, columns, strict=True)]
    heads = [f"{name:>{width}}" for name, width in zip(names, widths, strict=True)]
    table = plain_table(given.corner, *heads, *([given.notes] if given.notes else []))
    for column in table.columns:
        column.no_wrap = True
    if given.notes:
        table.columns[-1].justify = "right"
    for row in given.rows:
        cells = [_cell(cell, width) for cell, width in zip(row.cells, widths, strict=False)]
        notes = [Text(row.note or "-", style="dim")] if given.notes else []
        table.add_row(Text(_cut(row.name, _MOST_NAME), style="bold"), *cells, *notes)
    yield indented(table)
    left = {f"{given.corner}s": given.hidden, given.across: len(given.columns) - len(names)}
    more = [f"{count} more {what}" for what, count in left.items() if count > 0]
    more = [f"... and {' and '.join(more)} (--json shows all)"] if more else []
    yield from (Text(f"  {line}", style="dim") for line in (*given.words, *more))


def _text_of(cell: HeatCell) -> str:
    opening, closing = "[]" if cell.framed else "  "
    return f"{opening}{' '.join(filter(None, (cell.text or '-', cell.mark)))}{closing}"


def _cell(cell: HeatCell, width: int) -> Text:
    text = f"{_text_of(cell):>{width}}"
    if cell.level is None:
        return Text(text, style="" if cell.text else "dim")
    return Text(text, style=f"{'bold ' * bool(cell.framed)}black on {blend(2 * cell.level - 1)}")


def layer_svg(grids: Sequence[HeatMap], notes: Sequence[str]) -> str:
    """Return maps of layer times as a picture."""
    framed = any(cell.framed for grid in grids for row in grid.rows for cell in row.cells)
    words = "milliseconds; outlined: what the plan runs where" if framed else "milliseconds"
    return grid_svg(grids, [words, *notes])


def grid_svg(grids: Sequence[HeatMap], notes: Sequence[str]) -> str:
    """Return grids, one below the other, as a picture that is readable on light and dark ground."""
    top, widest, parts = _MARGIN, 0, []
    for grid in grids:
        drawn, width, height = _drawn(grid, top)
        parts += drawn
        top, widest = top + height, max(widest, width)
    parts += _scale(grids[0], top)
    top += 44
    for line in (line for note in notes for line in wrap(note, _LONGEST_NOTE)):
        parts.append(_text(_MARGIN, top, line, kind="note"))
        top += 17
    widest = max(widest, 2 * _MARGIN + round(6.3 * _LONGEST_NOTE))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest} {top}" width="{widest}" '
            f'height="{top}" role="img" font-family="system-ui, sans-serif" font-size="13">',
            f"<title>{escape(grids[0].title)}</title>",
            _STYLE,
            '<rect class="page" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        )
    )


_STYLE = (
    "<style>.page { fill: #ffffff } text { fill: #1c1c1e } .title { font-size: 15px; font-weight: 600 } "
    ".note { font-size: 11px; opacity: 0.75 } .cell { font-weight: 600; fill: #16161a } "
    ".framed { stroke: #1c1c1e; stroke-width: 2.5 } "
    "@media (prefers-color-scheme: dark) "
    "{ .page { fill: #17181c } text { fill: #ececf0 } .cell { fill: #16161a } .framed { stroke: #fff } }"
    "</style>"
)


def _drawn(grid: HeatMap, top: int) -> tuple[list[str], int, int]:
    """Return the elements of one grid, its width and its height."""
    rows, columns = _labels([row.name for row in grid.rows]), _labels(grid.columns)
    left = _MARGIN + 12 + round(_CHARACTER * max(map(len, rows)))
    cell = max(_CELL, 16 + round(_CHARACTER * max(map(len, columns))), _widest(grid))
    height = _ROW if len(rows) < _DENSE_FROM else _DENSE_ROW
    parts = [_text(_MARGIN, top + 14, grid.title, kind="title")]
    top += 30
    parts += [
        _text(left + column * (cell + _GAP) + cell / 2, top + 12, label, anchor="middle")
        for column, label in enumerate(columns)
    ]
    for row, (label, given) in enumerate(zip(rows, grid.rows, strict=True)):
        y = top + 20 + row * (height + _GAP)
        line = y + height // 2 + 5
        parts.append(_text(left - 10, line, label, anchor="end"))
        for column, entry in enumerate(given.cells):
            x = left + column * (cell + _GAP)
            if entry.level is None:
                parts.append(_text(x + cell / 2, line, "-", anchor="middle"))
            else:
                mark = ' class="framed"' if entry.framed else ""
                colour = blend(2 * entry.level - 1)
                box = f'x="{x}" y="{y}" width="{cell}" height="{height}" rx="4" fill="{colour}"'
                parts.append(f"<rect {box}{mark}><title>{escape(entry.about)}</title></rect>")
                parts.append(_text(x + cell / 2, line, entry.text, kind="cell", anchor="middle"))
    width = max(left + len(columns) * (cell + _GAP), round(9 * len(grid.title)) + _MARGIN) + _MARGIN
    return parts, width, 50 + len(rows) * (height + _GAP) + 24


def _widest(grid: HeatMap) -> int:
    return 16 + round(
        _CHARACTER * max((len(cell.text) for row in grid.rows for cell in row.cells), default=0)
    )


def _scale(grid: HeatMap, top: int) -> list[str]:
    """Return the legend."""
    first = _MARGIN + 20 + round(6.6 * len(grid.low))
    colours = (blend(2 * index / (_SWATCHES - 1) - 1) for index in range(_SWATCHES))
    swatches = [
        f'<rect x="{first + index * 18}" y="{top}" width="18" height="12" fill="{colour}"/>'
        for index, colour in enumerate(colours)
    ]
    end = first + _SWATCHES * 18
    return [*swatches, _text(_MARGIN, top + 11, grid.low), _text(end + 8, top + 11, grid.high)]


def _labels(names: Sequence[str]) -> list[str]:
    return [_cut(name, _LONGEST_LABEL, "…") for name in names]


def _cut(name: str, most: int, end: str = "~") -> str:
    return name if len(name) <= most else f"{name[: most - 1]}{end}"


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{mark}>{escape(text)}</text>'
