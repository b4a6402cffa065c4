"""Times of layers as a heat map: layers against units, with the chunks of a plan outlined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..formulations.costs import CostTable
from ..formulations.errors import InvalidInputError
from ..formulations.network import Network
from ..formulations.plan import Chunk, Plan
from .charts import HeatCell, HeatMap, HeatRow
from .words import layers_words, millis

MAX_ROWS_SHOWN = 60
"""Rows of a map for the terminal; more layers than that are folded: neighbours share a row."""

SLOWEST = 8.0
"""Times as long as on the best unit, from which on a cell is as red as it gets; colours are logarithmic."""

WHOLE = "all layers"


def layer_chart(
    network: Network,
    units: Sequence[str],
    layer_us: Sequence[Sequence[int | None]],
    streams: Sequence[Iterable[Chunk]],
    most: int | None = None,
) -> HeatMap:
    """Return the times of a network.

    `layer_us`: by layer and unit. `streams`: the chunks of each stream that passes the network. `most`: rows
    to keep; None: all.
    """
    known = [time for row in layer_us for time in row if time is not None] or [1000]
    placed = [chunk for stream in streams for chunk in stream]
    chosen = Counter((layer, chunk.unit) for chunk in placed for layer in range(chunk.start, chunk.stop))
    starts = {(chunk.start, chunk.unit) for chunk in placed}
    stops = {(chunk.stop - 1, chunk.unit) for chunk in placed}
    rows = tuple(
        HeatRow(
            name=layer.name,
            note=", ".join(layer.op_types),
            cells=tuple(
                HeatCell(
                    text="" if time is None else _ms(time),
                    # By its square root, so that short layers differ, too.
                    level=None if time is None else math.sqrt(time / max(known)),
                    value=None if time is None else time / 1000,
                    framed=_how_many(chosen[number, unit], len(streams)),
                    edges="t" * ((number, unit) in starts) + "b" * ((number, unit) in stops),
                )
                for unit, time in zip(units, times, strict=True)
            ),
        )
        for number, (layer, times) in enumerate(zip(network.layers[:most], layer_us[:most], strict=True))
    )
    return HeatMap(
        title=network.name,
        columns=tuple(units),
        rows=rows,
        low=f"{_ms(min(known))} ms",
        high=f"{_ms(max(known))} ms",
        unit="ms",
        totals=tuple(map(_total, zip(*layer_us, strict=True))),
        hidden=len(network.layers) - len(rows),
        frames=tuple(
            (units.index(unit), start, min(stop, len(rows)) - 1)
            for unit, start, stop in sorted({(chunk.unit, chunk.start, chunk.stop) for chunk in placed})
            if start < len(rows)
        ),
    )


def _how_many(found: int, count: int) -> str:
    return "" if not found else "all" if found == count else "some"


def _total(column: Sequence[int | None]) -> str:
    missing = sum(time is None for time in column)
    return f"{missing} cannot run" if missing else _ms(sum(time or 0 for time in column))


def _ms(time_us: int) -> str:
    return f"{time_us / 1000:,.3f}"


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
        return layers_words(self.start, self.stop)

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
        name=WHOLE if whole else " to ".join(names),
        weight_bytes=sum(layer.weight_bytes for layer in layers),
        times_us=tuple(times),
        chosen=costs.units.index(on.pop()) if len(on) == 1 else None,
    )


def mark(ratio: float) -> str:
    """Return what tells the fast units of a layer from the slow ones without colours, in four columns."""
    if ratio == 1:
        return "best"
    if ratio < 9.95:
        return f"x{ratio:3.1f}"
    return f"x{ratio:<3.0f}" if ratio < 999.5 else "x1k+"


def level(ratio: float) -> float:
    """Return how red a cell is, from 0 to 1."""
    return math.log(min(ratio, SLOWEST)) / math.log(SLOWEST)


def _drawn(row: LayerRange, unit: int, name: str) -> HeatCell:
    ratio, time = row.ratio(unit), row.times_us[unit]
    if ratio is None:
        return HeatCell(text="", level=None)
    about = f"{row.label} {row.name} on {name}: {millis(time)}, {mark(ratio).strip()}"
    framed = "all" if row.chosen == unit else ""
    return HeatCell(text=_ms(time or 0), level=level(ratio), about=about, framed=framed)
