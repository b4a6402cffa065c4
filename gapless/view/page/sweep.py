"""The page of a sweep: which platform is best, what one more device brings, which backend proves what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...answers import sweeps
from ...answers.blocks import Block, Section, Sentence, Table, Tone
from ...answers.charts import Bars
from ...answers.sweeps import class_words, growth_chart, outcomes_chart, platforms_chart, proofs_chart
from ...answers.words import seconds
from ...formulations.files import save
from ...sweeps.findings import contests, disagreements, growths, records
from ...sweeps.run import SweepResult
from .page import sections_page
from .texts import GLOSSARY

_MOST_CHARTS = 24

_PLATFORMS = (
    "Of each platform the best plan, over all backends; numbers of devices that differ in price are "
    "platforms of their own."
)
_DEVICES = (
    "The best plan with each number of devices (of a board: with that many of its units at most). Blue: what "
    "the next smaller number reaches; green: what is new."
)

_TERMS = ("unit", "period", "bound, gap", "exact, heuristic")
_OWN_TERMS = (
    (
        "of the best",
        "Rate of a plan over the best rate of the chart; for times, the best time over that of the plan.",
    ),
    ("for its price", "The same divided by the price, as a share of the largest."),
    ("size", "Layers x units: the cells of the table of costs."),
)


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
    rows, currency = found.rows, found.sweep.currency
    proofs = proofs_chart(rows)
    about = [Sentence(proofs.words, Tone.SOFT)] if proofs is not None and proofs.words else []
    compared = ((platforms_chart(one, currency), sweeps.platforms(one, currency)) for one in contests(rows))
    grown = ((growth_chart(one), sweeps.devices(one)) for one in growths(rows))
    told: list[Block] = [outcomes_chart(rows), sweeps.backends(rows), sweeps.sizes(rows)]
    told += [proofs, *about] if proofs else []
    return sections_page(
        "sweep",
        title or found.sweep.title or "Sweep",
        _summary(found),
        [
            Section("Which platform to buy", tuple(_charts(_PLATFORMS, tuple(compared))), place="platforms"),
            Section("What one more device brings", tuple(_charts(_DEVICES, tuple(grown))), place="devices"),
            Section("Which backend proves what", tuple(told), place="backends"),
            Section("What failed", (sweeps.failures(found.failed),), place="failures"),
            Section("All plans", (sweeps.plans(rows, currency),), place="plans"),
        ],
        wrong=disagreements(rows),
        glossary=(*(entry for entry in GLOSSARY if entry[0] in _TERMS), *_OWN_TERMS),
        command=command,
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


def _charts(words: str, found: Sequence[tuple[Bars, Table]]) -> Iterator[Block]:
    """Yield charts, each with the same as a table, behind a sentence; nothing where there are none."""
    if not found:
        return
    yield Sentence(words, Tone.SOFT)
    for pair in found[:_MOST_CHARTS]:
        yield from pair
    if len(found) > _MOST_CHARTS:
        words = f"… and {len(found) - _MOST_CHARTS} more: see the table of the sweep."
        yield Sentence(words, Tone.SOFT)
