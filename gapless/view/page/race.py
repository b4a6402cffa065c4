"""The race: predicted against measured, how good the predictions were, and everybody who ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...executor.tuning.candidates import CandidateKind
from ...executor.tuning.result import TuningResult, TuningRow, TuningStop
from ...executor.tuning.tables import outcome
from ..words import microseconds
from .scale import Axis, Tick
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table
from .texts import clipped, visible

_MOST_ROWS = 60

SHAPES = {
    "circle": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0Z",
    "square": "M-4.5 -4.5h9v9h-9Z",
    "diamond": "M0 -6L6 0L0 6L-6 0Z",
    "triangle": "M0 -6L5.5 4.5H-5.5Z",
    "cross": "M-4.5 -4.5L4.5 4.5M-4.5 4.5L4.5 -4.5",
}
"""What tells the tables of a scatter plot apart, beside colours, as SVG paths; they repeat."""

_STOPS = {
    TuningStop.DECIDED: "decided: everybody else was clearly slower",
    TuningStop.COMPLETE: "all rungs were climbed",
    TuningStop.BUDGET: "the time was used up",
    TuningStop.INTERRUPTED: "interrupted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One candidate, predicted by one table.

    Attributes
    ----------
    x, y
        Percent from the left (predicted), and from the top (measured).
    table
        Index of the table that predicts.
    winner, baseline
        What it is.
    facts
        What is shown of it: (name, value).
    """

    x: float
    y: float
    table: int
    winner: bool
    baseline: bool
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Predicted against measured.

    Attributes
    ----------
    marks
        From left to right.
    tables
        (name, shape) of the tables that predict.
    ticks
        Of both axes, which are alike: what is predicted right lies on the diagonal.
    logarithmic
        Whether equal distances are equal ratios.
    text
        What there is to see, in words.
    """

    marks: tuple[Mark, ...]
    tables: tuple[tuple[str, str], ...]
    ticks: tuple[Tick, ...]
    logarithmic: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSection:
    """A race: how it went in words, the scatter (None: nothing to compare), qualities, candidates."""

    words: str
    scatter: Scatter | None
    quality: Table
    candidates: Table


def race(subject: Subject) -> RaceSection | None:
    """Return the race that a subject took part in, or None."""
    result = subject.tuning
    if result is None:
        return None
    return RaceSection(
        words=_words(result),
        scatter=_scatter(result),
        quality=_quality(result),
        candidates=_candidates(result, subject.deployment.deployment_id),
    )


def _words(result: TuningResult) -> str:
    simulated = result.spent_s < result.measured_s
    parts = [
        f"{len(result.rows)} candidates; {_STOPS[result.stop]}; {result.measured_s:.1f} s measured"
        f"{'' if simulated else f' of {result.spent_s:.1f} s spent'}."
    ]
    if result.pace == "latency":
        parts.append("The latency counts first, so one request was run at a time.")
    if result.drift_percent is not None:
        parts.append(f"The machine changed its speed by {result.drift_percent:+.1f} % meanwhile.")
    ties = [row.candidate.label for row in result.rows if row.candidate.key in result.ties[1:]]
    if ties:
        parts.append(f"Within the noise of the fastest: {', '.join(ties)}.")
    if result.baseline_wins:
        parts.append("A baseline wins: no plan is faster beyond the noise.")
    return " ".join(parts)


def _scatter(result: TuningResult) -> Scatter | None:
    names = result.tables
    pairs = [
        (row, table_, predicted, row.comparable_us)
        for row in result.rows
        for table_, predicted in row.candidate.predicted_us
        if row.comparable_us is not None and row.failure is None
    ]
    if not pairs:
        return None
    axis = Axis.around([value for _, _, predicted, measured in pairs for value in (predicted, measured)])
    marks = (
        Mark(
            x=axis.at(predicted),
            y=round(100 - axis.at(measured), 3),
            table=names.index(name),
            winner=row is result.winner,
            baseline=row.candidate.kind is CandidateKind.BASELINE,
            facts=_facts(row, name, predicted, measured, result),
        )
        for row, name, predicted, measured in pairs
    )
    tables = tuple((name, tuple(SHAPES)[index % len(SHAPES)]) for index, name in enumerate(names))
    return Scatter(
        marks=tuple(sorted(marks, key=lambda mark: (mark.x, mark.y, mark.table))),
        tables=tables,
        ticks=axis.ticks(),
        logarithmic=axis.logarithmic,
        text=_scatter_words(result, len({id(row) for row, *_ in pairs})),
    )


def _facts(
    row: TuningRow, name: str, predicted: int, measured: float, result: TuningResult
) -> tuple[tuple[str, str], ...]:
    candidate = row.candidate
    found = {
        "candidate": candidate.label,
        "chunks": clipped(str(candidate.deployment)),
        f"predicted ({name})": microseconds(predicted),
        "measured": microseconds(measured),
        "difference": f"{100 * (measured / predicted - 1):+.1f} %",
        "outcome": outcome(row, result),
    }
    return tuple((visible(what), visible(value)) for what, value in found.items())


def _scatter_words(result: TuningResult, count: int) -> str:
    words = [f"{count} candidates, predicted {result.pace} to the right, measured {result.pace} upwards"]
    words += [
        f"table {entry.table}, {entry.scope}: correlation {_three(entry.pearson)}, "
        f"mean error {_percent(entry.mape_percent)}"
        for entry in result.quality
    ]
    return f"{'; '.join(words)}."


def _quality(result: TuningResult) -> Table:
    rows = (
        (
            entry.table,
            entry.scope,
            str(entry.plans),
            _three(entry.pearson),
            _three(entry.spearman),
            _percent(entry.mape_percent),
            _percent(dict(entry.regret_percent).get(1)),
        )
        for entry in result.quality
    )
    titles = columns("table", "of", *numbers("plans", "Pearson", "Spearman", "MAPE", "regret of top 1"))
    return table("How good the predictions were", titles, rows)


def _candidates(result: TuningResult, key: str) -> Table:
    names = result.tables
    predicted = (f"{name} says" for name in names)
    titles = columns(
        *numbers("#"),
        "candidate",
        "kind",
        "chunks",
        *numbers(*predicted, "measured", "ratio", "latency p50"),
        "outcome",
    )
    rows = list(_candidate_rows(result, names))
    strong = [index for index, row in enumerate(result.rows) if row.candidate.key == key]
    return table("Everybody who was measured", titles, rows, strong=strong, most=_MOST_ROWS)


def _candidate_rows(result: TuningResult, names: Sequence[str]) -> Iterator[list[TableCell | str]]:
    for place, row in enumerate(result.rows, start=1):
        candidate, kind = row.candidate, ""
        if row.failure is not None:
            kind = "bad"
        elif row is result.winner:
            kind = "good"
        yield [
            str(place),
            TableCell(text=candidate.label, kind="name"),
            str(candidate.kind),
            TableCell(text=clipped(str(candidate.deployment)), kind="code"),
            *(microseconds(candidate.predicted(name)) for name in names),
            microseconds(row.comparable_us),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            microseconds(row.latency_p50_us),
            TableCell(text=outcome(row, result), kind=kind or "text"),
        ]


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"
