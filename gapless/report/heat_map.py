"""Heat maps of ratios, in the terminal and as an SVG file: red above 1, yellow near 1, green below."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from xml.sax.saxutils import escape

from rich.table import Table
from rich.text import Text

from ..profiler.interference.ratios import HeatMap
from .layout import plain_table

NEAR = 0.05
"""Distance from 1 up to which a ratio counts as neither slower nor faster."""

_GREEN, _YELLOW, _RED = (90, 180, 110), (250, 224, 130), (232, 100, 90)
"""Colours at half, once and double the time alone; black is readable on all of them."""

_CELL, _ROW, _GAP, _MARGIN = 84, 34, 3, 16
_CHARACTER = 8.2
"""Widths and heights in pixels; a character of 13 pixels is about that wide."""

_LONGEST_LABEL, _LONGEST_NOTE = 28, 100
"""Characters."""


def sign(ratio: float) -> str:
    """Return what tells slower (+) from faster (-) without colours."""
    return "+" if ratio > 1 + NEAR else "-" if ratio < 1 - NEAR else "="


def shade(ratio: float) -> str:
    """Return the colour of a ratio as #rrggbb: twice as slow or fast is as red or green as it gets."""
    distance = max(-1.0, min(1.0, math.log2(ratio)))
    end = _RED if distance > 0 else _GREEN
    mixed = (round(a + abs(distance) * (b - a)) for a, b in zip(_YELLOW, end, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def heat_table(heat_map: HeatMap, *, extra: Mapping[str, Mapping[str, float]]) -> Table:
    """Return a heat map for the terminal.

    Parameters
    ----------
    heat_map
        What to show.
    extra
        Further columns without colours: name, then ratio by row.
    """
    names = (*heat_map.columns, *extra)
    table = plain_table("unit", *names, numbers=names)
    for row, cells in zip(heat_map.rows, heat_map.cells, strict=True):
        printed = [column.get(row) for column in extra.values()]
        table.add_row(
            Text(row, style="bold"),
            *map(_cell, cells),
            *("-" if ratio is None else f"{ratio:.2f}" for ratio in printed),
        )
    return table


def _cell(ratio: float | None) -> Text:
    if ratio is None:
        return Text("-", style="dim")
    return Text(f" {ratio:.2f} {sign(ratio)} ", style=f"black on {shade(ratio)}")


def heat_map_svg(heat_maps: Sequence[HeatMap], notes: Sequence[str]) -> str:
    """Return heat maps, one below the other, as a picture that is readable on light and dark ground.

    Parameters
    ----------
    heat_maps
        At least one.
    notes
        Lines that stand below them.
    """
    top, widest, parts = _MARGIN, 0, []
    for heat_map in heat_maps:
        drawn, width, height = _drawn(heat_map, top)
        parts += drawn
        top, widest = top + height, max(widest, width)
    parts += _scale(top)
    top += 44
    for line in (line for note in notes for line in wrap(note, _LONGEST_NOTE)):
        parts.append(_text(_MARGIN, top, line, kind="note"))
        top += 17
    widest = max(widest, 2 * _MARGIN + round(6.3 * _LONGEST_NOTE))
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {widest} {top}" width="{widest}" '
            f'height="{top}" role="img" font-family="system-ui, sans-serif" font-size="13">',
            f"<title>{escape(heat_maps[0].title)}</title>",
            _STYLE,
            '<rect class="page" width="100%" height="100%"/>',
            *parts,
            "</svg>\n",
        )
    )


_STYLE = (
    "<style>.page { fill: #ffffff } text { fill: #1c1c1e } .title { font-size: 15px; font-weight: 600 } "
    ".note { font-size: 11px; opacity: 0.75 } .cell { font-weight: 600; fill: #16161a } "
    "@media (prefers-color-scheme: dark) "
    "{ .page { fill: #17181c } text { fill: #ececf0 } .cell { fill: #16161a } }</style>"
)


def _drawn(heat_map: HeatMap, top: int) -> tuple[list[str], int, int]:
    """Return the elements of one heat map, its width and its height."""
    rows, columns = map(_labels, (heat_map.rows, heat_map.columns))
    left = _MARGIN + 12 + round(_CHARACTER * max(map(len, rows)))
    cell = max(_CELL, 16 + round(_CHARACTER * max(map(len, columns))))
    parts = [_text(_MARGIN, top + 14, heat_map.title, kind="title")]
    top += 30
    parts += [
        _text(left + column * (cell + _GAP) + cell / 2, top + 12, label, anchor="middle")
        for column, label in enumerate(columns)
    ]
    for row, (label, cells) in enumerate(zip(rows, heat_map.cells, strict=True)):
        y = top + 20 + row * (_ROW + _GAP)
        parts.append(_text(left - 10, y + 22, label, anchor="end"))
        for column, ratio in enumerate(cells):
            x = left + column * (cell + _GAP)
            if ratio is None:
                parts.append(_text(x + cell / 2, y + 22, "-", anchor="middle"))
            else:
                where = f"{heat_map.rows[row]}, {heat_map.columns[column]}: {ratio:.3f}"
                parts.append(
                    f'<rect x="{x}" y="{y}" width="{cell}" height="{_ROW}" rx="4" fill="{shade(ratio)}">'
                    f"<title>{escape(where)}</title></rect>"
                )
                parts.append(_text(x + cell / 2, y + 22, f"{ratio:.2f}", kind="cell", anchor="middle"))
    width = max(left + len(columns) * (cell + _GAP), round(9 * len(heat_map.title)) + _MARGIN) + _MARGIN
    return parts, width, 50 + len(rows) * (_ROW + _GAP) + 24


def _scale(top: int) -> list[str]:
    """Return the legend: from half to double the time alone."""
    ratios = (0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.35, 1.7, 2.0)
    swatches = [
        f'<rect x="{_MARGIN + 150 + index * 18}" y="{top}" width="18" height="12" fill="{shade(ratio)}"/>'
        for index, ratio in enumerate(ratios)
    ]
    end = _MARGIN + 150 + len(ratios) * 18
    return [
        *swatches,
        _text(_MARGIN, top + 11, "half the time alone"),
        _text(end + 8, top + 11, "double"),
    ]


def _labels(names: Sequence[str]) -> list[str]:
    return [name if len(name) <= _LONGEST_LABEL else f"{name[: _LONGEST_LABEL - 1]}…" for name in names]


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{mark}>{escape(text)}</text>'
