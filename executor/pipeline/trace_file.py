"""Traces as Chrome trace JSON, which Perfetto shows: written, checked and read again.

Traces as Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing show. One track a unit, and
one a link; a slice for each chunk of each request, with its copies inside, and for each message; arrows from
chunk to chunk of one request; counters of the requests on their way, and of memory where it is known. The
file also says what ran, so that `load_trace` gets the same trace back.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...formulations.deployment import Deployment
from ...formulations.errors import GaplessError, InvalidInputError
from ...formulations.files import Schema, dump, load
from ...formulations.history import History, Interval, executed, is_message, simulated
from ...formulations.plan import Plan
from ...formulations.streams import Stream
from ...formulations.validation import STRICT

_Track = tuple[int, int]
"""Process and thread number."""

_TIMED = {"name": (str,), "pid": (int,), "ts": (int, float)}
_ON_TRACK = {**_TIMED, "tid": (int,)}
_NEEDED: dict[str, dict[str, tuple[type, ...]]] = {
    "X": {**_ON_TRACK, "dur": (int, float)},
    "M": {"name": (str,), "pid": (int,), "tid": (int,), "args": (dict,)},
    "C": {**_TIMED, "args": (dict,)},
    **{kind: {**_ON_TRACK, "id": (int, str)} for kind in "stf"},
}
"""What events of each kind must have, and of which types."""


def nanoseconds(microseconds: float) -> int:
    """Return a time of a trace as whole nanoseconds: exactly what was written, up to 2**51 ns (26 days)."""
    return round(microseconds * 1000)


def check_trace(document: object) -> list[str]:
    """Return the defects of a Chrome trace document that was read with `json`; empty for a good one.

    Slices of a track must lie apart or one inside the other, and a unit works on one chunk at a time;
    tracks must have names, every arrow must go forward in time from slice to slice, and a counter must have
    one value at a time.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("traceEvents"), list | tuple):
        return ["it is no Chrome trace document: an object with a list of traceEvents is needed"]
    faults = [_fault(event) for event in document["traceEvents"]]
    defects = [f"traceEvents[{number}]: {fault}" for number, fault in enumerate(faults) if fault]
    events = [event for event, fault in zip(document["traceEvents"], faults, strict=True) if not fault]
    slices: dict[_Track, list[tuple[int, int, str]]] = {}
    for event in (event for event in events if event["ph"] == "X"):
        start = nanoseconds(event["ts"])
        slices.setdefault(_track(event), []).append((start, start + nanoseconds(event["dur"]), event["name"]))
    named = {_track(event) for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    defects += [f"track {track} has no name" for track in slices if track not in named]
    for track, own in slices.items():
        defects += _nesting_defects(track, own)
    defects += _double_defects(events)
    return [*defects, *_arrows_defects(events, slices), *_counter_defects(events)]


def _track(event: Mapping[str, Any]) -> _Track:
    return event["pid"], event["tid"]


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
    return _counter_fault(event["args"]) if event["ph"] == "C" else None


def _counter_fault(values: Mapping[str, object]) -> str | None:
    if not values:
        return "the counter has no value"
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            return f"{name} is {value!r}, must be a number of at least 0 and finite"
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


def _double_defects(events: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield where a chunk lies inside another one: it nests, but no unit works like that."""
    chunks = [event for event in events if event["ph"] == "X" and event.get("cat") == "chunk"]
    last: dict[_Track, tuple[int, str]] = {}
    for event in sorted(chunks, key=lambda event: (event["ts"], -event["dur"])):
        track, start, length = _track(event), nanoseconds(event["ts"]), nanoseconds(event["dur"])
        end, name = last.get(track, (0, ""))
        if length and start + length <= end:
            yield f"track {track}: {event['name']!r} at {start} ns lies inside of {name!r}"
        elif length:
            last[track] = start + length, event["name"]


def _outer(slices: list[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """Return start and end of the slices that are in no other, in order."""
    found: list[tuple[int, int]] = []
    for start, end, _ in _by_start(slices):
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


def _arrows_defects(
    events: list[Mapping[str, Any]], slices: Mapping[_Track, list[tuple[int, int, str]]]
) -> Iterator[str]:
    arrows: dict[object, list[tuple[int, str, _Track]]] = {}
    for event in (event for event in events if event["ph"] in "stf"):
        arrows.setdefault(event["id"], []).append((nanoseconds(event["ts"]), event["ph"], _track(event)))
    outer = {track: _outer(own) for track, own in slices.items()}
    for name, ends in arrows.items():
        kinds = "".join(kind for _, kind, _ in sorted(ends, key=lambda end: (end[0], "stf".index(end[1]))))
        if kinds != f"s{'t' * (len(kinds) - 2)}f":
            yield f"arrow {name!r} goes {kinds!r} in order of time, must begin with 's' and end with 'f'"
        for at, _, track in ends:
            own = outer.get(track, [])
            before = bisect_right(own, at, key=lambda piece: piece[0]) - 1
            if before < 0 or at > own[before][1]:
                yield f"arrow {name!r} touches no slice of track {track} at {at} ns"


def _counter_defects(events: list[Mapping[str, Any]]) -> Iterator[str]:
    last: dict[tuple[int, str], int] = {}
    for event in (event for event in events if event["ph"] == "C"):
        counter, at = (event["pid"], event["name"]), nanoseconds(event["ts"])
        if at <= last.get(counter, -1):
            yield f"counter {event['name']!r} has a value at {at} ns behind the one at {last[counter]} ns"
        last[counter] = at


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


TRACE_FORMAT = TRACE.format

MAX_DEFECTS = 10
"""Defects that are named; a file that was edited by a program may have one in each line."""


def load_trace(path: str | Path) -> History:
    """Read a file that `trace_parts` wrote of a measured trace, exactly to the nanosecond.

    Raises SchemaVersionError: it is a trace of another program, or of a version that this gapless does not
    read.
    """
    found = read_trace(path)
    if not found.measured:
        raise InvalidInputError(
            f"{path} is a simulated trace, a measured one is needed: `gapless tools trace` without "
            "--simulated"
        )
    return found


def read_trace(path: str | Path) -> History:
    """Read a file that `trace_parts` wrote, measured or simulated; errors as for `load_trace`."""
    document = load(path, TRACE)
    if (document.measured is None) == (document.simulated is None):
        raise InvalidInputError(f"{path} must say what was either measured or simulated")
    defects = check_trace({"traceEvents": list(document.traceEvents)})
    if defects:
        raise _changed(path, defects)
    try:
        found = _trace(document)
        written = json.loads("".join(trace_parts(found)))["traceEvents"]
    except (GaplessError, KeyError, IndexError, ValueError, TypeError, OverflowError) as error:
        missing = f"no {error}" if isinstance(error, KeyError) else str(error)
        what = f"its slices do not tell what ran: {missing}"
        raise _changed(path, [what]) from error
    defects = list(_differences(list(document.traceEvents), written))
    if defects:
        raise _changed(path, defects)
    return found


def _changed(path: str | Path, defects: list[str]) -> InvalidInputError:
    hidden = len(defects) - MAX_DEFECTS
    more = [f"... and {hidden} more"] if hidden > 0 else []
    return InvalidInputError(
        f"{path} is not as gapless wrote it; write it again with `gapless tools trace`:",
        defects[:MAX_DEFECTS] + more,
    )


def _trace(document: TraceDocument) -> History:
    slices = [event for event in document.traceEvents if event["ph"] == "X"]
    if document.measured is not None:
        return executed(document.measured, _measured(document.measured, slices))
    assert document.simulated is not None
    return _simulated(document.simulated, slices)


def _measured(deployment: Deployment, slices: list[dict[str, Any]]) -> Iterator[Interval]:
    """Yield the events: each chunk is one slice, and the run inside it is another."""
    streams = {stream.name: index for index, stream in enumerate(deployment.streams)}
    runs = _runs(slices)
    for whole in (event for event in slices if event["cat"] == "chunk"):
        name, request, chunk = _key(whole)
        run, stream = runs.get((name, request, chunk)), streams.get(name)
        chunks = () if stream is None else deployment.streams[stream].chunks
        if run is None or stream is None or not 0 <= chunk < len(chunks):
            raise ValueError(f"chunk {chunk} of request {request} of {name!r} did not run")
        start_ns, run_ns = nanoseconds(whole["ts"]), nanoseconds(run["ts"])
        yield Interval(
            start_ns=start_ns,
            engine_ns=(run_ns, run_ns + nanoseconds(run["dur"])),
            end_ns=start_ns + nanoseconds(whole["dur"]),
            stream=stream,
            request=request,
            chunk=chunk,
            unit=chunks[chunk].unit,
        )
    for whole in (event for event in slices if event["cat"] == MESSAGE):
        name, request, chunk = _key(whole)
        start_ns = nanoseconds(whole["ts"])
        yield Interval(
            start_ns=start_ns,
            end_ns=start_ns + nanoseconds(whole["dur"]),
            stream=streams[name],
            request=request,
            chunk=chunk,
            unit=_link(whole),
        )


def _runs(slices: list[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Return the runs inside chunks, by the key of the chunk."""
    return {_key(event): event for event in slices if event["name"] == "run" and event["cat"] == "part"}


def _link(event: dict[str, Any]) -> str:
    name = event["args"]["link"]
    if not isinstance(name, str):
        raise ValueError(f"link is {name!r}, must be a name")
    return name


def _key(event: dict[str, Any]) -> tuple[str, int, int]:
    args = event["args"]
    return args["stream"], _whole(args, "request"), _whole(args, "chunk")


def _whole(args: dict[str, Any], name: str, default: int | None = None) -> int:
    value = args[name] if default is None else args.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is {value!r}, must be a whole number")
    return value


def _simulated(played: Played, slices: list[dict[str, Any]]) -> History:
    names = () if played.streams else played.names or played.plan.order
    chunks = played.streams[0].chunks if played.streams else played.plan.chunks
    numbers = {name: number for number, name in enumerate(names)}
    events, runs = [], _runs(slices)
    for whole in (event for event in slices if event["cat"] != "part"):
        stream, request, chunk = _key(whole)
        run = runs.get((stream, request, chunk)) if whole["cat"] != MESSAGE else None
        own = played.plan.of(stream) if names else chunks
        start_ns, end_ns = _span_ns(whole)
        events.append(
            Interval(
                start_ns=start_ns,
                end_ns=end_ns,
                engine_ns=() if run is None else _span_ns(run),
                stream=numbers[stream] if names else 0,
                request=request,
                chunk=chunk,
                unit=_link(whole) if whole["cat"] == MESSAGE else own[chunk].unit,
                slowdown_ns=1000 * _whole(whole["args"], "slowdown_us", 0),
            )
        )
    return simulated(
        played.plan,
        events,
        units=played.units,
        arrivals_us=played.arrivals_us,
        names=played.names,
        streams=played.streams,
    )


def _span_ns(event: dict[str, Any]) -> tuple[int, int]:
    """Return start and end of a slice of a simulation, whose times are whole microseconds."""
    start_ns = 1000 * (nanoseconds(event["ts"]) // 1000)
    return start_ns, start_ns + 1000 * (nanoseconds(event["dur"]) // 1000)


def _differences(found: list[dict[str, Any]], written: list[dict[str, Any]]) -> Iterator[str]:
    """Yield where a file differs from what is written of the trace in it; memory is in the file alone."""
    kept = [(number, event) for number, event in enumerate(found) if not _is_memory(event)]
    for (number, event), right in zip(kept, written, strict=False):
        if event != right:
            keys = [key for key in (*right, *event) if event.get(key) != right.get(key)]
            yield f"traceEvents[{number}]: {keys[0]} is {event.get(keys[0])!r}, was {right.get(keys[0])!r}"
    if len(kept) != len(written):
        yield f"traceEvents has {len(kept)} events, was written with {len(written)}"


def _is_memory(event: dict[str, Any]) -> bool:
    return (event["ph"], event["name"]) == ("C", MEMORY)
