"""Heat maps in the terminal and as an SVG file: green is fast, yellow in between, red slow.

One drawing for every grid of cells; ratios of times beside load and alone are red above 1 and green below.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from textwrap import wrap

from rich.table import Table
from rich.text import Text

from ...answers.charts import HeatCell, HeatMap
from ..layout import plain_table

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


def blend(position: float) -> str:
    """Return a colour as #rrggbb: green at -1, yellow at 0, red at 1."""
    distance = max(-1.0, min(1.0, position))
    end = _RED if distance > 0 else _GREEN
    mixed = (round(a + abs(distance) * (b - a)) for a, b in zip(_YELLOW, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def heat_view(given: HeatMap) -> Table:
    """Return a heat map for the terminal; cells without a level have no colour."""
    table = plain_table("unit", *given.columns, numbers=given.columns)
    for row in given.rows:
        table.add_row(Text(row.name, style="bold"), *map(_cell, row.cells))
    return table


def _cell(cell: HeatCell) -> Text:
    if cell.level is None:
        return Text(cell.text or "-", style="" if cell.text else "dim")
    return Text(f" {cell.text} {cell.mark} ", style=f"black on {blend(2 * cell.level - 1)}")


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
    return [name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…" for name in names]


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{mark}>{escape(text)}</text>'
