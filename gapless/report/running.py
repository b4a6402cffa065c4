"""Measurements for people: profiles, executed plans, tuning."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ..executor.engine import PlacementReceipt
from ..executor.measurement import Measurement
from ..executor.tuning.candidates import CandidateKind
from ..executor.tuning.result import TuningResult, TuningRow, TuningStop
from ..executor.tuning.statistics import PredictionQuality
from ..executor.tuning.tables import outcome
from ..profiler.profile import Profile
from .layout import indented, plain_table
from .words import microseconds, millis, size

MAX_WARNINGS_SHOWN = 8
MAX_ROWS_SHOWN = 30
DRIFT_PERCENT = 10.0
"""Drift from which on a warning is due."""

_STOPS = {
    TuningStop.DECIDED: "decided: everybody else is clearly slower",
    TuningStop.COMPLETE: "all rungs climbed",
    TuningStop.BUDGET: "the time was used up",
    TuningStop.INTERRUPTED: "interrupted; go on with --resume",
}


def profiles_view(profiles: Sequence[Profile]) -> Group:
    """Return what `gapless profile --side-by-side` shows."""
    return Group(*(profile_view(profile) for profile in profiles))


def profile_view(profile: Profile) -> Group:
    """Return what `gapless profile` shows; the times themselves are for `gapless show`."""
    units = profile.platform.unit_names
    head = Text(profile.network.name, style="bold")
    head.append(
        f": {len(profile.network.layers)} layers on {', '.join(units)}, measured in {profile.seconds:.1f} s "
        f"by {profile.tables[0].provenance.engine}",
        style="not bold",
    )
    table = plain_table("whole network", *units, numbers=units)
    for costs in profile.tables:
        rows = costs.networks[0].layer_us
        sums = [
            None if any(row[u] is None for row in rows) else sum(row[u] or 0 for row in rows)
            for u in range(len(units))
        ]
        table.add_row(costs.provenance.method, *map(millis, sums))
    parts: list[RenderableType] = [head, "", indented(table)]
    if profile.checks:
        checks = plain_table(
            "chunk", "unit", "predicted", "measured", "error", numbers=("predicted", "measured", "error")
        )
        for check in profile.checks:
            checks.add_row(
                f"{check.chunk.start}-{check.chunk.stop - 1}",
                check.chunk.unit,
                microseconds(check.predicted_us),
                microseconds(check.measured_us),
                f"{100 * check.error:+.1f} %",
            )
        error = profile.check_error or 0.0
        parts += [
            "",
            Text(f"sums of layers against chunks measured as such: mean error {100 * error:.1f} %"),
            indented(checks),
        ]
    return Group(*parts, *_warnings(profile.warnings))


def _warnings(warnings: Sequence[str]) -> list[Text]:
    shown = [Text(f"note: {warning}", style="yellow") for warning in warnings[:MAX_WARNINGS_SHOWN]]
    hidden = len(warnings) - MAX_WARNINGS_SHOWN
    if hidden > 0:
        shown.append(Text(f"... and {hidden} more notes (--json shows all)", style="yellow"))
    return shown


def measurement_view(found: Measurement) -> Group:
    """Return what `gapless run` shows."""
    heads = _workload_heads(found) if found.deployment.rounds else [_head(found)]
    numbers = ("busy", "p95", "copy in", "run", "copy out")
    chunks = plain_table("stream", "chunk", "unit", *numbers, numbers=numbers)
    for chunk in found.chunks:
        layers = next(s for s in found.deployment.streams if s.name == chunk.stream).chunks[chunk.chunk]
        chunks.add_row(
            chunk.stream,
            f"{layers.start}-{layers.stop - 1}",
            chunk.unit,
            microseconds(chunk.busy_us.median),
            microseconds(chunk.busy_us.p95),
            microseconds(chunk.copy_in_us.median),
            microseconds(chunk.run_us.median),
            microseconds(chunk.copy_out_us.median),
        )
    units = plain_table("unit", "granted", "busy", "bubble", "memory", numbers=("busy", "bubble", "memory"))
    for unit in found.units:
        receipts = [receipt for receipt in found.receipts if receipt.unit == unit.unit]
        units.add_row(
            unit.unit,
            receipt_words(receipts[0]) if receipts else "-",
            microseconds(unit.busy_us),
            microseconds(unit.bubble_us),
            size(unit.rss_bytes),
        )
    return Group(*heads, Text(str(found.deployment)), "", indented(chunks), "", indented(units))


def _head(found: Measurement) -> Text:
    latency = found.latency_us
    head = Text(f"period {microseconds(found.period_us)}", style="bold")
    head.append(
        f" ({1e6 / found.period_us:,.1f} requests/s), {found.requests:,} requests in {found.seconds:.1f} s; "
        f"latency p50 {microseconds(latency.median)}, p95 {microseconds(latency.p95)}, "
        f"p99 {microseconds(latency.p99)}",
        style="not bold",
    )
    return head


def _workload_heads(found: Measurement) -> list[RenderableType]:
    """Return how long the rounds of a workload took, and the latency of each of its requests."""
    spread, count = found.makespan_us, len(found.streams)
    what = f"period {microseconds(found.period_us)}"
    if spread is not None:
        what = f"makespan {microseconds(spread.median)}"
    head = Text(what, style="bold")
    if spread is not None:
        head.append(f" ({microseconds(spread.least)} to {microseconds(spread.most)})", style="not bold")
    head.append(
        f", {found.requests // count:,} rounds of {count} requests in {found.seconds:.1f} s", style="not bold"
    )
    numbers = ("latency p50", "p95", "most")
    table = plain_table("request", *numbers, numbers=numbers)
    for stream in found.streams:
        latency = stream.latency_us
        table.add_row(stream.stream, *map(microseconds, (latency.median, latency.p95, latency.most)))
    return [head, "", indented(table), ""]


def receipt_words(receipt: PlacementReceipt) -> str:
    """Return what an engine granted."""
    words = [f"{receipt.engine} {receipt.granted_backend}"]
    if receipt.granted_threads:
        words.append(f"{receipt.granted_threads} thread{'s' if receipt.granted_threads > 1 else ''}")
    if receipt.granted_cores:
        words.append(f"cores {','.join(map(str, receipt.granted_cores))}")
    if receipt.quota_permille is not None:
        words.append(f"emulated at {receipt.quota_permille / 10:g} %")
    return ", ".join(words)


def tuning_view(result: TuningResult) -> Group:
    """Return what `gapless tune` shows: the verdict first, then everybody."""
    parts: list[RenderableType] = [
        *_verdict(result),
        Text(
            f"{_STOPS[result.stop]}; {result.measured_s:.1f} s measured of {result.spent_s:.1f} s spent"
            + (f"; drift {result.drift_percent:+.1f} %" if result.drift_percent is not None else ""),
            style="dim",
        ),
        *_drift(result),
        "",
        indented(_rows(result)),
    ]
    if result.quality:
        parts += ["", Text("predicted against measured:"), indented(_quality(result.quality))]
    return Group(*parts)


def _drift(result: TuningResult) -> list[Text]:
    if result.drift_percent is None or abs(result.drift_percent) < DRIFT_PERCENT:
        return []
    words = (
        f"The machine changed its speed by {result.drift_percent:+.0f} % meanwhile. Candidates were compared "
        "within rounds, so the order holds; do not trust the times themselves."
    )
    return [Text(words, style="yellow")]


def _verdict(result: TuningResult) -> list[Text]:
    winner = result.winner
    if winner is None or winner.period_us is None:
        return [Text("nothing was measured", style="bold magenta")]
    text = Text(winner.candidate.label, style="bold green")
    deployment, median_us = winner.candidate.deployment, winner.period_us.median
    rate = (len(deployment.streams) if deployment.rounds else 1) * 1e6 / median_us
    text.append(
        f" is the fastest: {'makespan' if deployment.is_batch else 'period'} {microseconds(median_us)}, "
        f"{rate:,.1f} requests/s  [{deployment}]",
        style="not bold default",
    )
    lines = [text]
    others = [row.candidate.label for row in result.rows if row.candidate.key in result.ties[1:]]
    if others:
        lines.append(
            Text(f"tie with {', '.join(others)}: the difference is within the noise", style="yellow")
        )
    plan = result.best(CandidateKind.PLAN)
    if result.baseline_wins:
        beaten = f" (the best one takes {plan.ratio:.3f} times as long)" if plan and plan.ratio else ""
        lines.append(Text(f"A baseline wins: no plan is faster beyond the noise{beaten}.", style="yellow"))
    else:
        best = result.best(CandidateKind.BASELINE)
        if best is not None and best.ratio is not None:
            lines.append(
                Text(f"The best baseline, {best.candidate.label}, takes {best.ratio:.3f} times as long.")
            )
    return lines


def _rows(result: TuningResult) -> RenderableType:
    tables = tuple(dict.fromkeys(name for row in result.rows for name, _ in row.candidate.predicted_us))
    numbers = ("#", *(f"{name} says" for name in tables), "period", "ratio", "latency p50")
    table = plain_table("#", "candidate", "chunks", *numbers[1:], "outcome", numbers=numbers)
    for place, row in enumerate(result.rows[:MAX_ROWS_SHOWN], start=1):
        candidate = row.candidate
        table.add_row(
            str(place),
            candidate.label,
            str(candidate.deployment),
            *(microseconds(candidate.predicted(name)) for name in tables),
            microseconds(row.comparable_us),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            microseconds(row.latency_p50_us),
            outcome(row, result),
            style=_style(row, result),
        )
    return table


def _style(row: TuningRow, result: TuningResult) -> str:
    if row.failure is not None:
        return "red"
    return "bold" if row is result.winner else "dim" if row.left_after is not None else ""


def _quality(found: Sequence[PredictionQuality]) -> RenderableType:
    numbers = ("plans", "Pearson", "Spearman", "MAPE", "regret of top 1")
    table = plain_table("table", "of", *numbers, numbers=numbers)
    for entry in found:
        regret = dict(entry.regret_percent).get(1)
        table.add_row(
            entry.table,
            entry.scope,
            str(entry.plans),
            *("-" if value is None else f"{value:.3f}" for value in (entry.pearson, entry.spearman)),
            "-" if entry.mape_percent is None else f"{entry.mape_percent:.1f} %",
            "-" if regret is None else f"{regret:.1f} %",
        )
    return table
