"""The Gantt chart: predicted and measured traces, one under the other, on one scale of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from operator import itemgetter
from typing import Any

from ...answers.charts import Span, Tick, span, time_ticks
from ...answers.words import capital, counted, microseconds, percent
from ...formulations.history import Interval, is_message
from ..traces import headings, row_names
from .execution import unlike
from .played import Lane, Played, lanes_of, played, together
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table
from .ways import Step, script_data, steps_of

ROW, TITLE, STRIP, AXIS, GAP, HEADING = 26, 26, 12, 26, 10, 24
"""Heights in pixels: a unit, the title of a trace, the strip of contention, the axis, between traces, the
heading of a pipeline."""

COLOURS = 8
"""Colours of requests; they repeat."""

_PRINTED = 640
_CHARACTER = 7
"""Width of a narrow or printed chart, and of a character, pixels: what labels are drawn without script."""

_DENSE = 150
"""Blocks in one row."""

_MOST_LEGEND = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One chunk of one request: where it lies, its colour, its label if it is wide enough.

    And, where known and shown, its lost time, and when it copies.
    """

    x: float
    width: float
    colour: int
    label: str
    lost: Span | None = None
    copies: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRow:
    """What one unit did.

    `busy_us`, `bubble_us`: their sums.
    """

    unit: str
    name: str
    """What the row is called: its unit, or of a link its target where the row of its sender is above."""
    link: bool  # whether it is a link, with messages
    heading: str  # what stands above it, if it is the first row of a pipeline of several; else empty
    y: int  # pixels from the top of the chart
    blocks: tuple[Block, ...]  # in order of time
    bubbles: tuple[Span, ...]  # idle times between its first and its last work
    busy_us: float
    bubble_us: float
    whole: Span | None  # from its first to its last work; None: it did nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One trace.

    `title`, `note`: what it is, and what of it is shown; `y`, `height`: pixels.
    """

    title: str
    note: str
    y: int
    height: int
    contention: tuple[Span, ...]  # when requests of high contention run at once
    contention_us: float  # the sum of these times
    rows: tuple[UnitRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A Gantt chart.

    `height`, `axis_y`: pixels; `strip`, `slowed`, `linked`, `copied`: whether there are contention, lost
    time, messages and copies to be marked.
    """

    end_us: float  # what is 100 percent
    bands: tuple[Band, ...]  # the traces
    ticks: tuple[Tick, ...]  # of the axis, without zoom
    height: int
    axis_y: int
    legend: tuple[tuple[int, str, int], ...]
    """Colour, name and lane of each request, where they have names and are few."""
    text: str  # what there is to see, in words, and how many blocks are not seen before one zooms in
    units: Table
    requests: Table | None  # the way of each request, where they have names and are few
    data: dict[str, Any]  # what the script shows of each block, in the order of the blocks
    blocks: int  # how many
    strip: bool
    slowed: bool
    linked: bool
    copied: bool
    dense: bool  # whether blocks are so narrow, without zoom, that colours of requests would be a flicker


def timeline(subject: Subject) -> Timeline | None:
    """Return the chart of a subject; None: no trace of it is known."""
    traces, lanes = _noted(subject, played(subject)), lanes_of(subject)
    if not traces:
        return None
    end_us = max(trace.end_us for trace in traces)
    units = _units(subject, traces)
    requests = subject.problem.formulation.arrivals(subject.problem)
    above = _headings(subject, traces, units)
    strip = bool(requests) and sum(any(lane.high) for lane in lanes) > 1
    bands, y = [], 0
    for trace in traces:
        band = _band(trace, lanes, units, end_us, y, above=above, strip=strip)
        if subject.deployment.is_divided:
            band = replace(band, rows=tuple(_with_copies(row, trace, end_us) for row in band.rows))
        bands.append(band)
        y += band.height + GAP
    named = bool(requests) and len(lanes) <= _MOST_LEGEND
    steps = [steps_of(subject, trace) for trace in traces]
    return Timeline(
        end_us=end_us,
        bands=tuple(bands),
        ticks=time_ticks(end_us),
        height=y + AXIS,
        axis_y=y,
        legend=tuple(_legend(lanes)) if named else (),
        text=_words(traces, bands),
        units=_unit_table(bands, traces),
        requests=_request_table(traces, steps, lanes) if named else None,
        data=script_data(subject, traces, steps, units, end_us),
        blocks=sum(len(trace.events) for trace in traces),
        strip=strip,
        dense=max(len(row.blocks) for band in bands for row in band.rows) > _DENSE,
        linked=any(row.link for band in bands for row in band.rows),
        copied=any(block.copies for band in bands for row in band.rows for block in row.blocks),
        slowed=any(event.slowdown_ns for trace in traces for event in trace.events),
    )


