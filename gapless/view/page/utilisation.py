"""How busy each unit is, predicted and measured, and the chunks that make it so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isclose

from ...answers import words
from ...answers.blocks import Column, Table, Unit, table
from ...answers.charts import Axis, Bar, Bars, Part, Tone, Track, share
from ...answers.words import microseconds, millis, term_name
from ...executor.simulated import charged_for
from ...formulations.operation import operation_of
from ...formulations.plan import Chunk
from ...formulations.problem import Problem
from ...formulations.shares import shares_of
from ...formulations.streams import Stream
from ...formulations.terms import Dimension
from ..presenter import presenter_of
from .played import Achieved, achieved, predicted_pace_us, race_row
from .subject import Subject

_MOST_CHUNKS = 48


def utilisation(subject: Subject) -> Bars | None:
    """Return the busy shares of the units, in the order of the platform; None: nothing is known of them.

    A unit is never busy for more than all of its time: medians of different samples can look as if.
    """
    accounts = [account for account in (_predicted(subject), _measured(achieved(subject))) if account]
    if not accounts:
        return None
    loads = accounts[0][2]
    units = subject.problem.platform.unit_names
    names = (*units, *(row for row in loads if row not in units))  # links stand behind the units
    busiest = max(loads.values()) if len(set(loads.values())) > 1 else None
    rows = tuple(
        Bar(
            name=unit,
            tracks=tuple(_track(subject, account, unit) for account in accounts if unit in account[2]),
            strong=(slowest := busiest is not None and isclose(loads.get(unit, 0.0), busiest)),
            tag="busiest" if slowest else "",
        )
        for unit in names
    )
    whole = term_name(subject.problem.formulation.terms, subject.pace)
    said = {
        row.name: ", ".join(f"{track.text} {track.note.partition(' (')[0]}" for track in row.tracks)
        for row in rows
    }
    told = (f"{name} {shares}" for name, shares in said.items() if shares)
    return Bars(
        title=f"Share of the {whole} that each unit is busy",
        across=Axis(name=f"share of the {whole}", unit="%", low=0, high=100),
        rows=rows,
        words=f"Busy share of the {whole}: {'; '.join(told)}.",
    )


def _track(subject: Subject, account: _Account, unit: str) -> Track:
    tone, pace, busy_us = account
    busy = min(busy_us[unit], pace)
    predicted = tone is Tone.PREDICTED
    time = millis(round(busy_us[unit])) if predicted else microseconds(busy_us[unit])
    return Track(
        parts=(Part(start=0, length=share(busy, pace), colour=tone),),
        text=words.share(busy, pace),
        note=f"{'predicted' if predicted else subject.observed} ({time})",
    )


_Account = tuple[Tone, float, dict[str, float]]
"""Who says it, the period or makespan, and the busy time of each unit in it, microseconds."""


def _predicted(subject: Subject) -> _Account | None:
    if subject.steady:
        shares = shares_of(subject.steady)
        return (
            Tone.PREDICTED,
            shares[next(iter(shares))].whole_us,
            {u: one.busy_us for u, one in shares.items()},
        )
    pace, judged = predicted_pace_us(subject), subject.score
    times = None if judged is None else judged.columns.get("busy_us")
    if judged is None or times is None or not pace or not _is_time(subject):
        return None
    names = subject.problem.platform.unit_names
    busy = {name: float(time) for name, time in zip(names, times, strict=True) if time is not None}
    return Tone.PREDICTED, pace, busy


def _is_time(subject: Subject) -> bool:
    return subject.problem.formulation.terms[subject.pace].dimension is Dimension.MICROSECONDS


def _measured(found: Achieved | None) -> _Account | None:
    return (Tone.MEASURED, found.pace_us, found.busy_us) if found is not None and found.busy_us else None


_Key = tuple[str, int]
"""Name of a stream, index of a chunk."""

_Taken = tuple[float, float | None]
"""Median busy time of a chunk, and of that its copies, if they are known; microseconds."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk of a stream, and what it takes alone, microseconds."""

    stream: Stream
    index: int
    alone_us: int | None

    @property
    def key(self) -> _Key:
        return self.stream.name, self.index


def chunk_table(subject: Subject) -> Table:
    """Return all chunks of a deployment: what they are charged with, and what they took.

    In a workload a chunk takes longer than it would take alone: it loses time to what runs beside it.
    """
    streams, took, beside = subject.deployment.streams, _took(subject), _beside_others(subject)
    more, further = presenter_of(subject.problem).chunk_columns(subject.problem, subject.deployment)
    layers = {network.name: network.layer_names for network in subject.problem.networks}

    def ends(one: _Chunk) -> str:
        names, runs = layers[one.stream.chunks[one.index].network], one.stream.runs(one.index)
        return ", ".join(dict.fromkeys((names[runs[0][0]], names[runs[-1][1] - 1])))

    def off(one: _Chunk) -> float | None:
        expected, taken = beside.get(one.key, one.alone_us), took.get(one.key)
        return None if taken is None or not expected else taken[0] / expected - 1

    def own(place: int) -> Callable[[_Chunk], str | None]:
        return lambda one: further[one.key][place] if one.key in further else None

    titles: list[Column[_Chunk]] = []
    if len(streams) > 1:
        what = "request" if subject.deployment.rounds else "stream"
        titles.append(Column(what, Unit.NAME, lambda one: one.stream.name))
    titles += [
        Column("layers", Unit.TEXT, lambda one: one.stream.layers(one.index)),
        Column("from, to", Unit.NAME, ends),
        Column("unit", Unit.NAME, lambda one: one.stream.chunks[one.index].unit),
        Column("alone" if beside else "predicted", Unit.MICROSECONDS, lambda one: one.alone_us),
    ]
    if beside:
        titles.append(Column("predicted", Unit.MICROSECONDS, lambda one: beside.get(one.key)))
    if took:
        titles += [
            Column(subject.observed, Unit.MEASURED, lambda one: took.get(one.key, (None, None))[0]),
            Column("of that copies", Unit.MEASURED, lambda one: took.get(one.key, (None, None))[1]),
            Column("difference", Unit.CHANGE, off),
        ]
    titles += [Column(title, Unit.COUNT, own(place)) for place, title in enumerate(more)]
    chunks = (
        _Chunk(stream, index, alone_us)
        for stream, times in zip(streams, _charged_us(subject), strict=True)
        for index, alone_us in enumerate(times)
    )
    return table("Chunks: median times" if took else "Chunks", titles, chunks, most=_MOST_CHUNKS)


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
