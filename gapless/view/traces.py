"""Histories as rows of a chart: what stands where, and what it is called."""

from __future__ import annotations

import string
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from ..formulations.history import History, Interval, is_message
from ..formulations.streams import Stream

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Rows of what was at work.

    `start_ns`, `end_ns`: the time that is shown; what is in the rows may reach beyond.
    """

    rows: tuple[tuple[str, tuple[Interval, ...]], ...]
    """Units in use with what they did, in order of the start."""
    start_ns: int
    end_ns: int
    outputs_ns: tuple[int, ...]  # when each request (of each stream) or round was through, in order
    noun: str  # what is numbered: "request" or "round"
    numbered: bool  # whether numbers are part of the names
    legend: tuple[tuple[str, str], ...] = ()  # what the letters in the names mean; empty without letters
    headings: tuple[tuple[int, str], ...] = ()
    """What stands above the rows of each pipeline of a plan of several: (number of its first row, text)."""
    links: frozenset[str] = frozenset()  # which rows are links, with messages

    @property
    def shown(self) -> tuple[int, int]:
        """First and last number of what is shown."""
        numbers = [event.request for _, events in self.rows for event in events]
        return min(numbers, default=0), max(numbers, default=0)

    def name(self, event: Interval) -> str:
        """Return what stands for it in a chart."""
        mark = letter(event.stream) if self.legend else ""
        return mark + (str(event.request % 10) if self.numbered else "")

    def colour(self, event: Interval) -> int:
        """Return a number: what has the same one has the same colour."""
        return event.stream if self.legend else event.request


def timeline(trace: History) -> Timeline:
    """Return all of a history."""
    # A simulated workload is one round, and each of its requests a stream with a name.
    apart = side_by_side(trace)
    named = not apart and (len(trace.streams) > 1 or (trace.in_rounds and not trace.measured))
    outputs_ns = tuple(trace.outputs_ns())
    rows = tuple((unit, trace.on(unit)) for unit in trace.used_units)
    return Timeline(
        rows=rows,
        start_ns=0,
        end_ns=max(outputs_ns, default=1),
        outputs_ns=outputs_ns,
        noun="round" if trace.in_rounds and trace.measured else "request",
        numbered=not named or any(event.request for event in trace.events),
        legend=tuple((letter(n), stream.name) for n, stream in enumerate(trace.streams)) if named else (),
        headings=tuple(headings(trace.events, trace.used_units, trace.streams)) if apart else (),
        links=frozenset(event.unit for event in trace.events if is_message(event, trace.streams)),
    )


def side_by_side(trace: History) -> bool:
    """Return whether it is of a plan of several streams, each on rows of its own."""
    return trace.plan is not None and len(trace.streams) > 1 and not trace.in_rounds


def headings(
    events: Sequence[Interval], rows: Sequence[str], streams: Sequence[Stream]
) -> Iterator[tuple[int, str]]:
    """Yield where in the rows of a chart each stream begins, and its name; rows are in order of streams."""
    own = {event.unit: event.stream for event in events}
    before = None
    for number, unit in enumerate(rows):
        if unit in own and own[unit] != before:
            before = own[unit]
            yield number, streams[before].name


def row_names(rows: Sequence[str], headed: Container[int] = ()) -> tuple[str, ...]:
    """Return what rows are called: a link below the row of its sender by its target alone.

    `headed`: numbers of rows below a heading: what is above that does not count.
    """
    return tuple(
        f"-> {unit.removeprefix(f'{before} -> ')}"
        if unit.startswith(f"{before} -> ") and number not in headed
        else unit
        for number, (before, unit) in enumerate(zip(("", *rows), rows, strict=False))
    )


def letter(number: int) -> str:
    """Return what stands for a request of a workload, or for a stream."""
    return _LETTERS[number % len(_LETTERS)]


def steady(whole: Timeline, outputs: int) -> Timeline:
    """Return the part of a timeline in which so many requests come out, from the middle of all; at least one.

    At its ends a pipeline fills and drains; in the middle it is as it would be for ever.
    """
    count = max(1, outputs)
    if count >= len(whole.outputs_ns):
        return whole
    first = (len(whole.outputs_ns) - count) // 2
    start_ns = whole.outputs_ns[first - 1] if first else whole.start_ns
    end_ns = max(start_ns + 1, whole.outputs_ns[first + count - 1])
    rows = tuple(
        (unit, tuple(event for event in events if event.end_ns > start_ns and event.start_ns < end_ns))
        for unit, events in whole.rows
    )
    return replace(whole, rows=rows, start_ns=start_ns, end_ns=end_ns)
