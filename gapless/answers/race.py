"""A race as charts: what was predicted against what was measured, and how fast each candidate was."""

from __future__ import annotations

from collections.abc import Sequence

from ..executor.tuning.candidates import CandidateKind
from ..executor.tuning.result import TuningResult, TuningRow
from .charts import Axis, Bar, Bars, Facts, Kind, Line, Mark, Part, Plane, Series, Stroke, Track
from .tuning import outcome
from .words import microseconds, observed

_MOST_LETTERS = 32
_COLOURS = {CandidateKind.PLAN: 0, CandidateKind.BASELINE: 1}


def predicted_chart(result: TuningResult, tables: Sequence[str]) -> Plane | None:
    """Return what some tables predict against what was measured; None: nothing to compare.

    Colours tell tables apart; of one table, plans from baselines.
    """
    one = tables[0] if len(tables) == 1 else ""
    names = list(map(str, (CandidateKind.PLAN, CandidateKind.BASELINE))) if one else list(tables)
    marks: dict[str, list[Mark]] = {name: [] for name in names}
    for row in result.rows:
        for name, predicted in row.candidate.predicted_us:
            measured = row.comparable_us
            if name not in tables or measured is None or row.failure is not None:
                continue
            mark = Mark(
                x=predicted / 1000,
                y=measured / 1000,
                facts=_facts(row, name, predicted, measured, result),
                hollow=not one and row.candidate.kind is CandidateKind.BASELINE,
                ring=row is result.winner,
            )
            marks[str(row.candidate.kind) if one else name].append(mark)
    values = [value for found in marks.values() for mark in found for value in (mark.x, mark.y)]
    if not values:
        return None
    seen = observed(simulated=result.simulated)
    by = f" with {one} costs" if one else ""
    across = Axis.around(f"predicted {result.pace}{by}", values, unit="ms")
    upwards = Axis.around(f"{seen} {result.pace}", values, unit="ms")
    ends = (across.low, across.high)
    return Plane(
        kind=Kind.SCATTER,
        title=f"Predicted against {seen}",
        words=_words(result, seen),
        noun="candidate",
        across=across,
        upwards=upwards,
        series=tuple(
            Series(name=name if one else f"table {name}", marks=tuple(found))
            for name, found in marks.items()
            if found
        ),
        guides=(Line(points=tuple(zip(ends, ends, strict=True)), stroke=Stroke.DASHED, name="ideal"),),
        hollow="" if one else "hollow: baseline",
        ring="ring: winner",
    )


def _facts(row: TuningRow, name: str, predicted: int, measured: float, result: TuningResult) -> Facts:
    candidate = row.candidate
    return (
        ("candidate", candidate.label),
        ("chunks", str(candidate.deployment)),
        (f"predicted ({name})", microseconds(predicted)),
        (observed(simulated=result.simulated), microseconds(measured)),
        ("difference", f"{100 * (measured / predicted - 1):+.1f} %"),
        ("outcome", str(outcome(row, result).value)),
    )


def _words(result: TuningResult, seen: str) -> str:
    count = sum(
        row.comparable_us is not None and row.failure is None and bool(row.candidate.predicted_us)
        for row in result.rows
    )
    words = [
        f"{count} candidates, predicted {result.pace_name} to the right, {seen} {result.pace_name} upwards"
    ]
    for entry in result.quality:
        known = "-" if entry.pearson is None else f"{entry.pearson:.3f}"
        error = "-" if entry.mape_percent is None else f"{entry.mape_percent:.1f} %"
        words.append(f"table {entry.table}, {entry.scope}: correlation {known}, mean error {error}")
    return f"{'; '.join(words)}."


def candidates_chart(result: TuningResult) -> Bars:
    """Return how fast each candidate was, the winner on top."""
    found = [row for row in result.rows if row.comparable_us is not None and row.failure is None]
    bars = []
    for place, row in enumerate(found):
        kind, spread = row.candidate.kind, row.period_us
        part = Part(start=0, length=(row.comparable_us or 0.0) / 1000, colour=_COLOURS[kind], name=str(kind))
        ends = None if spread is None else (spread.least / 1000, spread.most / 1000)
        wins = " (winner)" if place == 0 and result.ties else ""
        label = row.candidate.label
        label = label if len(label) <= _MOST_LETTERS else f"{label[: _MOST_LETTERS - 1]}…"
        bars.append(Bar(name=f"{label}{wins}", tracks=(Track(parts=(part,), spread=ends),)))
    tracks = [track for bar in bars for track in bar.tracks]
    most = max((max(track.end, *(track.spread or (0.0,))) for track in tracks), default=1.0)
    seen = observed(simulated=result.simulated)
    return Bars(
        title="Candidates of the race, fastest first",
        across=Axis(name=f"{seen} {result.pace}", unit="ms", low=0, high=1.05 * most),
        rows=tuple(bars),
        legend=tuple((colour, str(kind)) for kind, colour in _COLOURS.items()),
    )
