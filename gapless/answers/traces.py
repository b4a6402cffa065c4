"""Traces as Gantt charts, and memory over time."""

from __future__ import annotations

import string
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..formulations.history import History, Interval, Usage, is_message
from ..formulations.streams import Stream
from .charts import Axis, Block, Gantt, Kind, Line, Plane, Row, Series, Stroke, time_unit
from .words import counted, percent, size

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def trace_chart(
    trace: History, *, events: Iterable[Interval] | None = None, units: Sequence[str] = ()
) -> Gantt:
    """Return the chart of a trace.

    Colours stand for networks where there are several, for streams side by side, else for requests.
    `events`: of those that are shown; None: all. `units`: the rows; empty: units in use.
    """
    shown = tuple(trace.events if events is None else events)
    apart = side_by_side(trace)
    # A simulated workload is one round, and each of its requests a stream with a name.
    named = not apart and (len(trace.streams) > 1 or (trace.in_rounds and not trace.measured))
    numbered = not named or any(event.request for event in trace.events)
    networks = sorted({trace.streams[event.stream].network for event in shown})
    several = len(networks) > 1

    def block(event: Interval) -> Block:
        stream = trace.streams[event.stream]
        own = event.stream if apart or named else event.request
        return Block(
            start_ns=event.start_ns,
            end_ns=event.end_ns,
            label=stream.name if named else str(event.request),
            colour=networks.index(stream.network) if several else own,
            short=(letter(event.stream) if named else "") + (str(event.request % 10) if numbered else ""),
            number=event.request,
            lost_ns=event.slowdown_ns,
        )

    rows = units or trace.used_units
    streams = enumerate(stream.name for stream in trace.streams)
    outputs_ns = tuple(trace.outputs_ns())
    return Gantt(
        rows=unit_rows(
            rows,
            shown,
            block,
            headings=dict(headings(trace.events, rows, trace.streams)) if apart else {},
            links=frozenset(event.unit for event in trace.events if is_message(event, trace.streams)),
        ),
        end_ns=max(outputs_ns, default=1),
        outputs_ns=outputs_ns,
        noun="round" if trace.in_rounds and trace.measured else "request",
        legend=tuple(enumerate(networks)) if several else tuple(streams) if apart else (),
        letters=tuple((letter(n), stream.name) for n, stream in enumerate(trace.streams)) if named else (),
    )


