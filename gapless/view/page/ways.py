"""The ways of requests over the units: what each block waited for, and what ran beside it at which cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...answers.charts import time_unit
from ...formulations.history import Interval, is_message
from ...formulations.network import Network
from ...formulations.requests import RequestTables
from .played import Played, lanes_of
from .subject import Subject
from .texts import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One block on the way of its request.

    `wait_us`: from the end of the block before it, or of the first one from the arrival, to its start.
    `beside`: the blocks on other units that take some of its speed while they run, and how much longer it
    takes because of each, microseconds; 0 where that is not known.
    """

    event: Interval
    wait_us: float
    beside: tuple[tuple[Interval, float], ...]


def steps_of(subject: Subject, trace: Played) -> dict[Interval, Step]:
    """Return the step that each block of a trace is; streams without a common beginning have no company."""
    waits_us, company = _waits_us(subject, trace), _company(subject, trace.events)
    return {
        event: Step(event=event, wait_us=waits_us[event], beside=tuple(_costs(event, company[event])))
        for event in trace.events
    }


def _waits_us(subject: Subject, trace: Played) -> dict[Interval, float]:
    rounds = subject.deployment.rounds
    ends = {(event.stream, event.request, event.chunk): event.end_us for event in trace.events}
    waits = {}
    for event in trace.events:
        ready = ends.get((event.stream, event.request, event.chunk - 1))
        if not event.chunk and rounds is not None and subject.deployment.is_batch:
            ready = rounds.arrivals_us[event.stream]
        waits[event] = 0.0 if ready is None else max(0.0, event.start_us - ready)
    return waits


def _company(subject: Subject, events: Sequence[Interval]) -> dict[Interval, list[tuple[Interval, float]]]:
    """Return who takes how much from whom by what is known: time together times loss, not yet scaled."""
    found: dict[Interval, list[tuple[Interval, float]]] = {event: [] for event in events}
    tables, streams = subject.problem.tables, subject.deployment.streams
    if not isinstance(tables, RequestTables) or subject.deployment.rounds is None:
        return found
    for one, other in _meetings(events):
        met_us = min(one.end_us, other.end_us) - other.start_us
        for victim, aggressor in ((one, other), (other, one)):
            mine, theirs = (streams[each.stream].chunks[each.chunk] for each in (victim, aggressor))
            if loss := tables.loss_permille(mine, theirs):
                found[victim].append((aggressor, met_us * loss))
    return found


def _meetings(events: Sequence[Interval]) -> Iterator[tuple[Interval, Interval]]:
    """Yield blocks that run at the same time, of each two the one that starts first before the other."""
    running: list[Interval] = []
    for event in events:
        if event.end_us == event.start_us:
            continue  # of no length: it runs beside nobody
        running = [other for other in running if other.end_us > event.start_us]
        for other in running:
            yield other, event
        running.append(event)


def _costs(event: Interval, company: Sequence[tuple[Interval, float]]) -> Iterator[tuple[Interval, float]]:
    """Yield what each of the company costs: its share of what the block has lost in all."""
    whole = sum(taken for _, taken in company)
    for other, taken in company:
        yield other, event.slowdown_us * taken / whole


def script_data(
    subject: Subject,
    traces: Sequence[Played],
    steps: Sequence[Mapping[Interval, Step]],
    units: Sequence[str],
    end_us: float,
) -> dict[str, Any]:
    """Return what the script shows: chunks once, then some numbers for each block."""
    networks, lanes = {network.name: network for network in subject.problem.networks}, lanes_of(subject)
    chunks = [
        [number, visible(chunk.network), _layers(networks.get(chunk.network), chunk.start, chunk.stop)]
        for number, lane in enumerate(lanes)
        for chunk in lane.chunks
    ]
    first, count = [], 0
    for lane in lanes:
        first.append(count)
        count += len(lane.chunks)
    us, name = time_unit(end_us)
    return {
        "end": _short(end_us),
        "unit": [us, name],
        "names": [visible(lane.name) for lane in lanes],
        "alone": subject.deployment.rounds is not None,
        "units": [visible(unit) for unit in units],
        "links": sorted({units.index(e.unit) for t in traces for e in t.events if is_message(e, lanes)}),
        "chunks": chunks,
        "bands": [_band_data(trace, taken, first, units) for trace, taken in zip(traces, steps, strict=True)],
    }


def _band_data(
    trace: Played, steps: Mapping[Interval, Step], first: Sequence[int], units: Sequence[str]
) -> dict[str, Any]:
    """Return the blocks of a trace by unit; of all of them, row after row, losses, waits and company."""
    parts = any(event.engine_ns for event in trace.events)
    rows = [trace.on(unit) for unit in units]
    blocks = [event for row in rows for event in row]
    place = {event: number for number, event in enumerate(blocks)}
    return {
        "title": trace.title,
        "size": 6 if parts else 4,
        "rows": [[n for event in row for n in _numbers(event, first, parts=parts)] for row in rows],
        "lost": [] if trace.title == "measured" else [_short(event.slowdown_us) for event in blocks],
        "waits": [_short(steps[event].wait_us) for event in blocks],
        "beside": [
            [n for other, cost_us in steps[event].beside for n in (place[other], _short(cost_us))]
            for event in blocks
        ],
    }


def _numbers(event: Interval, first: Sequence[int], *, parts: bool) -> list[float]:
    """Return request, chunk, start, then duration, or copy in, run and copy out."""
    length = event.end_us - event.start_us
    times = event.parts_us or ((0.0, length, 0.0) if parts else (length,))
    return [event.request, first[event.stream] + event.chunk, *map(_short, (event.start_us, *times))]


def _short(value: float) -> float:
    """Return a number that takes few characters as JSON: no .0, one place at most."""
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _layers(network: Network | None, start: int, stop: int) -> str:
    """Return the layers of a chunk: numbers and names."""
    if network is None:
        return f"{start}-{stop - 1}"
    names = network.layer_names
    ends = dict.fromkeys(visible(name) for name in (names[start], names[stop - 1]))
    return f"{start}-{stop - 1} ({' to '.join(ends)})"
