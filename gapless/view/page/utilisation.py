"""How busy each unit is, predicted and measured, and the chunks that make it so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose

from ...answers import words
from ...answers.charts import share
from ...answers.words import microseconds, millis, term_name
from ...executor.simulation import charged_for
from ...formulations.operation import operation_of
from ...formulations.plan import Chunk
from ...formulations.problem import Problem
from ...formulations.shares import shares_of
from ...formulations.terms import Dimension
from ..presenter import presenter_of
from .execution import Achieved, achieved, predicted_pace_us, race_row
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table

_MOST_CHUNKS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Busy share of a unit in one account, percent of the period or makespan.

    `kind` is "predicted" or "measured", which decides the colour; `source` says it, or "simulated". A unit
    is never busy for more than all of it: medians of different samples can look as if.
    """

    kind: str
    source: str
    share: str
    percent: float
    busy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitBars:
    """A unit; `bars` is empty where it is not used; `pace`: it is the busiest one."""

    unit: str
    bars: tuple[Bar, ...]
    pace: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """Busy shares of all units."""

    units: tuple[UnitBars, ...]  # in the order of the platform
    whole: str  # what the shares are of: "period", "makespan" or "latency"
    text: str  # what there is to see, in words


def utilisation(subject: Subject) -> Utilisation | None:
    """Return the busy shares of the units; None: neither predicted nor measured."""
    accounts = [account for account in (_predicted(subject), _measured(achieved(subject))) if account]
    said = {"predicted": "predicted", "measured": subject.observed}
    if not accounts:
        return None
    loads = accounts[0][2]
    units = subject.problem.platform.unit_names
    names = (*units, *(row for row in loads if row not in units))  # links stand behind the units
    busiest = max(loads.values()) if len(set(loads.values())) > 1 else None
    rows = tuple(
        UnitBars(
            unit=unit,
            bars=tuple(
                Bar(
                    kind=kind,
                    source=said[kind],
                    percent=share(min(busy[unit], pace), pace),
                    share=words.share(min(busy[unit], pace), pace),
                    busy=millis(round(busy[unit])) if kind == "predicted" else microseconds(busy[unit]),
                )
                for kind, pace, busy in accounts
                if unit in busy
            ),
            pace=busiest is not None and isclose(loads.get(unit, 0.0), busiest),
        )
        for unit in names
    )
    whole = term_name(subject.problem.formulation.terms, subject.pace)
    shown = (
        f"{row.unit} {', '.join(f'{bar.share} {bar.source}' for bar in row.bars)}" for row in rows if row.bars
    )
    return Utilisation(units=rows, whole=whole, text=f"Busy share of the {whole}: {'; '.join(shown)}.")


_Account = tuple[str, float, dict[str, float]]
"""Who says it, the period or makespan, and the busy time of each unit in it, microseconds."""


def _predicted(subject: Subject) -> _Account | None:
    if subject.steady:
        shares = shares_of(subject.steady)
        return "predicted", shares[next(iter(shares))].whole_us, {u: one.busy_us for u, one in shares.items()}
    pace, judged = predicted_pace_us(subject), subject.score
    times = None if judged is None else judged.columns.get("busy_us")
    if judged is None or times is None or not pace or not _is_time(subject):
        return None
    names = subject.problem.platform.unit_names
    busy = {name: float(time) for name, time in zip(names, times, strict=True) if time is not None}
    return "predicted", pace, busy


def _is_time(subject: Subject) -> bool:
    return subject.problem.formulation.terms[subject.pace].dimension is Dimension.MICROSECONDS


def _measured(found: Achieved | None) -> _Account | None:
    return ("measured", found.pace_us, found.busy_us) if found is not None and found.busy_us else None


def chunk_table(subject: Subject) -> Table:
    """Return all chunks of a deployment: what they are charged with, and what they took.

    In a workload a chunk takes longer than it would take alone: it loses time to what runs beside it.
    """
    took = _took(subject)
    several = len(subject.deployment.streams) > 1
    beside = _beside_others(subject)
    more, _ = _further(subject)
    titles = columns(
        *(("request" if subject.deployment.rounds else "stream",) if several else ()),
        "layers",
        "from, to",
        "unit",
        *numbers(*(("alone", "predicted") if beside else ("predicted",))),
        *(numbers(subject.observed, "of that copies", "difference") if took else ()),
        *numbers(*more),
    )
    caption = "Chunks: median times" if took else "Chunks"
    return table(caption, titles, _chunk_rows(subject, beside, took, several=several), most=_MOST_CHUNKS)


