"""Traces as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

One track a unit; a slice for each chunk of each request, with its copies inside; arrows from chunk to
chunk of one request.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...formulations.plan import Chunk
from ...formulations.simulate import Trace
from ..measurement import MeasuredEvent, MeasuredTrace

_PROCESS = 1

_Track = tuple[int, int]
"""Process and thread number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """One chunk of one request at work; its inner parts are (name, start, end)."""

    start_ns: int
    end_ns: int
    stream: int
    request: int
    chunk: int
    parts: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Show:
    """A trace in the form in which it is written.

    Attributes
    ----------
    title
        What it is.
    units
        Names of the tracks, in order.
    streams
        Name and chunks of each stream.
    slices
        In order of their start.
    """

    title: str
    units: tuple[str, ...]
    streams: tuple[tuple[str, tuple[Chunk, ...]], ...]
    slices: tuple[_Slice, ...]

    def track(self, piece: _Slice) -> dict[str, int]:
        """Return where a slice is drawn."""
        unit = self.streams[piece.stream][1][piece.chunk].unit
        return {"pid": _PROCESS, "tid": self.units.index(unit) + 1}


def trace_parts(trace: MeasuredTrace | Trace) -> Iterator[str]:
    """Yield the text of a Chrome trace document piece by piece, so that large ones need no memory.

    Parameters
    ----------
    trace
        Measured, or simulated.
    """
    show = _measured(trace) if isinstance(trace, MeasuredTrace) else _simulated(trace)
    yield f'{{"displayTimeUnit":"ms","otherData":{_text({"title": show.title})},"traceEvents":[\n'
    for number, event in enumerate(_events(show)):
        yield f"{',' if number else ''}{_text(event)}\n"
    yield "]}\n"


def check_trace(document: object) -> list[str]:
    """Return the defects of a Chrome trace document that was read with `json`; empty for a good one.

    Slices of a track must lie apart or one inside the other, tracks must have names, and every arrow
    must go forward in time from slice to slice.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("traceEvents"), list):
        return ["it is no Chrome trace document: an object with a list of traceEvents is needed"]
    faults = [_fault(event) for event in document["traceEvents"]]
    defects = [f"traceEvents[{number}]: {fault}" for number, fault in enumerate(faults) if fault]
    events = [event for event, fault in zip(document["traceEvents"], faults, strict=True) if not fault]
    tracks: dict[_Track, list[tuple[int, int, str]]] = {}
    arrows: dict[object, list[tuple[int, str, _Track]]] = {}
    named = set()
    for event in events:
        track = (event["pid"], event["tid"])
        if event["ph"] == "X":
            start = _ns(event["ts"])
            tracks.setdefault(track, []).append((start, start + _ns(event["dur"]), event["name"]))
        elif event["ph"] != "M":
            arrows.setdefault(event["id"], []).append((_ns(event["ts"]), event["ph"], track))
        elif event["name"] == "thread_name":
            named.add(track)
    defects += [f"track {track} has no name" for track in tracks if track not in named]
    outer = {}
    for track, slices in tracks.items():
        outer[track] = _outer(slices)
        defects += _nesting_defects(track, slices)
    for name, ends in arrows.items():
        defects += _arrow_defects(name, ends, outer)
    return defects


def _measured(trace: MeasuredTrace) -> _Show:
    streams = trace.deployment.streams
    index = {stream.name: number for number, stream in enumerate(streams)}
    return _Show(
        title=f"measured: {trace.deployment}",
        units=trace.deployment.units,
        streams=tuple((stream.name, stream.chunks) for stream in streams),
        slices=tuple(
            _Slice(
                start_ns=event.start_ns,
                end_ns=event.end_ns,
                stream=index[event.stream],
                request=event.request,
                chunk=event.chunk,
                parts=_parts(event),
            )
            for event in sorted(trace.events)
        ),
    )


def _parts(event: MeasuredEvent) -> tuple[tuple[str, int, int], ...]:
    return (
        ("copy in", event.start_ns, event.run_ns),
        ("run", event.run_ns, event.copied_ns),
        ("copy out", event.copied_ns, event.end_ns),
    )


def _simulated(trace: Trace) -> _Show:
    chunks = trace.plan.chunks
    used = {chunk.unit for chunk in chunks}
    return _Show(
        title=f"simulated: {trace.plan}",
        units=tuple(unit for unit in trace.units if unit in used),
        streams=tuple((name, trace.plan.of(name)) for name in trace.names) or ((chunks[0].network, chunks),),
        slices=tuple(
            _Slice(
                start_ns=event.start_us * 1000,
                end_ns=event.end_us * 1000,
                # The requests of a workload are streams of one request each.
                stream=event.request if trace.names else 0,
                request=0 if trace.names else event.request,
                chunk=event.chunk,
            )
            for event in sorted(trace.events)
        ),
    )


def _events(show: _Show) -> Iterator[dict[str, Any]]:
    """Yield names of the tracks, then slices and arrows in order of time."""
    yield _metadata("process_name", 0, name=show.title)
    for track, unit in enumerate(show.units, start=1):
        yield _metadata("thread_name", track, name=unit)
        yield _metadata("thread_sort_index", track, sort_index=track)
    for piece in show.slices:
        yield from _slice_events(show, piece)
        if len(show.streams[piece.stream][1]) > 1:
            yield _arrow_event(show, piece)


def _metadata(what: str, track: int, **values: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": values}


def _slice_events(show: _Show, piece: _Slice) -> Iterator[dict[str, Any]]:
    name, chunks = show.streams[piece.stream]
    chunk = chunks[piece.chunk]
    layers = f"{chunk.start}-{chunk.stop - 1}"
    args = {"request": piece.request, "stream": name, "network": chunk.network, "layers": layers}
    whole = (f"{name} {layers}", piece.start_ns, piece.end_ns)
    for (text, start_ns, end_ns), category in ((whole, "chunk"), *((part, "part") for part in piece.parts)):
        yield {
            "ph": "X",
            "name": text,
            "cat": category,
            "ts": start_ns / 1000,
            "dur": (end_ns - start_ns) / 1000,
            **show.track(piece),
            "args": args,
        }


def _arrow_event(show: _Show, piece: _Slice) -> dict[str, Any]:
    """Return the end, the beginning, or a point in between of the arrow of a request."""
    is_first, is_last = piece.chunk == 0, piece.chunk == len(show.streams[piece.stream][1]) - 1
    at_ns = max(piece.start_ns, piece.end_ns - 1) if is_first else piece.start_ns
    return {
        "ph": "s" if is_first else "f" if is_last else "t",
        "name": f"request {piece.request}",
        "cat": "request",
        "id": piece.request * len(show.streams) + piece.stream,
        "ts": at_ns / 1000,
        "bp": "e",
        **show.track(piece),
    }


def _text(value: Any) -> str:
    """Return JSON in ASCII that may also stand inside HTML."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _ns(microseconds: float) -> int:
    return round(microseconds * 1000)