def unit_rows(
    units: Sequence[str],
    events: Iterable[Interval],
    block: Callable[[Interval], Block],
    *,
    headings: Mapping[int, str],
    links: Container[str] = (),
) -> tuple[Row, ...]:
    """Return the rows of some units, with what stands above which of them."""
    own: dict[str, list[Interval]] = {unit: [] for unit in units}
    for event in sorted(events, key=lambda event: event.start_ns):
        own[event.unit].append(event)
    return tuple(
        Row(
            unit=unit,
            name=name,
            heading=headings.get(number, ""),
            link=unit in links,
            blocks=tuple(map(block, own[unit])),
        )
        for number, (unit, name) in enumerate(zip(units, row_names(units, headings), strict=True))
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


def block_name(trace: History, request: int) -> str:
    """Return what stands for a request in a chart: a letter in a workload, else the last digit."""
    return letter(request) if trace.names else str(request % 10)


def steady(whole: Gantt, outputs: int) -> Gantt:
    """Return the part of a chart in which some requests come out, from the middle of all; at least one.

    At its ends a pipeline fills and drains; in the middle it is as it would be for ever.
    """
    count = max(1, outputs)
    if count >= len(whole.outputs_ns):
        return whole
    first = (len(whole.outputs_ns) - count) // 2
    start_ns = whole.outputs_ns[first - 1] if first else whole.start_ns
    end_ns = max(start_ns + 1, whole.outputs_ns[first + count - 1])
    rows = (
        replace(row, blocks=tuple(b for b in row.blocks if b.end_ns > start_ns and b.start_ns < end_ns))
        for row in whole.rows
    )
    return replace(whole, rows=tuple(rows), start_ns=start_ns, end_ns=end_ns)


def titled_chart(trace: History, title: str) -> Gantt:
    """Return a chart with a title, if there is one, that also says what is drawn."""
    chart = replace(trace_chart(trace), letters=())
    what = "item on one device or link (->)" if any(row.link for row in chart.rows) else "request on one unit"
    return (
        replace(chart, title=title, note=f"each block is one {what}, dots are idle time") if title else chart
    )


def traced_chart(trace: History) -> Gantt:
    """Return the chart of a trace with what was traced above it."""
    chart = trace_chart(trace)
    what = "item on one device or link (->)" if any(row.link for row in chart.rows) else "request on one unit"
    more = ", from copying its inputs to copying its outputs" if trace.measured else ""
    note = f"each block is one {what}{more}; dots are idle time"
    return replace(chart, title=traced_words(trace), note=note)


def traced_words(trace: History) -> str:
    """Return what was traced, e.g. "20 rounds of 3 requests, measured"."""
    if not trace.measured:
        return f"{counted(len(trace.arrivals_us), 'request')}, simulated"
    streams, count = len(trace.streams), 1 + max(event.request for event in trace.events)
    if trace.in_rounds:
        return f"{counted(count, 'round')} of {counted(streams, 'request')}, measured"
    each = f" of each of {streams} streams" if streams > 1 else ""
    return f"{counted(count, 'request')}{each}, measured"


_NEAR = 2.5
"""A capacity of at most this multiple of the peak is drawn; a larger one would flatten the chart."""

_COLUMNS = 2000
"""Columns of the chart; steps that fall on one of them are drawn as one: its largest and its last."""

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def memory_chart(usage: Usage, capacity: int | None, *, by_unit: bool) -> Plane:
    """Return the memory that a plan needs over time.

    `capacity`: of the device; None: not known. `by_unit`: whether units have capacities of their own instead.
    """
    peak = usage.peak_bytes
    shown = capacity is not None and capacity <= _NEAR * peak
    most = max(peak, capacity if capacity is not None and shown else 0)
    level = next(level for level in reversed(range(len(_UNITS))) if most >= 2 * 1024**level or not level)
    end_us = max(usage.steps[-1][0], 1)
    per_unit, name = time_unit(end_us)
    across = Axis(name="time", unit=name, low=0, high=end_us / per_unit)
    upwards = Axis(name="memory", unit=_UNITS[level], low=0, high=1.12 * most / 1024**level)
    guides = [(f"peak {size(peak)}", peak, Stroke.DOTTED)]
    guides += (
        [(f"capacity {size(capacity)}", capacity, Stroke.DASHED)] if capacity is not None and shown else []
    )
    return Plane(
        kind=Kind.LINES,
        title="Memory over time",
        words=_words(peak, capacity, by_unit=by_unit, shown=shown),
        across=across,
        upwards=upwards,
        series=(Series(name="", lines=(_line(usage, end_us, per_unit, 1024**level),)),),
        guides=tuple(
            Line(
                points=((0, value / 1024**level), (across.high, value / 1024**level)),
                stroke=stroke,
                name=text,
                alert=stroke is Stroke.DASHED,
            )
            for text, value, stroke in guides
        ),
        flat=True,
    )


def _line(usage: Usage, end_us: int, per_unit: int, per_size: int) -> Line:
    columns: dict[int, tuple[int, int]] = {}
    for time_us, used in usage.steps:
        x = round(_COLUMNS * time_us / end_us)
        columns[x] = max(columns.get(x, (0, 0))[0], used), used
    width = end_us / per_unit / _COLUMNS
    points = [
        (x * width, value / per_size) for x, values in columns.items() for value in dict.fromkeys(values)
    ]
    return Line(points=((0.0, 0.0), *points, (_COLUMNS * width, points[-1][1])), stairs=True, filled=True)


def _words(peak: int, capacity: int | None, *, by_unit: bool, shown: bool) -> str:
    if capacity is None and by_unit:
        return f"Peak {size(peak)} on all units together; what each of them has is in the table."
    if capacity is None:
        return f"Peak {size(peak)}; the capacity of the device is not known."
    words = (
        f"Peak {size(peak)}, {percent(round(1000 * peak / capacity))} of the {size(capacity)} of the device."
    )
    return words if shown else f"{words} The capacity is far above this chart."