_Key = tuple[str, int]
"""Name of a stream, index of a chunk."""

_Taken = tuple[float, float | None]
"""Median busy time of a chunk, and of that its copies, if they are known; microseconds."""


def _chunk_rows(
    subject: Subject, beside: dict[_Key, int], took: dict[_Key, _Taken], *, several: bool
) -> Iterator[list[TableCell | str]]:
    charged, (_, further) = _charged_us(subject), _further(subject)
    layers = {network.name: network.layer_names for network in subject.problem.networks}
    for stream, times in zip(subject.deployment.streams, charged, strict=True):
        for index, (chunk, alone) in enumerate(zip(stream.chunks, times, strict=True)):
            names, key = layers[chunk.network], (stream.name, index)
            runs = stream.runs(index)
            first, last = names[runs[0][0]], names[runs[-1][1] - 1]
            row: list[TableCell | str] = [TableCell(text=stream.name, kind="name")] if several else []
            row += [
                stream.layers(index),
                TableCell(text=first if first == last else f"{first}, {last}", kind="name"),
                TableCell(text=chunk.unit, kind="name"),
                millis(alone),
            ]
            row += [millis(beside.get(key))] if beside else []
            row += _taken(took.get(key), beside.get(key, alone)) if took else []
            yield [*row, *further.get(key, ())]


def _further(subject: Subject) -> tuple[tuple[str, ...], Mapping[_Key, tuple[str, ...]]]:
    """Return what the formulation says of chunks in columns of its own: titles, and texts by chunk."""
    return presenter_of(subject.problem).chunk_columns(subject.problem, subject.deployment)


def _beside_others(subject: Subject) -> dict[_Key, int]:
    """Return what the chunks of a workload take, with the time that they lose; empty without a workload."""
    streams = subject.deployment.streams
    if subject.deployment.rounds is None:
        return {}
    return {
        (streams[event.stream].name, event.chunk): (event.end_ns - event.start_ns) // 1000
        for state in subject.steady
        for event in state.events
    }


def _took(subject: Subject) -> dict[_Key, _Taken]:
    """Return what chunks took in the execution, or else in the race."""
    found, row = subject.measurement, race_row(subject)
    if found is not None:
        return {
            (c.stream, c.chunk): (c.busy_us.median, c.copy_in_us.median + c.copy_out_us.median)
            for c in found.chunks
        }
    keys = [(s.name, index) for s in subject.deployment.streams for index in range(len(s.chunks))]
    if row is None or len(row.chunk_us) != len(keys):
        return {}
    return {key: (time, None) for key, time in zip(keys, row.chunk_us, strict=True)}


def _taken(times: _Taken | None, predicted: int | None) -> list[TableCell | str]:
    if times is None:
        return ["-", "-", "-"]
    busy, copies = times
    off = "-" if not predicted else f"{100 * (busy / predicted - 1):+.1f} %"
    return [microseconds(busy), microseconds(copies), off]


def _charged_us(subject: Subject) -> tuple[tuple[int | None, ...], ...]:
    """Return the time of each chunk, with its copies and without slowdown; None: it cannot run there."""
    deployment, problem = subject.deployment, subject.problem
    if problem.formulation.operation is None:
        return tuple(
            tuple(_sum_us(problem, chunk) for chunk in stream.chunks) for stream in deployment.streams
        )
    charged = charged_for(problem, deployment)
    return operation_of(charged).chunk_us(charged, deployment)


def _sum_us(problem: Problem, chunk: Chunk) -> int | None:
    """Return the sum of the times of the layers of a chunk."""
    rows = problem.costs.of(chunk.network).layer_us[chunk.start : chunk.stop]
    times = [row[problem.platform.unit_names.index(chunk.unit)] for row in rows]
    return None if None in times else sum(time or 0 for time in times)
