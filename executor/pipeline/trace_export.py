"""Traces as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

One track a unit; a slice for each chunk of each request, with its copies inside; arrows from chunk to
chunk of one request; counters of the requests on their way, and of memory where it is known. The file also
says what ran, so that `trace_file.load_trace` gets the same trace back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...formulations.files import Schema, dump
from ...formulations.plan import Chunk, Plan
from ...formulations.simulate import Trace
from ...formulations.validation import STRICT
from ..deployment import Deployment
from ..measurement import MeasuredEvent, MeasuredTrace

ON_THEIR_WAY = "requests on their way"
"""Counter of requests of which a chunk has begun and the last one has not ended."""

MEMORY = "memory"

_PROCESS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a simulated trace is a simulation of; fields as in `Trace`."""

    __pydantic_config__: ClassVar[Any] = STRICT

    plan: Plan
    units: tuple[str, ...]
    arrivals_us: tuple[int, ...]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDocument:
    """A trace file; the names of the first three are those of Chrome's trace format.

    Attributes
    ----------
    traceEvents
        Names of tracks, slices, arrows and counters; times in microseconds with three exact decimals.
    displayTimeUnit, otherData
        How it is shown, and under which title.
    measured
        What ran; None: it was simulated.
    simulated
        What was played; None: it was measured.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    traceEvents: tuple[dict[str, Any], ...]
    displayTimeUnit: str = "ms"
    otherData: dict[str, str] | None = None
    measured: Deployment | None = None
    simulated: Played | None = None


TRACE = Schema(format="gapless.chrome_trace", version=1, content=TraceDocument)
"""Not `gapless.trace`: so is called what `gapless simulate --json` prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slice:
    """One chunk of one request at work; its inner parts are (name, start, end)."""

    start_ns: int
    end_ns: int
    stream: int
    request: int
    chunk: int
    slowdown_us: int = 0
    parts: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Show:
    """A trace in the form in which it is written.

    Attributes
    ----------
    title
        What it is.
    origin
        What ran, or was played.
    units
        Names of the tracks, in order.
    streams
        Name and chunks of each stream.
    slices
        In order of their start.
    """

    title: str
    origin: TraceDocument
    units: tuple[str, ...]
    streams: tuple[tuple[str, tuple[Chunk, ...]], ...]
    slices: tuple[_Slice, ...]

    def track(self, piece: _Slice) -> dict[str, int]:
        """Return where a slice is drawn."""
        unit = self.streams[piece.stream][1][piece.chunk].unit
        return {"pid": _PROCESS, "tid": self.units.index(unit) + 1}

    def is_last(self, piece: _Slice) -> bool:
        """Return whether a slice is the last chunk of its request."""
        return piece.chunk == len(self.streams[piece.stream][1]) - 1


def trace_parts(
    trace: MeasuredTrace | Trace, *, memory_steps: Sequence[tuple[int, int]] = ()
) -> Iterator[str]:
    """Yield the text of a Chrome trace document piece by piece, so that large ones need no memory.

    Parameters
    ----------
    trace
        Measured, or simulated.
    memory_steps
        (microsecond, bytes in use from then on), in order: memory over time, where it is known.
    """
    show = _measured(trace) if isinstance(trace, MeasuredTrace) else _simulated(trace)
    yield f'{{"displayTimeUnit":"ms","otherData":{_text({"title": show.title})},"traceEvents":[\n'
    for number, event in enumerate(_events(show, memory_steps)):
        yield f"{',' if number else ''}{_text(event)}\n"
    # Perfetto reads up to the first key that it does not know, so what is ours comes last.
    ours = {key: value for key, value in json.loads(dump(show.origin, TRACE)).items() if key != "traceEvents"}
    yield f"],{_text(ours)[1:]}\n"


def _measured(trace: MeasuredTrace) -> _Show:
    streams = trace.deployment.streams
    index = {stream.name: number for number, stream in enumerate(streams)}
    return _Show(
        title=f"measured: {trace.deployment}",
        origin=TraceDocument(traceEvents=(), measured=trace.deployment),
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
    played = Played(plan=trace.plan, units=trace.units, arrivals_us=trace.arrivals_us, names=trace.names)
    return _Show(
        title=f"simulated: {trace.plan}",
        origin=TraceDocument(traceEvents=(), simulated=played),
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
                slowdown_us=event.slowdown_us,
            )
            for event in sorted(trace.events)
        ),
    )


def _events(show: _Show, memory_steps: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Yield names of the tracks, slices and arrows in order of time, then the counters."""
    yield _metadata("process_name", 0, name=show.title)
    for track, unit in enumerate(show.units, start=1):
        yield _metadata("thread_name", track, name=unit)
        yield _metadata("thread_sort_index", track, sort_index=track)
    for piece in show.slices:
        yield from _slice_events(show, piece)
        if len(show.streams[piece.stream][1]) > 1:
            yield _arrow_event(show, piece)
    for at_ns, count in _on_their_way(show):
        yield _counter_event(ON_THEIR_WAY, at_ns, requests=count)
    for at_us, used in memory_steps:
        yield _counter_event(MEMORY, at_us * 1000, bytes=used)


def _metadata(what: str, track: int, **values: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": values}


def _slice_events(show: _Show, piece: _Slice) -> Iterator[dict[str, Any]]:
    name, chunks = show.streams[piece.stream]
    chunk = chunks[piece.chunk]
    layers = f"{chunk.start}-{chunk.stop - 1}"
    args = {"request": piece.request, "stream": name, "network": chunk.network}
    args |= {"chunk": piece.chunk, "layers": layers}
    if piece.slowdown_us:
        args["slowdown_us"] = piece.slowdown_us
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
    is_first = piece.chunk == 0
    at_ns = max(piece.start_ns, piece.end_ns - 1) if is_first else piece.start_ns
    return {
        "ph": "s" if is_first else "f" if show.is_last(piece) else "t",
        "name": f"request {piece.request}",
        "cat": "request",
        "id": piece.request * len(show.streams) + piece.stream,
        "ts": at_ns / 1000,
        "bp": "e",
        **show.track(piece),
    }


def _on_their_way(show: _Show) -> Iterator[tuple[int, int]]:
    """Yield (nanosecond, requests from then on) at each change."""
    changes: Counter[int] = Counter()
    for piece in show.slices:
        changes[piece.start_ns] += piece.chunk == 0
        changes[piece.end_ns] -= show.is_last(piece)
    count = 0
    for at_ns, change in sorted(changes.items()):
        if change:
            count += change
            yield at_ns, count


def _counter_event(name: str, at_ns: int, **values: int) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": _PROCESS, "ts": at_ns / 1000, "args": values}


def _text(value: Any) -> str:
    """Return JSON in ASCII that may also stand inside HTML."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
