"""Trace files, read again: the very trace that was written, or an error that says what was changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...formulations.deployment import Deployment
from ...formulations.errors import GaplessError, InvalidInputError
from ...formulations.files import load
from ...formulations.history import History, Interval, executed, simulated
from .trace_check import check_trace, nanoseconds
from .trace_export import MEMORY, MESSAGE, TRACE, Played, TraceDocument, trace_parts

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
