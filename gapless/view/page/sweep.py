"""The page of a sweep: which platform is best, what one more device brings, which backend proves what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ...answers.charts import Bars
from ...answers.sweeps import (
    BACKEND_COLUMNS,
    OUTCOMES,
    amount_words,
    backend_cells,
    class_words,
    gain_words,
    growth_chart,
    outcomes_chart,
    platforms_chart,
    price_words,
    proofs_chart,
    rate_words,
)
from ...answers.words import gap, seconds, share
from ...formulations.files import save
from ...sweeps.findings import (
    RATE,
    Contest,
    Growth,
    contests,
    disagreements,
    growths,
    is_proof,
    records,
    size_of,
)
from ...sweeps.run import SweepResult
from ...sweeps.table import SweepRow
from ...version import __version__
from .page import environment
from .table import Table, TableCell, TableColumn, columns, numbers, table
from .texts import GLOSSARY, clipped

_SIZES = (32, 128, 512, 2048, 8192)


def proofs_by_size(rows: Sequence[SweepRow]) -> Table:
    """Return for each backend and size of problem how much is proved, how fast, and the gap of the rest."""
    found: dict[tuple[str, int], list[SweepRow]] = {}
    for row in rows:
        if not row.failed:
            found.setdefault((row.backend, _class_of(row)), []).append(row)
    cells: Iterator[list[TableCell | str]] = (
        [TableCell(text=name, kind="name"), *_cells(size, own)] for (name, size), own in sorted(found.items())
    )
    titles = columns(
        "backend", "size", *numbers("plans", "proved", "median time of proofs", "median gap of others")
    )
    return table("By backend and size", titles, cells)


def _class_of(row: SweepRow) -> int:
    return next((number for number, most in enumerate(_SIZES) if size_of(row) <= most), len(_SIZES))


def _cells(size: int, rows: Sequence[SweepRow]) -> list[str]:
    proofs = [row.runtime_s for row in rows if is_proof(row)]
    gaps = [row.gap for row in rows if row.gap is not None and not is_proof(row)]
    return [
        f"up to {_SIZES[size]:,}" if size < len(_SIZES) else f"more than {_SIZES[-1]:,}",
        f"{len(rows):,}",
        f"{len(proofs):,}",
        seconds(median(proofs)) if proofs else "-",
        gap(median(gaps)) if gaps else "-",
    ]


_MOST_CHARTS = 24
_MOST_ROWS = 300

_TAGS = ("good", "warn", "warn", "bad", "bad")
"""Kinds of cells, by `OUTCOMES`."""

_Cells = list[TableCell | str]

Numbered = tuple[Bars, Table]
"""A chart, and the same as a table."""

_TERMS = ("unit", "period", "bound, gap", "exact, heuristic")
_OWN_TERMS = (
    (
        "of the best",
        "Rate of a plan over the best rate of the chart; for times, the best time over that of the plan.",
    ),
    ("for its price", "The same divided by the price, as a share of the largest."),
    ("size", "Layers x units: the cells of the table of costs."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartSection:
    """Charts under one heading; `hidden` more are left out."""

    place: str
    title: str
    words: str
    charts: tuple[Numbered, ...]
    hidden: int


def write_sweep_report(found: SweepResult, out: str | Path, *, title: str = "", command: str = "") -> Path:
    """Write the page of a sweep: one self-contained HTML file that needs no network.

    Parameters
    ----------
    found
        From `gapless.sweep`.
    out
        Where the page goes.
    title
        Of the page; empty: that of the sweep.
    command
        The command that made it; empty: not said.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        The place cannot be written.

    Examples
    --------
    >>> import gapless
    >>> found = gapless.sweep(gapless.studies.Sweep(models=["octree"], platforms=["pixel7a", "oneplus11"]))
    >>> path = gapless.reports.write_sweep_report(found, "sweep.html")  # doctest: +SKIP
    """
    save(sweep_page(found, title=title, command=command), out)
    return Path(out)


def sweep_page(found: SweepResult, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    rows = found.rows
    charts = [section for section in _sections(found) if section.charts]
    failures = _failures(found.failed)
    places = [(section.place, section.title) for section in charts]
    places += [("backends", "Which backend proves what")]
    places += [("failures", "What failed")] if failures.rows else []
    return (
        environment()
        .get_template("sweep.html")
        .render(
            what="sweep",
            title=title or found.sweep.title or "Sweep",
            summary=tuple(_summary(found)),
            wrong=disagreements(rows),
            sections=[*places, ("plans", "All plans")],
            charts=charts,
            outcomes=outcomes_chart(rows),
            backends=_backends(rows),
            sizes=proofs_by_size(rows),
            scatter=proofs_chart(rows),
            failures=failures,
            plans=_plans(rows, found.sweep.currency),
            glossary=(*(entry for entry in GLOSSARY if entry[0] in _TERMS), *_OWN_TERMS),
            version=__version__,
            command=command,
            made_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        )
    )


def _summary(found: SweepResult) -> Iterator[str]:
    rows = found.rows
    proved = sum(record.proved for record in records(rows))
    yield f"{len(rows):,} of {found.total:,} plans, {proved:,} of them proved; {len(found.failed):,} failed."
    if words := class_words(rows):
        yield words
    if found.interrupted:
        yield "The sweep was interrupted: what is shown is what was answered until then."
    spent = sum(row.total_s for row in rows)
    yield f"Solved in {seconds(spent)} of work, {seconds(spent / max(1, len(rows)))} a plan."
    estimated = {row.platform for row in rows if row.estimated}
    if estimated:
        yield f"Costs on {', '.join(sorted(estimated))} are estimates, not measurements."
    again = sum(row.attempts > 1 for row in rows)
    if again:
        yield f"Tried again because a worker was lost: {again:,} of them."


def _sections(found: SweepResult) -> Iterator[ChartSection]:
    compared, grown = contests(found.rows), growths(found.rows)
    yield ChartSection(
        place="platforms",
        title="Which platform to buy",
        words="Of each platform the best plan, over all backends; numbers of devices that differ in price "
        "are platforms of their own.",
        charts=tuple(_contest(one, found.sweep.currency) for one in compared[:_MOST_CHARTS]),
        hidden=max(0, len(compared) - _MOST_CHARTS),
    )
    yield ChartSection(
        place="devices",
        title="What one more device brings",
        words="The best plan with each number of devices (of a board: with so many of its units at most). "
        "Blue: what the next smaller number reaches; green: what is new.",
        charts=tuple(_growth(one) for one in grown[:_MOST_CHARTS]),
        hidden=max(0, len(grown) - _MOST_CHARTS),
    )


def _contest(contest: Contest, currency: str) -> Numbered:
    priced = any(one.for_price is not None for one in contest.standings)
    cells: Iterator[_Cells] = (
        [
            TableCell(text=one.row.platform, kind="name"),
            TableCell(text=one.row.devices or f"{one.row.available} units", kind="name"),
            amount_words(contest.topic, one.row),
            share(one.share, 1),
            *([price_words(one.row.price, currency)] if priced else []),
            *(["-" if one.for_price is None else share(one.for_price, 1)] if priced else []),
            _status(one.row),
            TableCell(text=clipped(one.row.plan), kind="code"),
        ]
        for one in contest.standings
    )
    titles = columns(
        "platform",
        "devices",
        *numbers("reached", "of the best", *(["price", "for its price"] if priced else [])),
        "status",
        "plan",
    )
    chart = platforms_chart(contest, currency)
    return chart, table(f"Platforms: {chart.title}", titles, cells, strong=[0])


def _growth(growth: Growth) -> Numbered:
    topic, rows = growth.topic, [stage.row for stage in growth.stages]
    cells: Iterator[_Cells] = (
        [
            f"{stage.row.available}",
            TableCell(text=stage.row.devices or "-", kind="name"),
            amount_words(topic, stage.row),
            gain_words(stage.gain),
            _difference(topic.goal, stage.row, before),
            _status(stage.row),
            TableCell(text=clipped(stage.row.plan), kind="code"),
        ]
        for stage, before in zip(growth.stages, (None, *rows), strict=False)
    )
    titles = (
        *numbers("number"),
        *columns("devices"),
        *numbers("reached", "more, share", "more"),
        *columns("status", "plan"),
    )
    chart = growth_chart(growth)
    return chart, table(f"Devices: {chart.title}", titles, cells)


def _difference(goal: str, row: SweepRow, before: SweepRow | None) -> str:
    """Return how many more inferences a second there are than with fewer devices."""
    if goal != RATE or before is None:
        return "-"
    more = (row.per_second or 0.0) - (before.per_second or 0.0)
    return f"{'-' if more < 0 else '+'}{rate_words(abs(more))}"


def _backends(rows: Sequence[SweepRow]) -> Table:
    titles = (TableColumn(title=BACKEND_COLUMNS[0]), *numbers(*BACKEND_COLUMNS[1:]))
    cells: Iterator[_Cells] = (
        [TableCell(text=name, kind="name"), *rest] for name, *rest in map(backend_cells, records(rows))
    )
    return table("Backends", titles, cells)


def _failures(rows: Iterable[SweepRow]) -> Table:
    titles = (*numbers("task", "tries"), *columns("model", "platform", "backend", "why"))
    cells: Iterator[_Cells] = (
        [
            f"{row.task}",
            f"{row.attempts}",
            TableCell(text=clipped(row.model), kind="name"),
            TableCell(text=clipped(row.platform) or "-", kind="name"),
            TableCell(text=row.backend or "-", kind="name"),
            TableCell(text=clipped(row.error, 1000), kind="long"),
        ]
        for row in rows
    )
    return table("Tasks without an answer", titles, cells, most=_MOST_ROWS)


def _plans(rows: Iterable[SweepRow], currency: str) -> Table:
    titles = (
        *numbers("task"),
        *columns("model", "platform", "objective", "limits", "backend", "status"),
        *numbers("inferences", "price", "gap", "time"),
        *columns("plan"),
    )
    cells: Iterator[_Cells] = (
        [
            f"{row.task}",
            TableCell(text=clipped(row.model), kind="name"),
            TableCell(text=clipped(row.platform) or "-", kind="name", note=row.devices),
            row.objective,
            TableCell(text=row.limits or "-", kind="name"),
            TableCell(text=row.backend or "-", kind="name"),
            _status(row),
            rate_words(row.per_second),
            price_words(row.price, currency),
            gap(row.gap),
            seconds(row.total_s),
            TableCell(text=clipped(row.plan) or "-", kind="code"),
        ]
        for row in rows
    )
    return table("All plans", titles, cells, most=_MOST_ROWS)


def _status(row: SweepRow) -> TableCell:
    found = zip(OUTCOMES, _TAGS, strict=True)
    return next(TableCell(text=name, kind=tag) for (name, status, _), tag in found if status == row.status)
