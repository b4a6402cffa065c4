"""Traces as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing show.

One track a unit, and one a link; a slice for each chunk of each request, with its copies inside, and for each
message; arrows from chunk to chunk of one request; counters of the requests on their way, and of memory where
it is known. The file also says what ran, so that `trace_file.load_trace` gets the same trace back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...formulations.deployment import Deployment
from ...formulations.files import Schema, dump
from ...formulations.history import History, Interval, is_message
from ...formulations.plan import Plan
from ...formulations.streams import Stream
from ...formulations.validation import STRICT

ON_THEIR_WAY = "requests on their way"
"""Counter of requests of which a chunk has begun and the last one has not ended."""

MEMORY = "memory"

MESSAGE = "message"
"""Category of the slices on the tracks of links."""

_PROCESS = 1

_PARTS = ("copy in", "run", "copy out")
"""Names of `Interval.parts_ns`; a simulated chunk has no parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a simulated trace is a simulation of; fields as in `History`.

    `streams` is empty where the chunks of the plan say who served it.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    plan: Plan
    units: tuple[str, ...]
    arrivals_us: tuple[int, ...]
    names: tuple[str, ...] = ()
    streams: tuple[Stream, ...] = ()


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
class _Show:
    """A history as it is written.

    With its title, the tracks of its units, and by stream which chunks run together, and which are the last;
    chunks side by side are on no arrow.
    """

    title: str
    trace: History
    tracks: dict[str, int]
    groups: Sequence[Sequence[range]]
    last: Sequence[Sequence[int]]

    def track(self, event: Interval) -> dict[str, int]:
        """Return where the slice of a chunk is drawn."""
        return {"pid": _PROCESS, "tid": self.tracks[event.unit]}

    def is_message(self, event: Interval) -> bool:
        """Return whether it is a message."""
        return is_message(event, self.trace.streams)

    def is_on_arrow(self, event: Interval) -> bool:
        """Return whether the arrow of its request passes it: of tiles of the same layers, the first one."""
        groups = self.groups[event.stream]
        return len(groups) > 1 and any(group[0] == event.chunk for group in groups)

    def is_last(self, event: Interval) -> bool:
        """Return whether no chunk of its stream waits for it."""
        return event.chunk in self.last[event.stream]


def trace_parts(trace: History, *, memory_steps: Sequence[tuple[int, int]] = ()) -> Iterator[str]:
    """Yield the text of a Chrome trace document piece by piece, so that large ones need no memory.

    `memory_steps`: (microsecond, bytes in use from then on), in order: memory over time, where it is known.
    """
    title, origin = _origin(trace)
    tracks = {unit: track for track, unit in enumerate(trace.used_units, start=1)}
    show = _Show(
        title=title,
        trace=trace,
        tracks=tracks,
        groups=[() if stream.dataflow else stream.groups for stream in trace.streams],
        last=[stream.last for stream in trace.streams],
    )
    yield f'{{"displayTimeUnit":"ms","otherData":{_text({"title": title})},"traceEvents":[\n'
    for number, event in enumerate(_events(show, memory_steps)):
        yield f"{',' if number else ''}{_text(event)}\n"
    # Perfetto reads up to the first key that it does not know, so what is ours comes last.
    ours = {key: value for key, value in json.loads(dump(origin, TRACE)).items() if key != "traceEvents"}
    yield f"],{_text(ours)[1:]}\n"


def _origin(trace: History) -> tuple[str, TraceDocument]:
    """Return the title of a trace, and what ran or was played."""
    if trace.deployment is not None:
        return f"measured: {trace.deployment}", TraceDocument(traceEvents=(), measured=trace.deployment)
    assert trace.plan is not None
    played = Played(
        plan=trace.plan,
        units=trace.units,
        arrivals_us=trace.arrivals_us,
        names=trace.names,
        streams=tuple(stream for stream in trace.streams if stream.order or stream.dataflow),
    )
    return f"simulated: {trace.plan}", TraceDocument(traceEvents=(), simulated=played)


def _events(show: _Show, memory_steps: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Yield names of the tracks, slices and arrows in order of time, then the counters."""
    yield _metadata("process_name", 0, name=show.title)
    for unit, track in show.tracks.items():
        yield _metadata("thread_name", track, name=unit)
        yield _metadata("thread_sort_index", track, sort_index=track)
    for event in show.trace.events:
        yield from _slice_events(show, event)
        if show.is_on_arrow(event) and not show.is_message(event):
            yield _arrow_event(show, event)
    for at_ns, count in _on_their_way(show):
        yield _counter_event(ON_THEIR_WAY, at_ns, requests=count)
    for at_us, used in memory_steps:
        yield _counter_event(MEMORY, at_us * 1000, bytes=used)


def _metadata(what: str, track: int, **values: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": values}


def _slice_events(show: _Show, event: Interval) -> Iterator[dict[str, Any]]:
    stream = show.trace.streams[event.stream]
    chunk = stream.chunks[event.chunk]
    tile = stream.tile(event.chunk)
    layers = f"{stream.layers(event.chunk)}{f' {tile}' if tile else ''}"
    args = {"request": event.request, "stream": stream.name, "network": chunk.network}
    args |= {"chunk": event.chunk, "layers": layers}
    kind = MESSAGE if show.is_message(event) else "chunk"
    if kind == MESSAGE:
        args["link"] = event.unit
    if event.slowdown_ns:
        args["slowdown_us"] = event.slowdown_ns // 1000
    whole = (f"{stream.name} {layers}", (event.start_ns, event.end_ns), kind)
    parts = ((text, times, "part") for text, times in zip(_PARTS, event.parts_ns, strict=False))
    for text, (start_ns, end_ns), category in (whole, *parts):
        yield {
            "ph": "X",
            "name": text,
            "cat": category,
            "ts": start_ns / 1000,
            "dur": (end_ns - start_ns) / 1000,
            **show.track(event),
            "args": args,
        }


def _arrow_event(show: _Show, event: Interval) -> dict[str, Any]:
    """Return the end, the beginning, or a point in between of the arrow of a request."""
    is_first = event.chunk == 0
    at_ns = max(event.start_ns, event.end_ns - 1) if is_first else event.start_ns
    return {
        "ph": "s" if is_first else "f" if show.is_last(event) else "t",
        "name": f"request {event.request}",
        "cat": "request",
        "id": event.request * len(show.trace.streams) + event.stream,
        "ts": at_ns / 1000,
        "bp": "e",
        **show.track(event),
    }


def _on_their_way(show: _Show) -> Iterator[tuple[int, int]]:
    """Yield (nanosecond, requests from then on) at each change."""
    changes: Counter[int] = Counter()
    ends: dict[tuple[int, int], int] = {}
    for event in show.trace.events:
        if show.is_message(event):
            continue
        changes[event.start_ns] += event.chunk == 0
        if show.is_last(event):
            request = event.stream, event.request
            ends[request] = max(event.end_ns, ends.get(request, 0))
    for end_ns in ends.values():
        changes[end_ns] -= 1
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
