"""The result of tuning as a table of texts, for files that a person can open."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from .result import TuningResult, TuningRow

FEW_VISITS = "too few visits to tell from the winner"
"""What became of a candidate that is not clearly slower, but was hardly measured."""

Table = Sequence[Sequence[str]]
"""Rows of cells, all of the same length; the first row names the columns."""


def rows_table(result: TuningResult) -> Table:
    """Return one row for each candidate, the winner first, with all that was measured.

    Times are milliseconds; an empty cell was not measured, or has no meaning. Candidates that cannot be told
    apart share a place. "Comparable" periods are freed from drift (`TuningRow.comparable_us`); the others are
    as they were measured.
    """
    tables = result.tables
    rungs = range(len(result.options.steps))
    header = (
        "place",
        "candidate",
        "kind",
        "deployment",
        "units",
        *(f"predicted {name} ms" for name in tables),
        *(("90 % from ms", "90 % to ms") if result.has_intervals else ()),
        "times the winner's",
        "comparable ms",
        f"{'simulated ' if result.simulated else ''}{result.pace_name} ms",
        "least ms",
        "most ms",
        f"{result.latency_name} p50 ms",
        f"{result.latency_name} p95 ms",
        "requests",
        "measured s",
        *(f"rung {rung + 1} ms" for rung in rungs),
        "numbers",
        "outcome",
    )
    return [header, *(_cells(row, tables, result) for row in result.rows)]


def csv_text(table: Table) -> str:
    """Return a table as comma-separated values."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    return text.getvalue()


def markdown_text(table: Table) -> str:
    """Return a table as Markdown, aligned so that it reads as plain text too."""
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in table]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in [cells[0], ["-" * width for width in widths], *cells[1:]]
    ]
    return "\n".join(lines) + "\n"


def outcome(row: TuningRow, result: TuningResult) -> str:
    """Say in words what became of a candidate."""
    key = row.candidate.key
    if row.failure is not None:
        return f"failed: {row.failure.message}"
    if key in result.ties and not result.has_verdict:
        return "measured, without its strongest rival"
    if key in result.ties:
        if key != result.ties[0]:
            return "ties with the winner" if result.is_known_tie(row) else FEW_VISITS
        if not result.all_told:
            return "fastest so far"
        return "wins" if len(result.ties) == 1 else "wins the tie"
    if row.left_after is not None:
        return f"clearly slower after rung {row.left_after + 1}"
    return "slower" if row.period_us is not None else "not measured"


def brief_outcome(row: TuningRow, result: TuningResult) -> str:
    """Say what became of a candidate in two or three words; of a failure only that it was one."""
    if row.failure is not None:
        return "failed"
    if row.candidate.key in result.ties[1:] and result.has_verdict:
        return "ties" if result.is_known_tie(row) else "too few visits"
    return "slower" if row.left_after is not None else outcome(row, result)


def _cells(row: TuningRow, tables: Sequence[str], result: TuningResult) -> tuple[str, ...]:
    candidate, period = row.candidate, row.period_us
    return (
        "" if row.place is None else str(row.place),
        candidate.label,
        str(candidate.kind),
        str(candidate.deployment),
        str(len(candidate.deployment.units)),
        *(_ms(candidate.predicted(name)) for name in tables),
        *(map(_ms, candidate.interval_us or (None, None)) if result.has_intervals else ()),
        "" if row.ratio is None else f"{row.ratio:.3f}",
        _ms(row.comparable_us),
        *map(_ms, (period.median, period.least, period.most) if period else (None,) * 3),
        _ms(row.latency_p50_us),
        _ms(row.latency_p95_us),
        str(row.requests),
        f"{row.measured_s:.1f}",
        *map(_ms, row.rung_us),
        _checked(row),
        outcome(row, result),
    )


def _checked(row: TuningRow) -> str:
    if row.verification is None:
        return ""
    error = row.verification.worst_error
    return "not verified" if error is None else f"error {error:.1e}"


def _ms(time_us: float | None) -> str:
    return "" if time_us is None else f"{time_us / 1000:.3f}"
