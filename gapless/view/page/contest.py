"""The page of a comparison over many problems: standings, performance profiles, every answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...formulations.files import save
from ...solvers.protocol import SolveStatus
from ...solvers.sources import Source
from ...sweeps.contest import InstanceAnswer, InstanceComparison
from ...sweeps.standings import Case, Profile, cases, profiles, standings
from ...version import __version__
from ..contest_words import COLUMNS, MEANINGS, standing_cells, summary_words
from ..words import all_terms, counted, gap, seconds, term_name, term_value
from .curves import SIZE, CurveLine, CurveMark, spaced
from .page import environment
from .race import SHAPES
from .scale import Axis, Tick, nice_step
from .table import Table, TableCell, TableColumn, columns, numbers, table
from .texts import GLOSSARY, clipped, visible

_MOST_ROWS = 600
_MOST_MARKS = 40
_DECADE = 10
_RATIOS = (1, 1.2, 1.5, 2, 3, 5, 7)
"""Ticks of ratios up to a decade."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChart:
    """A performance profile, drawn.

    `lines`, `marks`: what is drawn; `across`, `upwards`: ticks of the axes: ratio to the best, and share of
    the problems.
    """

    key: str  # its place on the page
    title: str  # what is compared
    lines: tuple[CurveLine, ...]
    marks: tuple[CurveMark, ...]
    across: tuple[Tick, ...]
    upwards: tuple[Tick, ...]
    across_name: str  # name of the axis of ratios


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
    known, charts = cases(found), _charts(found)
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
            shape_paths=SHAPES,
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


def _charts(found: InstanceComparison) -> list[ProfileChart]:
    drawn = (profile for profile in profiles(found) if any(profile.lines.values()))
    return [_chart(f"p{number}", profile) for number, profile in enumerate(drawn, start=1)]


def _chart(key: str, profile: Profile) -> ProfileChart:
    across = Axis(low=1.0, high=max(1.2 * profile.most, 1.05), logarithmic=True)
    names, shapes = tuple(profile.lines), tuple(SHAPES)
    lines, marks = [], list[CurveMark]()
    for index, (name, steps) in enumerate(profile.lines.items()):
        line = CurveLine(
            name=name, shape=shapes[index % len(shapes)], plans=_path(across, steps), own="", borrowed=""
        )
        lines.append(line)
        thin = -(-len(steps) // _MOST_MARKS) or 1
        marks += (
            CurveMark(
                x=across.at(ratio),
                y=round(100 - 100 * share, 3),
                line=index,
                is_bound=False,
                facts=(
                    ("backend", visible(names[index])),
                    ("problems", f"{100 * share:.0f} %"),
                    ("at most", f"{ratio:.3g} times the best"),
                ),
            )
            for ratio, share in steps[::thin]
        )
    return ProfileChart(
        key=key,
        title=profile.title,
        lines=tuple(lines),
        marks=tuple(marks),
        across=spaced(_ratio_ticks(across)),
        upwards=tuple(Tick(at=float(part), text=f"{part} %") for part in range(0, 101, 20)),
        across_name="times the best (logarithmic)",
    )


def _ratio_ticks(across: Axis) -> tuple[Tick, ...]:
    """Return ticks of ratios; where all are close to 1, of distances from it."""
    if across.high >= _DECADE:
        return across.named(lambda value: f"{value:g}")
    step = nice_step(across.high - 1, 6)
    values = _RATIOS if across.high >= 2 else [1 + number * step for number in range(7)]
    return tuple(Tick(at=across.at(v), text=f"{v:g}") for v in values if v <= across.high)


def _path(across: Axis, steps: tuple[tuple[float, float], ...]) -> str:
    """Return stairs from none of the problems up; each share holds until the next ratio."""
    corners = (
        f"H{round(SIZE * across.at(ratio) / 100, 1)}V{round(SIZE * (1 - share), 1)}" for ratio, share in steps
    )
    return "".join([f"M0 {SIZE}", *corners, f"H{SIZE}"]) if steps else ""


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