_TIMED = {"name": (str,), "pid": (int,), "tid": (int,), "ts": (int, float)}
_NEEDED: dict[str, dict[str, tuple[type, ...]]] = {
    "X": {**_TIMED, "dur": (int, float)},
    "M": {"name": (str,), "pid": (int,), "tid": (int,), "args": (dict,)},
    **{kind: {**_TIMED, "id": (int, str)} for kind in "stf"},
}
"""What events of each kind must have, and of which types."""


def _fault(event: object) -> str | None:
    """Return what is wrong with one event by itself."""
    if not isinstance(event, Mapping):
        return "it is not an object"
    needed = _NEEDED.get(str(event.get("ph")))
    if needed is None:
        return f"its kind (ph) is {event.get('ph')!r}, must be one of {', '.join(_NEEDED)}"
    for key, types in needed.items():
        if not isinstance(event.get(key), types) or isinstance(event.get(key), bool):
            return f"{key} is {event.get(key)!r}"
    for key in ("ts", "dur"):
        if not 0 <= event.get(key, 0) < float("inf"):
            return f"{key} is {event[key]}, must be at least 0 and finite"
    return None


def _by_start(slices: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return slices in order of their start, what is around others before them."""
    return sorted(slices, key=lambda piece: (piece[0], -piece[1]))


def _nesting_defects(track: _Track, slices: list[tuple[int, int, str]]) -> Iterator[str]:
    around: list[tuple[int, int, str]] = []
    for start, end, name in _by_start(slices):
        while around and around[-1][1] <= start:
            around.pop()
        if around and end > around[-1][1]:
            yield f"track {track}: {name!r} at {start} ns overlaps the end of {around[-1][2]!r}"
        around.append((start, end, name))


def _outer(slices: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """Return start and end of the slices that are in no other, in order."""
    found: list[tuple[int, int]] = []
    for start, end, _ in _by_start(slices):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def _arrow_defects(
    name: object,
    ends: list[tuple[int, str, _Track]],
    outer: Mapping[_Track, list[tuple[int, int]]],
) -> Iterator[str]:
    kinds = "".join(kind for _, kind, _ in sorted(ends, key=lambda end: (end[0], "stf".index(end[1]))))
    if kinds != f"s{'t' * (len(kinds) - 2)}f":
        yield f"arrow {name!r} goes {kinds!r} in order of time, must begin with 's' and end with 'f'"
    for at, _, track in ends:
        slices = outer.get(track, [])
        before = bisect_right(slices, at, key=lambda piece: piece[0]) - 1
        if before < 0 or at > slices[before][1]:
            yield f"arrow {name!r} touches no slice of track {track} at {at} ns"
