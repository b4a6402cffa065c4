"""The form in which measurements of the BetterTogether authors are shared: one JSON object.

`columns` names the units; `isolated_ms` and `heavy_ms` are tables by [layer][unit], null where a unit cannot
run a layer, and one of both may be missing; `schedules` are executed plans, each with `chunks` (`unit`, and
`layers` counted from 1), `interval_ms` (time between two outputs) and, where known, `runs`,
`run_us` (that time in each run, microseconds) and `chunk_mean_ms` in the order of the chunks. Layers that
chunks left out when they ran are named by `skipped_layers`, counted from 1. Anything else is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from ...formulations.costs import CostTable, NetworkCosts, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.files import format_of, load, load_foreign
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.network import Layer, Network
from ...formulations.plan import Chunk, Plan
from ...formulations.validation import MAX_COUNT, MAX_NAME_LENGTH, Defects
from .executions import EXECUTIONS, MOST_PLANS, ExecutedPlan, Executions

_SHARED: dict[str, Any] = {"extra": "ignore", "strict": True}

Rows = tuple[tuple[float | None, ...], ...]
"""Milliseconds by [layer][unit]; None where the unit cannot run the layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _PublishedChunk:
    __pydantic_config__: ClassVar[Any] = _SHARED
    unit: str
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schedule:
    __pydantic_config__: ClassVar[Any] = _SHARED
    chunks: tuple[_PublishedChunk, ...]
    interval_ms: float
    chunk_mean_ms: tuple[float | None, ...] | None = None
    runs: int = 1
    run_us: tuple[float, ...] = ()
    skipped_layers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Published:
    __pydantic_config__: ClassVar[Any] = _SHARED
    columns: tuple[str, ...]
    schedules: tuple[_Schedule, ...]
    isolated_ms: Rows | None = None
    heavy_ms: Rows | None = None
    units: str = "milliseconds"
    source: str = ""

    @property
    def tables(self) -> dict[str, Rows]:
        """The tables that are there, by method."""
        both = {"isolated": self.isolated_ms, "heavy": self.heavy_ms}
        return {method: rows for method, rows in both.items() if rows is not None}


def load_executions(path: str | Path) -> Executions:
    """Read a file of executed plans: gapless's own (`EXECUTIONS`), or one of the form of this module.

    Raises InvalidInputError: the file is not valid; everything that is wrong is named.
    """
    return load_published(path) if format_of(path) is None else load(path, EXECUTIONS)


def load_published(path: str | Path) -> Executions:
    """Read a file of this form; its network is called as the file is.

    Raises InvalidInputError: the file is not valid; everything that is wrong is named.
    """
    found = load_foreign(path, _Published, called="executed schedules with their cost tables")
    defects = Defects(str(path))
    _check_tables(found, defects)
    if not defects.found:
        for index, schedule in enumerate(found.schedules):
            _check_schedule(found, schedule, f"schedules[{index}]", defects)
    defects.raise_as(InvalidInputError)
    name = Path(path).stem[:MAX_NAME_LENGTH]
    layers = len(next(iter(found.tables.values())))
    return Executions(
        platform=Platform(
            name="published",
            units=tuple(ProcessingUnit(name=unit) for unit in found.columns),
            source=found.source,
        ),
        network=Network(name=name, layers=tuple(Layer(name=f"layer {i}") for i in range(1, layers + 1))),
        tables=tuple(_table(found, name, method, rows) for method, rows in found.tables.items()),
        executed=tuple(_executed(schedule, name) for schedule in found.schedules),
        source=found.source,
    )


def _table(found: _Published, network: str, method: str, rows: Rows) -> CostTable:
    layer_us = tuple(tuple(None if ms is None else max(1, round(1000 * ms)) for ms in row) for row in rows)
    return CostTable(
        units=found.columns,
        networks=(NetworkCosts(network=network, layer_us=layer_us),),
        provenance=Provenance(source=found.source, method=method),
    )


def _executed(schedule: _Schedule, network: str) -> ExecutedPlan:
    order = sorted(range(len(schedule.chunks)), key=lambda index: schedule.chunks[index].layers[0])
    times = _times(schedule)
    return ExecutedPlan(
        plan=Plan(
            chunks=tuple(
                Chunk(network=network, start=chunk.layers[0] - 1, stop=chunk.layers[-1], unit=chunk.unit)
                for chunk in schedule.chunks
            )
        ),
        period_us=1000 * schedule.interval_ms,
        chunk_us=tuple(1000 * times[index] for index in order) if times else (),
        runs=max(schedule.runs, len(schedule.run_us)),
        run_us=schedule.run_us,
        skipped_layers=tuple(layer - 1 for layer in schedule.skipped_layers),
    )


