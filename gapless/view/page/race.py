"""The race: predicted against measured, how good the predictions were, and everybody who ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...answers.charts import Plane
from ...answers.race import predicted_chart
from ...executor.tuning.result import TuningResult
from ...executor.tuning.tables import outcome
from ...executor.tuning.trust import Trust
from ..verdict import (
    effort,
    evidence_rows,
    expected_words,
    place_words,
    quality_notes,
    rivals,
    sustained_rows,
    sustained_words,
)
from ..words import capital, counted, microseconds, observed
from .subject import Subject
from .table import Table, TableCell, columns, numbers, table
from .texts import clipped

_MOST_ROWS = 60

_KINDS = {Trust.HIGH: "good", Trust.LIMITED: "warn", Trust.NONE: "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceSection:
    """A race and how far its answer can be trusted.

    `verdict`, `kind`: how far its answer can be trusted, in a line, and what to think of it ("good", "warn",
    "bad"). `quality`, `quality_words`: how good predictions were, and why some of it is not known.
    `sustained`, `sustained_words`: what the finalists did for longer; no words where that was not asked for.
    """

    observed: str  # what its times are: "measured" or "simulated"
    words: str  # how it went
    verdict: str
    kind: str
    evidence: Table  # what that is based on
    scatter: Plane | None  # predicted against measured; None: nothing to compare
    quality: Table
    quality_words: str
    candidates: Table  # all of them; those that did not run stand last, and the title counts them
    sustained: Table
    sustained_words: str

    @property
    def title(self) -> str:
        """Title of the section."""
        return f"Predicted against {self.observed}"


def race(subject: Subject) -> RaceSection | None:
    """Return the race that a subject took part in, or None."""
    result = subject.tuning
    if result is None:
        return None
    verdict = result.verdict
    return RaceSection(
        observed=subject.observed,
        words=_words(result),
        verdict="" if verdict is None else verdict.line,
        kind="" if verdict is None else _KINDS[verdict.trust],
        evidence=table(
            "What trust is based on",
            columns("what", *numbers("value", "fine up to"), "meaning"),
            evidence_rows(result),
        ),
        scatter=predicted_chart(result, result.tables),
        quality=_quality(result),
        quality_words="; ".join(quality_notes(result)),
        candidates=_candidates(result, subject.deployment.deployment_id),
        sustained=table(
            "Finalists under sustained load",
            columns("finalist", *numbers("at first", "at the end", "difference", "visits")),
            sustained_rows(result),
        ),
        sustained_words=" ".join(sustained_words(result)),
    )


def _words(result: TuningResult) -> str:
    parts = [f"{capital(effort(result))}."]
    if result.simulated:
        parts.insert(0, f"Simulated: no device ran, times are those of the {result.device}.")
    if result.pace == "latency":
        parts.append("The latency counts first, so one request was run at a time.")
    if result.winner is not None:
        parts.append(f"The winner is {result.winner.candidate.label}.")
    return " ".join([*parts, *rivals(result)])


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
    predicted = [f"{name} says" for name in names] + ["90 % within"] * result.has_intervals
    titles = columns(
        *numbers("#"),
        "candidate",
        "kind",
        "chunks",
        *numbers(*predicted, observed(simulated=result.simulated), "ratio", f"{result.latency_name} p50"),
        "outcome",
    )
    rows = list(_candidate_rows(result, names))
    strong = [index for index, row in enumerate(result.rows) if row.candidate.key == key]
    idle = sum(row.period_us is None for row in result.rows)
    left = f"; {counted(idle, 'candidate')} did not run" if idle else ""
    return table(f"All candidates{left}", titles, rows, strong=strong, most=_MOST_ROWS)


def _candidate_rows(result: TuningResult, names: Sequence[str]) -> Iterator[list[TableCell | str]]:
    for row in result.rows:
        candidate, kind = row.candidate, ""
        if row.failure is not None:
            kind = "bad"
        elif row is result.winner:
            kind = "good"
        yield [
            place_words(row),
            TableCell(text=candidate.label, kind="name"),
            str(candidate.kind),
            TableCell(text=clipped(str(candidate.deployment)), kind="code"),
            *(microseconds(candidate.predicted(name)) for name in names),
            *([expected_words(candidate)] if result.has_intervals else []),
            microseconds(row.comparable_us),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            microseconds(row.latency_p50_us),
            TableCell(text=outcome(row, result), kind=kind or "text"),
        ]


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"
