"""The page of a scenario: what each policy makes of it, who works when, and what each application gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...answers.charts import Bars
from ...answers.coordination import (
    bound_cells,
    bound_class,
    bound_columns,
    bound_title,
    condition_words,
    deadline_words,
    deadlines_chart,
    decision_words,
    energy_words,
    frame_latencies_us,
    in_time_chart,
    legend,
    rate,
    rates_chart,
    record_chart,
    share_words,
)
from ...answers.words import capital, microseconds, percent, span_seconds
from ...api.coordination import Coordination
from ...api.coordination_bound import CoordinationBound
from ...formulations.coordination.record import Record, percentile
from ...formulations.files import save
from ...version import __version__
from .page import environment
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
            charts=_charts(runs),
            deadlines=deadlines_chart(runs) if len(runs) > 1 else None,
            shares=_deadlines(runs) if len(runs) > 1 else None,
            lines=() if len(runs) > 1 else tuple(map(_timeline, first.records[:_MOST_POLICIES])),
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


def _charts(runs: Sequence[Coordination]) -> list[Bars]:
    if len(runs) > 1:
        return []
    records = runs[0].records
    return [chart for chart in (rates_chart(records), in_time_chart(records)) if chart]


def _deadlines(runs: Sequence[Coordination]) -> Table:
    titles = (*columns("policy"), *numbers(*map(deadline_words, runs)))
    records = zip(*(found.records for found in runs), strict=True)
    rows: Iterator[list[TableCell | str]] = (
        [TableCell(text=each[0].policy, kind="name"), *(share_words(r.share_in_time()) for r in each)]
        for each in records
    )
    return table("In time, by deadline", titles, rows)


def _timeline(record: Record) -> tuple[Bars, Table]:
    """Return the beginning of a record, and a table of its units."""
    rows: list[list[TableCell | str]] = [
        [
            TableCell(text=name, kind="name"),
            percent(round(1000 * record.utilisation[unit])),
            f"{sum(r.unit == unit for r in record.ran):,}",
        ]
        for unit, name in enumerate(record.units)
    ]
    titles = (*columns("unit"), *numbers("busy", "chunks"))
    chart = record_chart(record, 0.0, min(WINDOW_US, record.end_us))
    return chart, table(f"Units: {record.policy}", titles, rows)


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
