"""Heat maps of layer times: how long each layer takes on each unit, and who is fastest."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from ...answers.charts import HeatCell, HeatMap, HeatRow
from ...answers.words import millis, size
from ...formulations.costs import CostTable
from ...formulations.errors import InvalidInputError
from ...formulations.network import Network
from ...formulations.plan import Plan
from .heat_map import blend, grid_svg

MAX_ROWS_SHOWN = 60
"""Rows of a map; more layers than that are folded: neighbours share a row."""

SLOWEST = 8.0
"""Times as long as on the best unit, from which on a cell is as red as it gets; colours are logarithmic."""

MAX_UNITS_SHOWN = 12

_LONGEST_NAME = 34
_CANNOT = "cannot run"
_WHOLE = "all layers"
_LEGEND = (1.0, 1.4, 2.0, 2.8, 4.0, 5.7, SLOWEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRange:
    """Consecutive layers `[start, stop)` of a map."""

    start: int
    stop: int
    name: str  # of the layer; of several, of the first and the last
    weight_bytes: int
    times_us: tuple[int | None, ...]  # their time by unit; None: the unit cannot run all of them
    chosen: int | None = None
    """Index of the unit that a plan runs them on; None: not one unit, or there is no plan."""

    @property
    def label(self) -> str:
        """Index of the layer, or of the first and the last."""
        return str(self.start) if self.stop == self.start + 1 else f"{self.start}-{self.stop - 1}"

    def ratio(self, unit: int) -> float | None:
        """Return how many times as long as on its best unit it takes; None: the unit cannot run it."""
        time = self.times_us[unit]
        best = min((t for t in self.times_us if t is not None), default=None)
        if time is None or best is None:
            return None
        return time / best


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerMap:
    """Times of layers by unit."""

    units: tuple[str, ...]  # names of the columns
    rows: tuple[LayerRange, ...]  # layers, or groups of them
    total: LayerRange  # all layers of the network together
    hidden: int = 0  # layers that were left out

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """Yield as many tables as the console needs, each with all rows and some units."""
        rows = (*self.rows, self.total) if len(self.rows) > 1 else self.rows
        left = max(len(row.label) for row in rows)
        longest = max(len(row.name) for row in rows)
        name = min(_LONGEST_NAME, longest, max(len(_WHOLE), options.max_width // 4))
        weights = max(7, *(len(_weights(row)) for row in rows)) if any(r.weight_bytes for r in rows) else 0
        width = max(len(_CANNOT), *(len(_digits(t)) + 5 for row in rows for t in row.times_us)) + 2
        units = self.units[:MAX_UNITS_SHOWN]
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
                if row is self.total:
                    line.stylize("bold")
                for unit in shown:
                    line.append_text(_cell(row, unit, width)).append(" ")
                yield line.append(f"{_weights(row):>{weights}}" if weights else "", style="dim")
        yield from _notes(self)


def layer_map(
    network: Network, costs: CostTable, *, layers: range | None = None, plan: Plan | None = None
) -> LayerMap:
    """Return the times of the layers of a network as a map for the terminal.

    `layers`: which layers, one a row. None: all; where they are too many, neighbours share a row.
    """
    count = len(network.layers)
    if layers is not None and layers.start >= count:
        raise InvalidInputError(
            f"there are no layers {layers.start} to {layers.stop - 1}: {network.name!r} has the layers 0 to "
            f"{count - 1}"
        )
    shown = range(count) if layers is None else range(layers.start, min(layers.stop, count))
    step = 1 if layers is not None else -(-count // MAX_ROWS_SHOWN)
    rows = [
        _row(network, costs, plan, start, min(start + step, shown.stop))
        for start in range(shown.start, shown.stop, step)
    ]
    return LayerMap(
        units=costs.units,
        rows=tuple(rows),
        total=_row(network, costs, plan, 0, count),
        hidden=count - len(shown),
    )


def layer_grid(found: LayerMap, *, title: str) -> HeatMap:
    """Return a map as data, coloured by how many times as long as on the best unit it takes."""
    return HeatMap(
        title=title,
        columns=found.units,
        rows=tuple(
            HeatRow(
                name=f"{row.label} {row.name}",
                cells=tuple(_drawn(row, unit, name) for unit, name in enumerate(found.units)),
            )
            for row in found.rows
        ),
        low="fastest unit of the layer",
        high=f"{SLOWEST:.0f} times as long",
        unit="ms",
    )


def layer_svg(grids: Sequence[HeatMap], notes: Sequence[str]) -> str:
    """Return maps of layer times as a picture."""
    framed = any(cell.framed for grid in grids for row in grid.rows for cell in row.cells)
    words = "milliseconds; outlined: what the plan runs where" if framed else "milliseconds"
    return grid_svg(grids, [words, *notes])


def _row(network: Network, costs: CostTable, plan: Plan | None, start: int, stop: int) -> LayerRange:
    table = costs.of(network.name).layer_us[start:stop]
    times = []
    for column in zip(*table, strict=True):
        known = [time for time in column if time is not None]
        times.append(sum(known) if len(known) == len(column) else None)
    layers = network.layers[start:stop]
    names = dict.fromkeys((layers[0].name, layers[-1].name))
    whole = len(layers) == len(network.layers) > 1
    chunks = () if plan is None else plan.chunks
    on = {chunk.unit for chunk in chunks if chunk.start < stop and chunk.stop > start}
    return LayerRange(
        start=start,
        stop=stop,
        name=_WHOLE if whole else " to ".join(names),
        weight_bytes=sum(layer.weight_bytes for layer in layers),
        times_us=tuple(times),
        chosen=costs.units.index(on.pop()) if len(on) == 1 else None,
    )


def _cell(row: LayerRange, unit: int, width: int) -> Text:
    ratio = row.ratio(unit)
    text = _CANNOT if ratio is None else f"{_digits(row.times_us[unit])} {_mark(ratio)}"
    opening, closing = "[]" if row.chosen == unit else "  "
    bold = "bold " if row.chosen == unit else ""
    style = "dim" if ratio is None else f"{bold}black on {_colour(ratio)}"
    return Text(f"{opening}{text:>{width - 2}}{closing}", style=style)


def _mark(ratio: float) -> str:
    """Return what tells the fast units of a layer from the slow ones without colours, in four columns."""
    if ratio == 1:
        return "best"
    if ratio < 9.95:
        return f"x{ratio:3.1f}"
    return f"x{ratio:<3.0f}" if ratio < 999.5 else "x1k+"


def _level(ratio: float) -> float:
    return math.log(min(ratio, SLOWEST)) / math.log(SLOWEST)


def _colour(ratio: float) -> str:
    return blend(2 * _level(ratio) - 1)


def _drawn(row: LayerRange, unit: int, name: str) -> HeatCell:
    ratio, time = row.ratio(unit), row.times_us[unit]
    if ratio is None:
        return HeatCell(text="", level=None)
    about = f"{row.label} {row.name} on {name}: {millis(time)}, {_mark(ratio).strip()}"
    framed = "all" if row.chosen == unit else ""
    return HeatCell(text=_digits(time), level=_level(ratio), about=about, framed=framed)


def _notes(found: LayerMap) -> Iterator[Text]:
    """Yield what the numbers and colours mean, and what is left out."""
    words = "milliseconds; x2.0: twice as long as on the best unit of the layer"
    if any(row.chosen is not None for row in found.rows):
        words += "; [ ]: where the plan runs it"
    yield Text(f"  {words}", style="dim")
    swatches = Text("  colours: ", style="dim")
    for ratio in _LEGEND:
        swatches.append(f" {_mark(ratio).strip()} ", style=f"not dim black on {_colour(ratio)}")
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
