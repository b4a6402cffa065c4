"""The page of a scenario: what each policy makes of it, who works when, and what each application gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...answers.charts import share as part_of
from ...answers.charts import span
from ...answers.words import capital, microseconds, percent, span_seconds
from ...api.coordination import Coordination
from ...api.coordination_bound import CoordinationBound
from ...formulations.coordination.record import Record, percentile
from ...formulations.files import save
from ...version import __version__
from ..coordination_words import (
    bound_cells,
    bound_class,
    bound_columns,
    bound_title,
    condition_words,
    deadline_words,
    decision_words,
    energy_words,
    frame_latencies_us,
    legend,
    rate,
    share_words,
)
from .page import environment
from .sweep import Bar, Chart, Part
from .table import Table, TableCell, columns, numbers, table

WINDOW_US = 400_000.0
"""How much of each record is drawn."""

_MOST_POLICIES = 12


def write_coordination_report(
    runs: Sequence[Coordination],
    out: str | Path,
    *,
    bound: CoordinationBound | None = None,
    title: str = "",
    command: str = "",
) -> Path:
    """Write a page about a scenario: one self-contained HTML file that needs no network.

    `bound`: of `bound_coordination`; None: it is not shown. `title`: of the page; empty: the name of the
    scenario and the platform. `command`: the command that made it; empty: not said.
    """
    save(coordination_page(runs, bound=bound, title=title, command=command), out)
    return Path(out)


def coordination_page(
    runs: Sequence[Coordination],
    *,
    bound: CoordinationBound | None = None,
    title: str = "",
    command: str = "",
) -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    first = runs[0]
    name = f"{first.scenario.name} on {first.setting.platform.name}"
    return (
        environment()
        .get_template("coordination.html")
        .render(
            what="coordination",
            title=title or name,
            summary=tuple(_summary(runs)),
            charts=tuple(_charts(runs)),
            lines=() if len(runs) > 1 else tuple(map(_timeline, first.records[:_MOST_POLICIES])),
            networks=[(network, f"c{index % 8}") for index, network in enumerate(first.records[0].networks)],
            policies=_policies(first.records),
            bound=None if bound is None else _bound(bound),
            bound_class="" if bound is None else bound_class(bound),
            applications=_applications(first.records),
            legend=capital(legend(first.records)),
            window=span_seconds(round(WINDOW_US)),
            version=__version__,
            command=command,
            made_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        )
    )


def _summary(runs: Sequence[Coordination]) -> Iterator[str]:
    first = runs[0]
    served = first.records[0]
    yield (
        f"{len(served.requests):,} requests of {', '.join(served.applications)} in "
        f"{span_seconds(first.scenario.duration_us)} on the {len(served.units)} units of "
        f"{first.setting.platform.name}, in simulated time."
    )
    if words := condition_words(first.conditions):
        yield f"{capital(words)}."
    if first.scenario.source:
        yield first.scenario.source
    behaviour = first.setting.behaviour
    if behaviour is not None and behaviour.source:
        yield behaviour.source


def _charts(runs: Sequence[Coordination]) -> Iterator[Chart]:
    if len(runs) > 1:
        for found in runs:
            title = f"In time, deadline {deadline_words(found)}"
            yield _bars(title, found.records, _in_time, lambda r: share_words(r.share_in_time()))
        return
    records = runs[0].records
    unit = "Frames" if records[0].frames else "Requests"
    yield _bars(f"{unit} a second", records, rate, lambda record: f"{rate(record):,.2f}")
    if any(record.share_in_time() is not None for record in records):
        yield _bars("In time", records, _in_time, lambda record: share_words(record.share_in_time()))


def _in_time(record: Record) -> float:
    return record.share_in_time() or 0.0


def _bars(
    title: str, records: Sequence[Record], value: Callable[[Record], float], words: Callable[[Record], str]
) -> Chart:
    most = max(map(value, records)) or 1.0
    best = max(range(len(records)), key=lambda index: value(records[index]))
    bars = tuple(
        Bar(
            name=record.policy,
            parts=(Part(x=0, width=part_of(value(record), most), kind="measured"),),
            text=words(record),
            strong=index == best,
        )
        for index, record in enumerate(records)
    )
    rows: list[list[TableCell | str]] = [
        [TableCell(text=record.policy, kind="name"), words(record)] for record in records
    ]
    return Chart(title=title, bars=bars, table=table(title, (*columns("policy"), *numbers(title)), rows))


def _timeline(record: Record) -> Chart:
    """Return the beginning of a record: a bar for each unit, a part for each chunk."""
    end_us = min(WINDOW_US, record.end_us)
    networks = {request.number: request.network for request in record.requests}
    bars: list[Bar] = []
    rows: list[list[TableCell | str]] = []
    for unit, name in enumerate(record.units):
        parts = []
        for each in record.ran:
            if each.unit == unit and each.start_us < end_us:
                place = span(each.start_us, min(each.end_us, end_us), end_us)
                kind = f"c{networks[each.request] % 8}" + (" silent" if each.silent else "")
                parts.append(Part(x=place.x, width=place.width, kind=kind))
        busy = percent(round(1000 * record.utilisation[unit]))
        bars.append(Bar(name=name, parts=tuple(parts), text=busy, note="busy"))
        rows.append([TableCell(text=name, kind="name"), busy, f"{sum(r.unit == unit for r in record.ran):,}"])
    titles = (*columns("unit"), *numbers("busy", "chunks"))
    return Chart(title=record.policy, bars=tuple(bars), table=table(f"Units: {record.policy}", titles, rows))


def _policies(records: Sequence[Record]) -> Table:
    unit = "frames/s" if records[0].frames else "requests/s"
    titles = (
        *columns("policy"),
        *numbers(unit, "in time", "dropped", "median", "90 %", "99 %", "busy", "energy", "decision"),
        *numbers("decisions/s"),
    )
    rows: list[list[TableCell | str]] = []
    for record in records:
        latencies = frame_latencies_us(record) if record.frames else record.latencies_us()
        rows.append(
            [
                TableCell(text=record.policy, kind="name"),
                f"{rate(record):,.2f}",
                share_words(record.share_in_time()),
                f"{record.dropped():,}",
                *(microseconds(percentile(latencies, permille)) for permille in (500, 900, 990)),
                percent(round(1000 * sum(record.utilisation) / len(record.units))),
                energy_words(record),
                *decision_words(record),
            ]
        )
    return table("Policies", titles, rows)


def _bound(found: CoordinationBound) -> Table:
    rows: list[list[TableCell | str]] = [
        [TableCell(text=name, kind="name"), *cells] for name, *cells in bound_cells(found)
    ]
    last = len(rows)
    titles = (*columns("who"), *numbers(*bound_columns(found)))
    return table(bound_title(found), titles, rows, strong=[last - 2, last - 1])


def _applications(records: Sequence[Record]) -> Table:
    titles = (
        *columns("application", "policy"),
        *numbers("requests", "in time", "dropped", "median", "99 %"),
    )
    rows: list[list[TableCell | str]] = []
    for index, name in enumerate(records[0].applications):
        for record in records:
            latencies = record.latencies_us(index)
            rows.append(
                [
                    TableCell(text=name, kind="name"),
                    record.policy,
                    f"{len(record.of(index)):,}",
                    share_words(record.share_in_time(index)),
                    f"{record.dropped(index):,}",
                    microseconds(percentile(latencies, 500)),
                    microseconds(percentile(latencies, 990)),
                ]
            )
    return table("Applications", titles, rows)