def _legend(lanes: Sequence[Lane]) -> list[tuple[int, str, int]]:
    return sorted((lane.colour, lane.name, number) for number, lane in enumerate(lanes))


def _noted(subject: Subject, traces: Sequence[Played]) -> tuple[Played, ...]:
    """Return traces with a note on the measured one where it was unlike the measurement."""
    note = unlike(subject)
    return tuple(
        replace(trace, note="; ".join(filter(None, (trace.note, note))))
        if trace.title == "measured"
        else trace
        for trace in traces
    )


def _units(subject: Subject, traces: Sequence[Played]) -> tuple[str, ...]:
    """Return the rows: units in the order of the chunks of a single stream, else of the platform.

    Of a plan of several streams side by side, and where messages have rows: in the order of the streams, as
    their first requests pass them.
    """
    used = {event.unit for trace in traces for event in trace.events}
    streams = subject.deployment.streams
    if _apart(subject) or not used <= set(subject.problem.platform.unit_names):
        events = (event for trace in traces for event in trace.events)
        passed = sorted(events, key=lambda event: (event.stream, event.request, event.start_ns))
        return tuple(dict.fromkeys(event.unit for event in passed))
    order = subject.deployment.units if len(streams) == 1 else subject.problem.platform.unit_names
    return tuple(unit for unit in order if unit in used)


def _apart(subject: Subject) -> bool:
    """Return whether it is a plan of several streams side by side, each of which has a heading."""
    deployment = subject.deployment
    return deployment.rounds is None and len(deployment.streams) > 1 and subject.plan is not None


def _headings(subject: Subject, traces: Sequence[Played], units: Sequence[str]) -> dict[int, str]:
    """Return what stands above which rows."""
    events = [event for trace in traces for event in trace.events]
    return dict(headings(events, units, subject.deployment.streams)) if _apart(subject) else {}


def _band(
    trace: Played,
    lanes: Sequence[Lane],
    units: Sequence[str],
    end_us: float,
    y: int,
    *,
    above: Mapping[int, str],
    strip: bool,
) -> Band:
    windows = tuple(together(trace.events, lanes)) if strip else ()
    top = y + TITLE + (STRIP if strip else 0)
    rows = []
    for number, (unit, name) in enumerate(zip(units, row_names(units, above), strict=True)):
        top += HEADING if number in above else 0
        row = _row(unit, trace.on(unit), lanes, end_us, top)
        rows.append(replace(row, name=name.replace("->", "\u2192"), heading=above.get(number, "")))
        top += ROW
    return Band(
        title=trace.title,
        note=trace.note,
        y=y,
        height=top - y,
        contention=tuple(span(start, end, end_us) for start, end in windows),
        contention_us=sum(end - start for start, end in windows),
        rows=tuple(rows),
    )


def _row(unit: str, events: Sequence[Interval], lanes: Sequence[Lane], end_us: float, y: int) -> UnitRow:
    idle = [(a.end_us, b.start_us) for a, b in pairwise(events) if b.start_us > a.end_us]
    link = any(is_message(event, lanes) for event in events)
    if link:
        idle = []  # a link that waits wastes nothing
    return UnitRow(
        unit=unit,
        name=unit,
        link=link,
        heading="",
        y=y,
        blocks=tuple(_block(event, lanes, end_us) for event in events),
        bubbles=tuple(span(start, end, end_us) for start, end in idle),
        busy_us=sum(event.end_us - event.start_us for event in events),
        bubble_us=sum(end - start for start, end in idle),
        whole=span(events[0].start_us, events[-1].end_us, end_us) if events and not link else None,
    )


def _block(event: Interval, lanes: Sequence[Lane], end_us: float) -> Block:
    place, label = span(event.start_us, event.end_us, end_us), _label(event, lanes)
    fits = place.width * _PRINTED / 100 >= len(label) * _CHARACTER + 4
    lost = None
    if event.slowdown_ns:
        lost = span((event.end_ns - event.slowdown_ns) / 1000, event.end_us, end_us)
    return Block(
        x=place.x, width=place.width, colour=_colour(event, lanes), label=label if fits else "", lost=lost
    )


def _with_copies(row: UnitRow, trace: Played, end_us: float) -> UnitRow:
    """Return a row whose blocks show when they copy: the transfer between units that share chunks."""
    blocks = []
    for block, event in zip(row.blocks, trace.on(row.unit), strict=True):
        parts = event.parts_ns[::2]  # of copy in, run and copy out
        spans = (span(start / 1000, end / 1000, end_us) for start, end in parts)
        blocks.append(replace(block, copies=tuple(part for part in spans if part.width)))
    return replace(row, blocks=tuple(blocks))


