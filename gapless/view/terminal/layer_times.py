"""Heat maps of layer times: how long each layer takes on each unit, and who is fastest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from ...answers.charts import HeatMap
from ...answers.layers import MAX_ROWS_SHOWN, SLOWEST, WHOLE, LayerMap, LayerRange, level, mark
from ...answers.words import millis, size
from .heat_map import blend, grid_svg

MAX_UNITS_SHOWN = 12

_LONGEST_NAME = 34
_CANNOT = "cannot run"
_LEGEND = (1.0, 1.4, 2.0, 2.8, 4.0, 5.7, SLOWEST)


@dataclass(frozen=True, slots=True)
class LayersView:
    """A map as wide as the console."""

    shown: LayerMap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield as many tables as the console needs, each with all rows and some units."""
        rows = (*self.shown.rows, self.shown.total) if len(self.shown.rows) > 1 else self.shown.rows
        left = max(len(row.label) for row in rows)
        longest = max(len(row.name) for row in rows)
        name = min(_LONGEST_NAME, longest, max(len(WHOLE), options.max_width // 4))
        weights = max(7, *(len(_weights(row)) for row in rows)) if any(r.weight_bytes for r in rows) else 0
        width = max(len(_CANNOT), *(len(_digits(t)) + 5 for row in rows for t in row.times_us)) + 2
        units = self.shown.units[:MAX_UNITS_SHOWN]
        room = options.max_width - left - name - weights - 7
        count = max(1, room // (width + 1))
        for first in range(0, len(units), count):
            shown = range(first, min(first + count, len(units)))
            names = " ".join(f"{_short(units[unit], width):^{width}}" for unit in shown)
            last = f"{'weights':>{weights}}" if weights else ""
            head = f"  {'#':>{left}}  {'layer':<{name}} {names} {last}".rstrip()
            yield from ("",) if first else ()
            yield Text(head, style="bold")
            for row in rows:
                line = Text(f"  {row.label:>{left}}  {_short(row.name, name):<{name}} ")
                if row is self.shown.total:
                    line.stylize("bold")
                for unit in shown:
                    line.append_text(_cell(row, unit, width)).append(" ")
                yield line.append(f"{_weights(row):>{weights}}" if weights else "", style="dim")
        yield from _notes(self.shown)


def layer_svg(grids: Sequence[HeatMap], notes: Sequence[str]) -> str:
    """Return maps of layer times as a picture."""
    framed = any(cell.framed for grid in grids for row in grid.rows for cell in row.cells)
    words = "milliseconds; outlined: what the plan runs where" if framed else "milliseconds"
    return grid_svg(grids, [words, *notes])


def _cell(row: LayerRange, unit: int, width: int) -> Text:
    ratio = row.ratio(unit)
    text = _CANNOT if ratio is None else f"{_digits(row.times_us[unit])} {mark(ratio)}"
    opening, closing = "[]" if row.chosen == unit else "  "
    bold = "bold " if row.chosen == unit else ""
    style = "dim" if ratio is None else f"{bold}black on {_colour(ratio)}"
    return Text(f"{opening}{text:>{width - 2}}{closing}", style=style)


def _colour(ratio: float) -> str:
    return blend(2 * level(ratio) - 1)


def _notes(found: LayerMap) -> Iterator[Text]:
    """Yield what the numbers and colours mean, and what is left out."""
    words = "milliseconds; x2.0: twice as long as on the best unit of the layer"
    if any(row.chosen is not None for row in found.rows):
        words += "; [ ]: where the plan runs it"
    yield Text(f"  {words}", style="dim")
    swatches = Text("  colours: ", style="dim")
    for ratio in _LEGEND:
        swatches.append(f" {mark(ratio).strip()} ", style=f"not dim black on {_colour(ratio)}")
    yield swatches
    folded = max(row.stop - row.start for row in found.rows)
    more = [
        f"{count} more {what}"
        for count, what in ((found.hidden, "layers"), (len(found.units) - MAX_UNITS_SHOWN, "units"))
        if count > 0
    ]
    if folded > 1:
        yield Text(f"  {folded} layers a row; --layers 0-{MAX_ROWS_SHOWN - 1} shows single ones", style="dim")
    if more:
        yield Text(f"  ... and {' and '.join(more)} (--json shows all)", style="dim")


def _digits(time_us: int | None) -> str:
    return millis(time_us).removesuffix(" ms")


def _short(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}~"


def _weights(row: LayerRange) -> str:
    return size(row.weight_bytes) if row.weight_bytes else "-"
