"""The page of a comparison over many problems: standings, performance profiles, every answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ...answers.courses import profile_chart
from ...answers.words import all_terms, counted, gap, seconds, term_name, term_value
from ...formulations.files import save
from ...solvers.protocol import SolveStatus
from ...solvers.sources import Source
from ...sweeps.contest import InstanceAnswer, InstanceComparison
from ...sweeps.standings import Case, cases, profiles, standings
from ...version import __version__
from ..contest_words import COLUMNS, MEANINGS, standing_cells, summary_words
from .page import environment
from .table import Table, TableCell, TableColumn, columns, numbers, table
from .texts import GLOSSARY, clipped

_MOST_ROWS = 600

_TERMS = ("bound, gap", "exact, heuristic")
_STATUS = {
    SolveStatus.OPTIMAL: ("proved best", "good"),
    SolveStatus.FEASIBLE: ("found, not proved", "warn"),
    SolveStatus.INFEASIBLE: ("proved: none valid", "warn"),
    SolveStatus.NO_SOLUTION: ("nothing found", "bad"),
}
_FAILED = ("failed", "bad")

_WORDS = (
    "Performance profiles (E. D. Dolan and J. J. Moré, Mathematical Programming 91, 2002): how many of the "
    "problems a backend solves within a given multiple of what the best one of them needs. Higher is better: "
    "a line begins at the share of problems on which it is the best, and ends at the share that it solves."
)


def write_instance_report(
    found: InstanceComparison, out: str | Path, *, title: str = "", command: str = ""
) -> Path:
    """Write the page of a comparison over many problems: one self-contained file that needs no network.

    Parameters
    ----------
    found
        From `gapless.studies.compare_instances`.
    out
        Where the page goes.
    title
        Of the page; empty: that of the problems.
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
    >>> found = gapless.studies.compare_instances("pixel7a/octree", backends=["native", "exhaustive"])
    >>> path = gapless.reports.write_instance_report(found, "instances.html")  # doctest: +SKIP
    """
    save(contest_page(found, title=title, command=command), out)
    return Path(out)


def contest_page(found: InstanceComparison, *, title: str = "", command: str = "") -> str:
    """Return the page as HTML; everything that comes from files is escaped."""
    known, charts = cases(found), [chart for one in profiles(found) if (chart := profile_chart(one))]
    failures = _failures(found)
    places = [("standings", "Standings"), *([("profiles", "Performance profiles")] if charts else [])]
    places += [("failures", "What failed")] if failures.rows else []
    return (
        environment()
        .get_template("contest.html")
        .render(
            what="comparison",
            title=title or found.title or "Comparison of backends",
            summary=tuple(_summary(found)),
            wrong=found.disagreements,
            sections=[*places, ("answers", "All answers")],
            standings=_standings(found),
            words=_WORDS,
            charts=charts,
            failures=failures,
            answers=_answers(known, found),
            glossary=(*MEANINGS, *(entry for entry in GLOSSARY if entry[0] in _TERMS)),
            version=__version__,
            command=command,
            made_at=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        )
    )


def _summary(found: InstanceComparison) -> Iterator[str]:
    yield from summary_words(found)
    if found.interrupted:
        yield "The comparison was interrupted: what is shown is what was answered until then."
    ranked = [one for one in standings(found) if one.answered]
    if ranked:
        proven, best = max(ranked, key=lambda one: one.proven), max(ranked, key=lambda one: one.best)
        if proven.proven:
            yield f"Most proofs: {proven.backend}, on {counted(proven.proven, 'problem')}."
        yield f"Most often the best plan: {best.backend}, on {counted(best.best, 'problem')}."
    if any(one.row.estimated for one in found.answers):
        yield "Some costs are estimates or drawn, not measurements."
    yield from found.notes


def _standings(found: InstanceComparison) -> Table:
    titles = (TableColumn(title=COLUMNS[0]), *numbers(*COLUMNS[1:]))
    cells: Iterator[list[TableCell | str]] = (
        [TableCell(text=name, kind="name"), *rest] for name, *rest in map(standing_cells, standings(found))
    )
    return table("What came of the problems, by backend", titles, cells)


def _failures(found: InstanceComparison) -> Table:
    rows: Iterator[list[TableCell | str]] = (
        [
            TableCell(text=clipped(one.instance), kind="name"),
            TableCell(text=one.backend, kind="name"),
            f"{one.row.attempts}",
            TableCell(text=clipped(one.row.error, 1000), kind="long"),
        ]
        for one in found.failed
    )
    titles = (*columns("problem", "backend"), *numbers("tries"), *columns("why"))
    return table("Tasks without an answer", titles, rows, most=_MOST_ROWS)


def _answers(known: tuple[Case, ...], found: InstanceComparison) -> Table:
    titles = (
        *columns("problem", "backend", "status", "objective"),
        *numbers(
            "value",
            "above best",
            "bound",
            "gap",
            "to best bound",
            "first plan",
            "within 1 %",
            "start",
            "time",
        ),
    )
    rows = (
        _row(case, case.answers[backend])
        for case in known
        for backend in found.backends
        if backend in case.answers
    )
    return table("All answers", titles, rows, most=_MOST_ROWS)


def _row(case: Case, one: InstanceAnswer) -> list[TableCell | str]:
    row, pace, terms = one.row, case.pace(one), all_terms()
    status, kind = _STATUS.get(SolveStatus(row.status), _FAILED)
    ratio = case.ratio(one)
    given_plan, given_bound = (
        " (given)" if source == Source.START else "" for source in (row.plan_source, row.bound_source)
    )
    return [
        TableCell(text=clipped(one.instance), kind="name"),
        TableCell(text=one.backend, kind="name"),
        TableCell(text=status, kind=kind),
        term_name(terms, row.term),
        f"{term_value(terms, row.term, row.value)}{given_plan}",
        "-" if ratio is None else f"{100 * (ratio - 1):.2f} %",
        f"{term_value(terms, row.term, row.bound)}{given_bound}",
        gap(row.gap),
        gap(case.gap(one)),
        *("-" if at is None else seconds(at) for at in (pace.first_plan_s, pace.near_best_s)),
        f"native, {seconds(row.start_s)}" if row.start_s else "-",
        seconds(one.end_s),
    ]