def _times(schedule: _Schedule) -> tuple[float, ...]:
    """Return the times of all chunks; empty where one is not known."""
    found = tuple(ms for ms in schedule.chunk_mean_ms or () if ms is not None)
    return found if len(found) == len(schedule.chunks) else ()


def _check_tables(found: _Published, defects: Defects) -> None:
    if found.units != "milliseconds":
        defects.add(f"units is {found.units!r}, must be 'milliseconds'")
    defects.check_size("columns", len(found.columns), most=64)
    defects.check_unique("columns", found.columns)
    for index, unit in enumerate(found.columns):
        defects.check_name(f"columns[{index}]", unit)
    if not found.tables:
        defects.add("isolated_ms and heavy_ms are missing: at least one of them is needed")
    defects.check_size("schedules", len(found.schedules), most=MOST_PLANS)
    for method, rows in found.tables.items():
        if not rows:
            defects.add(f"{method}_ms is empty: at least one layer is needed")
        for layer, times in enumerate(rows):
            where = f"{method}_ms[{layer}]"
            if len(times) != len(found.columns):
                defects.add(f"{where} has {len(times)} entries, columns has {len(found.columns)}")
            for column, time_ms in enumerate(times):
                if time_ms is not None:
                    _check_ms(f"{where}[{column}]", time_ms, defects)
    if len(found.tables) == 2 and not defects.found:
        gaps = [[[ms is None for ms in row] for row in rows] for rows in found.tables.values()]
        if len(gaps[0]) != len(gaps[1]):
            defects.add(f"isolated_ms has {len(gaps[0])} layers, heavy_ms has {len(gaps[1])}")
        elif gaps[0] != gaps[1]:
            wrong = next(layer for layer, (one, other) in enumerate(zip(*gaps, strict=True)) if one != other)
            defects.add(f"isolated_ms[{wrong}] and heavy_ms[{wrong}] are null for different units")


def _check_schedule(found: _Published, schedule: _Schedule, where: str, defects: Defects) -> None:
    chunks, times = schedule.chunks, schedule.chunk_mean_ms
    _check_ms(f"{where}.interval_ms", schedule.interval_ms, defects)
    defects.check_count(f"{where}.runs", schedule.runs, least=1)
    if times is not None and len(times) != len(chunks):
        defects.add(f"{where}.chunk_mean_ms has {len(times)} times, the schedule has {len(chunks)} chunks")
    for index, time_ms in enumerate(times or ()):
        if time_ms is not None:
            _check_ms(f"{where}.chunk_mean_ms[{index}]", time_ms, defects)
    for index, time_us in enumerate(schedule.run_us):
        _check_ms(f"{where}.run_us[{index}]", time_us, defects)
    strange = sorted(set(schedule.skipped_layers) - {layer for chunk in chunks for layer in chunk.layers})
    if strange:
        defects.add(f"{where}.skipped_layers has {_listed(strange)}, which no chunk has")
    defects.check_unique(f"{where}: the units of its chunks", [chunk.unit for chunk in chunks])
    for index, chunk in enumerate(chunks):
        for text in _wrong_chunk(found, chunk):
            defects.add(f"{where}.chunks[{index}]{text}")
    ran = sorted(layer for chunk in chunks for layer in chunk.layers)
    layers = len(next(iter(found.tables.values())))
    for text, those in {
        "runs no": sorted(set(range(1, layers + 1)) - set(ran)),
        "runs twice": sorted({one for one, other in pairwise(ran) if one == other}),
    }.items():
        if those:
            defects.add(f"{where} {text} layer {_listed(those)}; the tables have the layers 1 to {layers}")


def _wrong_chunk(found: _Published, chunk: _PublishedChunk) -> Iterator[str]:
    rows = next(iter(found.tables.values()))
    first, *_ = chunk.layers or (1,)
    if not chunk.layers or chunk.layers != tuple(range(first, first + len(chunk.layers))):
        yield f".layers is {list(chunk.layers)}, must be consecutive layers in order"
    beyond = [layer for layer in chunk.layers if not 1 <= layer <= len(rows)]
    if beyond:
        yield f".layers: there is no layer {_listed(beyond)}; the tables have the layers 1 to {len(rows)}"
    if chunk.unit not in found.columns:
        yield f".unit is {chunk.unit!r}, columns has {', '.join(found.columns)}"
        return
    column = found.columns.index(chunk.unit)
    unable = [layer for layer in chunk.layers if layer not in beyond and rows[layer - 1][column] is None]
    if unable:
        yield f": {chunk.unit!r} cannot run layer {_listed(unable)}: the tables say null"


def _check_ms(where: str, time_ms: float, defects: Defects) -> None:
    if not 0 < time_ms <= MAX_COUNT / 1e6:  # also of the sum of many layers, in microseconds
        defects.add(f"{where} is {time_ms}, must be a time greater than 0")


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
