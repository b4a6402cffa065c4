"""Times of layers as a heat map: layers against units, with the chunks of a plan outlined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from ..formulations.network import Network
from ..formulations.plan import Chunk
from .charts import HeatCell, HeatMap, HeatRow


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
