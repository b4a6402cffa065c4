"""The page of a sweep: which platform is best, what one more device brings, which backend proves what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...answers import sweeps
from ...answers.charts import Bars
from ...answers.sweeps import class_words, growth_chart, outcomes_chart, platforms_chart, proofs_chart
from ...answers.words import seconds
from ...formulations.files import save
from ...sweeps.findings import contests, disagreements, growths, records
from ...sweeps.run import SweepResult
from ...version import __version__
from .page import environment
from .table import Table, grid
from .texts import GLOSSARY

_MOST_CHARTS = 24
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
    failures = grid(sweeps.failures(found.failed))
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
            backends=grid(sweeps.backends(rows)),
            sizes=grid(sweeps.sizes(rows)),
            scatter=proofs_chart(rows),
            failures=failures,
            plans=grid(sweeps.plans(rows, found.sweep.currency)),
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
        charts=tuple(
            (platforms_chart(one, found.sweep.currency), grid(sweeps.platforms(one, found.sweep.currency)))
            for one in compared[:_MOST_CHARTS]
        ),
        hidden=max(0, len(compared) - _MOST_CHARTS),
    )
    yield ChartSection(
        place="devices",
        title="What one more device brings",
        words="The best plan with each number of devices (of a board: with so many of its units at most). "
        "Blue: what the next smaller number reaches; green: what is new.",
        charts=tuple((growth_chart(one), grid(sweeps.devices(one))) for one in grown[:_MOST_CHARTS]),
        hidden=max(0, len(grown) - _MOST_CHARTS),
    )