def _colour(event: Interval, lanes: Sequence[Lane]) -> int:
    """Return the colour of a request: the same in both traces; neighbours differ."""
    lane = lanes[event.stream]
    return (lane.colour + event.request * (1 if lane.apart else len(lanes))) % COLOURS


def _label(event: Interval, lanes: Sequence[Lane]) -> str:
    lane = lanes[event.stream]
    return lane.name if lane.alone else str(event.request)


def _words(traces: Sequence[Played], bands: Sequence[Band]) -> str:
    """Return what the chart shows, for those who do not see it."""
    parts = []
    for trace, band in zip(traces, bands, strict=True):
        used = [row for row in band.rows if row.blocks and not row.link]
        links = [row for row in band.rows if row.blocks and row.link]
        idle = sum(row.bubble_us for row in used)
        words = (
            f"{trace.title}: {len({(w.stream, w.request) for w in trace.events})} requests in "
            f"{microseconds(trace.end_us)} on {len(used)} units"
            f"{f' and {len(links)} links' if links else ''}, "
            f"{microseconds(idle)} of bubbles in all"
        )
        if band.contention:
            words += f", {microseconds(band.contention_us)} with two or more requests of high contention"
        parts.append(words)
    hidden = sum(covered(row.blocks) for band in bands for row in band.rows)
    text = f"{capital('; '.join(parts))}."
    if hidden:
        text += (
            f" {counted(hidden, 'block')} not seen at a width of {_PRINTED} pixels, where others lie over "
            "them: zoom in."
        )
    return text


def covered(blocks: Sequence[Block]) -> int:
    """Return how many blocks of a row lie wholly under later ones in a narrow or printed chart."""
    ends = [
        (
            (first := int(block.x * _PRINTED / 100)),
            max(first + 1, round((block.x + block.width) * _PRINTED / 100)),
        )
        for block in blocks
    ]
    hidden = 0
    for place, (reached, stop) in enumerate(ends):
        reach = reached
        for start, end in islice(ends, place + 1, None):
            if start > reach or reach >= stop:
                break
            reach = max(reach, end)
        hidden += reach >= stop
    return hidden


def _unit_table(bands: Sequence[Band], traces: Sequence[Played]) -> Table:
    rows = []
    for band, trace in zip(bands, traces, strict=True):
        for row in band.rows:
            events = trace.on(row.unit)
            if not events:
                rows.append((band.title, row.unit, "0", "-", "-", "-", "-", "-"))
                continue
            whole = events[-1].end_us - events[0].start_us
            rows.append(
                (
                    band.title,
                    row.unit,
                    f"{len(events):,}",
                    microseconds(events[0].start_us),
                    microseconds(events[-1].end_us),
                    microseconds(row.busy_us),
                    "-" if row.link else microseconds(row.bubble_us),
                    percent(round(1000 * row.busy_us / whole) if whole else None),
                )
            )
    return table(
        "What each unit did",
        columns(
            "trace",
            "unit",
            *numbers("blocks", "first start", "last end", "busy", "bubbles", "busy in between"),
        ),
        rows,
    )


def _request_table(
    traces: Sequence[Played], steps: Sequence[Mapping[Interval, Step]], lanes: Sequence[Lane]
) -> Table:
    rows = []
    for trace, taken in zip(traces, steps, strict=True):
        for number, lane in enumerate(lanes):
            own = [taken[event] for event in trace.events if event.stream == number]
            runs_us = sum(step.event.end_us - step.event.start_us for step in own)
            lost_us: dict[str, float] = defaultdict(float)
            for step in own:
                for other, cost_us in step.beside:
                    lost_us[lanes[other.stream].name] += cost_us
            by_cost = sorted(lost_us.items(), key=itemgetter(1), reverse=True)
            most = [f"{name} {microseconds(cost_us)}" for name, cost_us in by_cost if cost_us]
            rows.append(
                (
                    trace.title,
                    TableCell(text=lane.name, kind="name"),
                    f"{len(own):,}",
                    TableCell(text=" ".join(dict.fromkeys(step.event.unit for step in own)), kind="text"),
                    microseconds(runs_us),
                    microseconds(sum(step.wait_us for step in own)),
                    TableCell(text=", ".join(most) or "-", kind="text"),
                )
            )
    return table(
        "The way of each request",
        columns("trace", "request", *numbers("blocks"), "units", *numbers("runs", "waits"), "lost to"),
        rows,
    )
