"""Times of layers as a heat map: layers against units, with the chunks of a plan outlined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from ..formulations.costs import CostTable
from ..formulations.errors import InvalidInputError
from ..formulations.network import Network
from ..formulations.plan import Chunk, Plan
from .charts import HeatCell, HeatMap, HeatRow
from .words import layers_words, millis, size

MAX_ROWS_SHOWN = 60
"""Rows of a map for the terminal; more layers than that are folded: neighbours share a row."""

SLOWEST = 8.0
"""Times as long as on the best unit, from which on a cell is as red as it gets; colours are logarithmic."""

WHOLE, CANNOT = "all layers", "cannot run"


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


def layer_map(
    network: Network,
    costs: CostTable,
    *,
    layers: range | None = None,
    plan: Plan | None = None,
    title: str = "",
) -> HeatMap:
    """Return the times of layers, coloured by how many times as long as on the best unit they take.

    `layers`: which layers, one a row. None: all; where they are too many, neighbours share a row. The last
    row is about all layers of the network.
    """
    count = len(network.layers)
    if layers is not None and layers.start >= count:
        raise InvalidInputError(
            f"there are no layers {layers.start} to {layers.stop - 1}: {network.name!r} has the layers 0 to "
            f"{count - 1}"
        )
    shown = range(count) if layers is None else range(layers.start, min(layers.stop, count))
    step = 1 if layers is not None else -(-count // MAX_ROWS_SHOWN)
    parts = [(start, min(start + step, shown.stop)) for start in range(shown.start, shown.stop, step)]
    parts += [(0, count)] if len(parts) > 1 else []
    rows = tuple(_row(network, costs, plan, *part) for part in parts)
    words = ["milliseconds; x2.0: twice as long as on the best unit of the layer"]
    words[0] += "; [ ]: where the plan runs it" if plan is not None else ""
    if step > 1:
        words.append(f"{step} layers a row; --layers 0-{MAX_ROWS_SHOWN - 1} shows single ones")
    return HeatMap(
        title=title or network.name,
        corner="layer",
        across="units",
        columns=costs.units,
        rows=rows,
        low="fastest unit of the layer",
        high=f"{SLOWEST:.0f} times as long",
        unit="ms",
        hidden=count - len(shown),
        notes="weights" if any(row.note for row in rows) else "",
        words=tuple(words),
    )


def _row(network: Network, costs: CostTable, plan: Plan | None, start: int, stop: int) -> HeatRow:
    """Return layers `[start, stop)` of a map."""
    table = costs.of(network.name).layer_us[start:stop]
    times_us = [None if None in column else sum(filter(None, column)) for column in zip(*table, strict=True)]
    best = min((time for time in times_us if time is not None), default=None)
    layers = network.layers[start:stop]
    ends = dict.fromkeys((layers[0].name, layers[-1].name))
    name = WHOLE if len(layers) == len(network.layers) > 1 else " to ".join(ends)
    chunks = () if plan is None else plan.chunks
    on = {chunk.unit for chunk in chunks if chunk.start < stop and chunk.stop > start}
    label, weight = layers_words(start, stop), sum(layer.weight_bytes for layer in layers)

    def cell(unit: str, time: int | None) -> HeatCell:
        if time is None or best is None:
            return HeatCell(text=CANNOT, level=None)
        ratio = time / best if best else float(time > 0) or 1.0
        about = f"{label} {name} on {unit}: {millis(time)}, {mark(ratio).strip()}"
        framed = "all" if on == {unit} else ""
        return HeatCell(text=_ms(time), level=level(ratio), about=about, framed=framed, mark=mark(ratio))

    return HeatRow(
        name=f"{label} {name}",
        cells=tuple(map(cell, costs.units, times_us)),
        note=size(weight) if weight else "",
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
