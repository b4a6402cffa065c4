"""Messages between devices: what each link took, beside what was predicted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

from ...executor.measurement import LinkTimes
from ...formulations.history import is_message, link_name
from ..words import microseconds, size
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table

_FAR = 0.2
"""Error of a prediction, as a share, from which on it is marked."""


def messages(subject: Subject) -> Table | None:
    """Return the messages of an execution by link; None: none were measured."""
    links = () if subject.measurement is None else subject.measurement.links
    if not links:
        return None
    foretold = _predicted_us(subject)
    titles = (
        *columns("pipeline", "link"),
        *numbers("bytes", "predicted", "took", "p95", "error", "waited before"),
    )
    caption = "Messages between devices: predicted, and measured (median)"
    return table(caption, titles, [_row(link, foretold) for link in links])


def _predicted_us(subject: Subject) -> Mapping[str, float]:
    """Return what a message takes on each link in the simulation.

    What goes there and back inside a group is one message in it, which nothing measured compares with.
    """
    trace = subject.predicted
    if trace is None:
        return {}
    layers = {chunk.unit: (chunk.start, chunk.stop) for stream in trace.streams for chunk in stream.chunks}
    inside = {link_name(*pair) for pair in permutations(layers, 2) if len({layers[one] for one in pair}) == 1}
    return {
        event.unit: (event.end_ns - event.start_ns) / 1000
        for event in trace.events
        if is_message(event, trace.streams) and event.unit not in inside
    }


def _row(link: LinkTimes, foretold: Mapping[str, float]) -> list[TableCell | str]:
    name = link_name(link.source, link.target)
    predicted_us = foretold.get(name)
    error = None if predicted_us is None else predicted_us / link.time_us.median - 1
    return [
        TableCell(text=link.stream, kind="name"),
        TableCell(text=name, kind="name"),
        size(link.size),
        microseconds(predicted_us),
        microseconds(link.time_us.median),
        microseconds(link.time_us.p95),
        TableCell(text="-")
        if error is None
        else TableCell(text=f"{100 * error:+.0f} %", kind="warn" if abs(error) > _FAR else ""),
        microseconds(link.queued_us.median),
    ]
