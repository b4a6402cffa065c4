"""The page of a scenario: what each policy makes of it, who works when, and what each application gets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...answers.charts import Bars
from ...answers.coordination import (
    applications,
    bound_class,
    bound_table,
    condition_words,
    deadlines,
    deadlines_chart,
    in_time_chart,
    policies,
    rates_chart,
    record_chart,
    requests_words,
    units,
    units_words,
)
from ...answers.words import capital, span_seconds
from ...api.coordination import Coordination
from ...api.coordination_bound import CoordinationBound
from ...formulations.coordination.record import Record
from ...formulations.files import save
from ...version import __version__
from .page import environment
from .table import Table, grid

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
            shares=grid(deadlines(runs)) if len(runs) > 1 else None,
            lines=() if len(runs) > 1 else tuple(map(_timeline, first.records[:_MOST_POLICIES])),
            policies=grid(policies(first.records, first.setting.platform)),
            bound=None if bound is None else grid(bound_table(bound)),
            bound_class="" if bound is None else bound_class(bound),
            applications=grid(applications(first.records)),
            window=span_seconds(round(WINDOW_US)),
            version=__version__,
            command=command,
            made_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        )
    )


def _summary(runs: Sequence[Coordination]) -> Iterator[str]:
    first = runs[0]
    yield (
        f"{requests_words(first.records)} of {', '.join(first.records[0].applications)} in "
        f"{span_seconds(first.scenario.duration_us)} on {first.setting.platform.name}, "
        f"{units_words(first.setting.platform)}, in simulated time."
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


def _timeline(record: Record) -> tuple[Bars, Table]:
    """Return the beginning of a record, and a table of its units."""
    return record_chart(record, 0.0, min(WINDOW_US, record.end_us)), grid(units(record))
