"""Layer times as a heat map: layers against units, with the chunks of the plan outlined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ...executor.simulation import charged_for
from ...formulations.network import Network
from .subject import Subject

MOST_ROWS = 400
"""Rows of all networks of one report together."""

_LEAST_ROWS = 40

SHADES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """A layer on a unit."""

    text: str  # its time; empty where it cannot run
    shade: int | None  # 0 (short) to 9 (long); None: cannot run
    chosen: str  # "": no request runs it here; "all" or "some" do
    edges: str  # where a chunk begins ("t") or ends ("b"), for its outline


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatRow:
    """A layer: its number, name, operators, and a cell for each unit."""

    number: int
    name: str
    operators: str
    cells: tuple[HeatCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerHeatMap:
    """The layers of one network."""

    network: str
    units: tuple[str, ...]  # names of the columns
    rows: tuple[HeatRow, ...]
    totals: tuple[str, ...]  # the whole network on each unit, or why not
    hidden: int  # layers that are left out
    scale: tuple[str, str]  # shortest and longest time, in words


def heat_maps(subject: Subject, most: int = MOST_ROWS) -> tuple[LayerHeatMap, ...]:
    """Return the times of all networks that a deployment runs."""
    used = set(subject.deployment.networks)
    networks = [network for network in subject.problem.networks if network.name in used]
    rows = max(_LEAST_ROWS, most // max(1, len(networks)))
    return tuple(_heat_map(subject, network, rows) for network in networks)


def _heat_map(subject: Subject, network: Network, most: int) -> LayerHeatMap:
    units = subject.problem.platform.unit_names
    times = charged_for(subject.problem, subject.deployment).costs.of(network.name).layer_us
    known = [time for row in times for time in row if time is not None]
    low, high = min(known), max(known)
    chosen, starts, stops, count = _chosen(subject, network.name)
    rows = tuple(
        HeatRow(
            number=number,
            name=layer.name,
            operators=", ".join(layer.op_types),
            cells=tuple(
                HeatCell(
                    text="" if time is None else _ms(time),
                    shade=None if time is None else _shade(time, high),
                    chosen=_how_many(chosen[number, unit], count),
                    edges=("t" if (number, unit) in starts else "")
                    + ("b" if (number, unit) in stops else ""),
                )
                for unit, time in zip(units, row, strict=True)
            ),
        )
        for number, (layer, row) in enumerate(zip(network.layers[:most], times[:most], strict=True))
    )
    return LayerHeatMap(
        network=network.name,
        units=units,
        rows=rows,
        totals=tuple(map(_total, zip(*times, strict=True))),
        hidden=max(0, len(network.layers) - most),
        scale=(f"{_ms(low)} ms", f"{_ms(high)} ms"),
    )


_Place = tuple[int, str]
"""Layer and unit."""


def _chosen(subject: Subject, network: str) -> tuple[Counter[_Place], set[_Place], set[_Place], int]:
    """Return how many streams run each layer on each unit, where chunks begin and end, and all streams."""
    streams = [stream for stream in subject.deployment.streams if stream.network == network]
    chosen: Counter[_Place] = Counter()
    starts, stops = set(), set()
    for stream in streams:
        for chunk in stream.placed:
            chosen.update((layer, chunk.unit) for layer in range(chunk.start, chunk.stop))
            starts.add((chunk.start, chunk.unit))
            stops.add((chunk.stop - 1, chunk.unit))
    return chosen, starts, stops, len(streams)


def _how_many(found: int, count: int) -> str:
    return "" if not found else "all" if found == count else "some"


def _shade(time: int, high: int) -> int:
    """Return the shade of a time: by its square root, so that short layers differ, too."""
    return min(SHADES - 1, int(SHADES * math.sqrt(time / high)))


def _total(column: Sequence[int | None]) -> str:
    missing = sum(time is None for time in column)
    return f"{missing} cannot run" if missing else _ms(sum(time or 0 for time in column))


def _ms(time_us: int) -> str:
    return f"{time_us / 1000:,.3f}"
