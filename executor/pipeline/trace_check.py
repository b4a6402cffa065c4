"""The check of Chrome trace documents: slices that nest, arrows that go forward, counters that count."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

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
