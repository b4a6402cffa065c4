"""The Gantt chart: predicted and measured traces, one under the other, on one scale of time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Any

from ...answers.blocks import Column, Drawing, Table, Unit, table
from ...answers.charts import Block, Gantt, Row, Span, Tick, span, time_ticks
from ...answers.traces import headings, unit_rows
from ...answers.words import capital, counted, microseconds
from ...formulations.history import Interval, is_message
from .played import Lane, Played, lanes_of, played, together, unlike
from .subject import Subject
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
class Placed:
    """The chart of a trace, and where it lies: pixels from the top of all charts, and those of each row."""

    chart: Gantt
    y: int
    height: int
    rows: tuple[tuple[int, Row], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline(Drawing):
    """A Gantt chart.

    `height`, `axis_y`: pixels; `strip`, `slowed`, `linked`, `copied`: whether there are contention, lost
    time, messages and copies to be marked.
    """

    end_ns: int  # what is 100 percent
    bands: tuple[Placed, ...]  # the traces
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

    def place(self, start_ns: float, end_ns: float) -> Span:
        """Return where a part of the time lies."""
        return span(start_ns, end_ns, self.end_ns)

    def label(self, block: Block) -> str:
        """Return the label of a block if a narrow or printed chart has room for it."""
        width = self.place(block.start_ns, block.end_ns).width * _PRINTED / 100
        return block.label if width >= len(block.label) * _CHARACTER + 4 else ""


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
        band = _placed(_chart(subject, trace, lanes, units, above, strip=strip), y, strip=strip)
        bands.append(band)
        y += band.height + GAP
    rows = [row for band in bands for _, row in band.rows]
    named = bool(requests) and len(lanes) <= _MOST_LEGEND
    steps = [steps_of(subject, trace) for trace in traces]
    return Timeline(
        end_ns=round(1000 * end_us),
        bands=tuple(bands),
        ticks=time_ticks(end_us),
        height=y + AXIS,
        axis_y=y,
        legend=tuple(_legend(lanes)) if named else (),
        text=_words(traces, [band.chart for band in bands], round(1000 * end_us)),
        units=_unit_table(bands),
        requests=_request_table(traces, steps, lanes) if named else None,
        data=script_data(subject, traces, steps, units, end_us),
        blocks=sum(len(trace.events) for trace in traces),
        strip=strip,
        dense=max(len(row.blocks) for row in rows) > _DENSE,
        linked=any(row.link for row in rows),
        copied=any(block.copies_ns for row in rows for block in row.blocks),
        slowed=any(block.lost_ns for row in rows for block in row.blocks),
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


def _chart(
    subject: Subject,
    trace: Played,
    lanes: Sequence[Lane],
    units: Sequence[str],
    above: Mapping[int, str],
    *,
    strip: bool,
) -> Gantt:
    divided = subject.deployment.is_divided

    def block(event: Interval) -> Block:
        lane = lanes[event.stream]
        return Block(
            start_ns=event.start_ns,
            end_ns=event.end_ns,
            label=lane.name if lane.alone else str(event.request),
            colour=_colour(event, lanes),
            number=event.request,
            lost_ns=event.slowdown_ns,
            # Copies, in and out: the transfer between units that share chunks.
            copies_ns=tuple(part for part in event.parts_ns[::2] if part[1] > part[0]) if divided else (),
        )

    windows = together(trace.events, lanes) if strip else ()
    links = frozenset(event.unit for event in trace.events if is_message(event, lanes))
    return Gantt(
        title=trace.title,
        note=trace.note,
        rows=unit_rows(units, trace.events, block, headings=above, links=links),
        end_ns=round(1000 * trace.end_us),
        hot_ns=tuple((round(1000 * start), round(1000 * end)) for start, end in windows),
    )


def _placed(chart: Gantt, y: int, *, strip: bool) -> Placed:
    top, rows = y + TITLE + (STRIP if strip else 0), []
    for row in chart.rows:
        top += HEADING if row.heading else 0
        rows.append((top, row))
        top += ROW
    return Placed(chart=chart, y=y, height=top - y, rows=tuple(rows))


def _colour(event: Interval, lanes: Sequence[Lane]) -> int:
    """Return the colour of a request: the same in both traces; neighbours differ."""
    lane = lanes[event.stream]
    return (lane.colour + event.request * (1 if lane.apart else len(lanes))) % COLOURS


def _sum_us(spans_ns: Iterable[tuple[int, int]]) -> float:
    return sum(end - start for start, end in spans_ns) / 1000


def _words(traces: Sequence[Played], charts: Sequence[Gantt], end_ns: int) -> str:
    """Return what the chart shows, for those who do not see it."""
    parts = []
    for trace, chart in zip(traces, charts, strict=True):
        used = [row for row in chart.rows if row.blocks and not row.link]
        links = [row for row in chart.rows if row.blocks and row.link]
        words = (
            f"{trace.title}: {len({(w.stream, w.request) for w in trace.events})} requests in "
            f"{microseconds(trace.end_us)} on {len(used)} units"
            f"{f' and {len(links)} links' if links else ''}, "
            f"{microseconds(sum(_sum_us(row.idle_ns) for row in used))} of bubbles in all"
        )
        if chart.hot_ns:
            words += f", {microseconds(_sum_us(chart.hot_ns))} with two or more requests of high contention"
        parts.append(words)
    hidden = sum(covered(row.blocks, end_ns) for chart in charts for row in chart.rows)
    text = f"{capital('; '.join(parts))}."
    if hidden:
        text += (
            f" {counted(hidden, 'block')} not seen at a width of {_PRINTED} pixels, where others lie over "
            "them: zoom in."
        )
    return text


def covered(blocks: Sequence[Block], whole_ns: int) -> int:
    """Return how many blocks of a row lie wholly under later ones in a narrow or printed chart."""
    ends = []
    for block in blocks:
        at = span(block.start_ns, block.end_ns, whole_ns)
        first = int(at.x * _PRINTED / 100)
        ends.append((first, max(first + 1, round((at.x + at.width) * _PRINTED / 100))))
    hidden = 0
    for place, (reached, stop) in enumerate(ends):
        reach = reached
        for start, end in islice(ends, place + 1, None):
            if start > reach or reach >= stop:
                break
            reach = max(reach, end)
        hidden += reach >= stop
    return hidden


def _unit_table(bands: Sequence[Placed]) -> Table:
    def last_ns(row: Row) -> int | None:
        return row.blocks[-1].end_ns if row.blocks else None

    def busy_us(row: Row) -> float | None:
        return _sum_us((b.start_ns, b.end_ns) for b in row.blocks) if row.blocks else None

    def between(row: Row) -> float | None:
        busy, whole_ns = busy_us(row), (last_ns(row) or 0) - (row.blocks[0].start_ns if row.blocks else 0)
        return 1000 * busy / whole_ns if busy is not None and whole_ns else None

    def bubbles_us(row: Row) -> float | None:
        return None if row.link or not row.blocks else _sum_us(row.idle_ns)

    def us(time_ns: int | None) -> float | None:
        return None if time_ns is None else time_ns / 1000

    titles: list[Column[tuple[str, Row]]] = [
        Column("trace", Unit.TEXT, lambda one: one[0]),
        Column("unit", Unit.TEXT, lambda one: one[1].unit),
        Column("blocks", Unit.COUNT, lambda one: len(one[1].blocks)),
        Column(
            "first start", Unit.MEASURED, lambda one: us(one[1].blocks[0].start_ns if one[1].blocks else None)
        ),
        Column("last end", Unit.MEASURED, lambda one: us(last_ns(one[1]))),
        Column("busy", Unit.MEASURED, lambda one: busy_us(one[1])),
        Column("bubbles", Unit.MEASURED, lambda one: bubbles_us(one[1])),
        Column("busy in between", Unit.SHARE, lambda one: between(one[1])),
    ]
    rows = ((band.chart.title, row) for band in bands for row in band.chart.rows)
    return table("What each unit did", titles, rows)


_Way = tuple[str, str, list[Step]]
"""Title of a trace, name of a request, and its steps."""


def _request_table(
    traces: Sequence[Played], steps: Sequence[Mapping[Interval, Step]], lanes: Sequence[Lane]
) -> Table:
    def lost_to(own: Sequence[Step]) -> str | None:
        lost_us: dict[str, float] = defaultdict(float)
        for step in own:
            for other, cost_us in step.beside:
                lost_us[lanes[other.stream].name] += cost_us
        by_cost = sorted(lost_us.items(), key=itemgetter(1), reverse=True)
        return ", ".join(f"{name} {microseconds(cost_us)}" for name, cost_us in by_cost if cost_us) or None

    titles: list[Column[_Way]] = [
        Column("trace", Unit.TEXT, lambda one: one[0]),
        Column("request", Unit.NAME, lambda one: one[1]),
        Column("blocks", Unit.COUNT, lambda one: len(one[2])),
        Column("units", Unit.LONG, lambda one: " ".join(dict.fromkeys(step.event.unit for step in one[2]))),
        Column(
            "runs", Unit.MEASURED, lambda one: sum(step.event.end_us - step.event.start_us for step in one[2])
        ),
        Column("waits", Unit.MEASURED, lambda one: sum(step.wait_us for step in one[2])),
        Column("lost to", Unit.LONG, lambda one: lost_to(one[2])),
    ]
    rows = (
        (trace.title, lane.name, [taken[event] for event in trace.events if event.stream == number])
        for trace, taken in zip(traces, steps, strict=True)
        for number, lane in enumerate(lanes)
    )
    return table("The way of each request", titles, rows)
