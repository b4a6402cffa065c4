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

from ...formulations.deployment import Deployment
from ...formulations.files import Schema, dump
from ...formulations.plan import Plan
from ...formulations.simulate import Trace
from ...formulations.validation import STRICT
from ..history import History, Work, history
from ..measurement import MeasuredTrace

ON_THEIR_WAY = "requests on their way"
"""Counter of requests of which a chunk has begun and the last one has not ended."""

MEMORY = "memory"

_PROCESS = 1

_PARTS = ("copy in", "run", "copy out")
"""Names of `Work.parts_ns`; a simulated chunk has no parts."""


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
class _Show:
    """A trace in the form in which it is written: its title, what ran or was played, and what happened."""

    title: str
    origin: TraceDocument
    past: History

    def track(self, work: Work) -> dict[str, int]:
        """Return where the slice of a chunk is drawn."""
        return {"pid": _PROCESS, "tid": self.past.units.index(work.unit) + 1}

    def is_last(self, work: Work) -> bool:
        """Return whether it is the last chunk of its request."""
        return work.chunk == len(self.past.streams[work.stream].chunks) - 1


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
    return _Show(
        title=f"measured: {trace.deployment}",
        origin=TraceDocument(traceEvents=(), measured=trace.deployment),
        past=history(trace),
    )


def _simulated(trace: Trace) -> _Show:
    played = Played(plan=trace.plan, units=trace.units, arrivals_us=trace.arrivals_us, names=trace.names)
    return _Show(
        title=f"simulated: {trace.plan}",
        origin=TraceDocument(traceEvents=(), simulated=played),
        past=history(trace),
    )


def _events(show: _Show, memory_steps: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """Yield names of the tracks, slices and arrows in order of time, then the counters."""
    yield _metadata("process_name", 0, name=show.title)
    for track, unit in enumerate(show.past.units, start=1):
        yield _metadata("thread_name", track, name=unit)
        yield _metadata("thread_sort_index", track, sort_index=track)
    for work in show.past.works:
        yield from _slice_events(show, work)
        if len(show.past.streams[work.stream].chunks) > 1:
            yield _arrow_event(show, work)
    for at_ns, count in _on_their_way(show):
        yield _counter_event(ON_THEIR_WAY, at_ns, requests=count)
    for at_us, used in memory_steps:
        yield _counter_event(MEMORY, at_us * 1000, bytes=used)


def _metadata(what: str, track: int, **values: object) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": _PROCESS, "tid": track, "args": values}


def _slice_events(show: _Show, work: Work) -> Iterator[dict[str, Any]]:
    stream = show.past.streams[work.stream]
    chunk = stream.chunks[work.chunk]
    layers = f"{chunk.start}-{chunk.stop - 1}"
    args = {"request": work.request, "stream": stream.name, "network": chunk.network}
    args |= {"chunk": work.chunk, "layers": layers}
    if work.slowdown_ns:
        args["slowdown_us"] = work.slowdown_ns // 1000
    whole = (f"{stream.name} {layers}", (work.start_ns, work.end_ns), "chunk")
    parts = ((text, times, "part") for text, times in zip(_PARTS, work.parts_ns, strict=False))
    for text, (start_ns, end_ns), category in (whole, *parts):
        yield {
            "ph": "X",
            "name": text,
            "cat": category,
            "ts": start_ns / 1000,
            "dur": (end_ns - start_ns) / 1000,
            **show.track(work),
            "args": args,
        }


def _arrow_event(show: _Show, work: Work) -> dict[str, Any]:
    """Return the end, the beginning, or a point in between of the arrow of a request."""
    is_first = work.chunk == 0
    at_ns = max(work.start_ns, work.end_ns - 1) if is_first else work.start_ns
    return {
        "ph": "s" if is_first else "f" if show.is_last(work) else "t",
        "name": f"request {work.request}",
        "cat": "request",
        "id": work.request * len(show.past.streams) + work.stream,
        "ts": at_ns / 1000,
        "bp": "e",
        **show.track(work),
    }


def _on_their_way(show: _Show) -> Iterator[tuple[int, int]]:
    """Yield (nanosecond, requests from then on) at each change."""
    changes: Counter[int] = Counter()
    for work in show.past.works:
        changes[work.start_ns] += work.chunk == 0
        changes[work.end_ns] -= show.is_last(work)
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
