"""What the script of a report knows of the blocks of a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...formulations.history import Interval, is_message
from ...formulations.network import Network
from .played import Lane, Played
from .scale import time_unit
from .subject import Subject
from .texts import visible


def script_data(
    subject: Subject, traces: Sequence[Played], lanes: Sequence[Lane], units: Sequence[str], end_us: float
) -> dict[str, Any]:
    """Return what the script shows: chunks once, then five or six numbers for each block."""
    networks = {network.name: network for network in subject.problem.networks}
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
        "bands": [
            {
                "title": trace.title,
                "size": 6 if _has_parts(trace) else 5,
                "rows": [
                    [n for event in trace.on(unit) for n in _numbers(event, first, parts=_has_parts(trace))]
                    for unit in units
                ],
            }
            for trace in traces
        ],
    }


def _has_parts(trace: Played) -> bool:
    return any(event.engine_ns for event in trace.events)


def _numbers(event: Interval, first: Sequence[int], *, parts: bool) -> list[float]:
    """Return request, chunk, start, then duration and slowdown, or copy in, run and copy out."""
    length = event.end_us - event.start_us
    times = event.parts_us or ((0.0, length, 0.0) if parts else (length, event.slowdown_ns / 1000))
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
