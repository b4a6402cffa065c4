"""Tuning for people: the rounds, the verdict, and everybody who was measured."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...api.rounds import Loop, LoopStop
from ...api.tuning import Tuned
from ...executor.tuning.candidates import CandidateKind
from ...executor.tuning.result import TuningResult, TuningRow, TuningStop
from ...executor.tuning.statistics import PredictionQuality
from ...executor.tuning.tables import outcome
from ..layout import indented, plain_table
from ..words import microseconds

MAX_ROWS_SHOWN = 30
DRIFT_PERCENT = 10.0
"""Drift from which on a warning is due."""

_STOPS = {
    TuningStop.DECIDED: "decided: everybody else is clearly slower",
    TuningStop.COMPLETE: "all rungs climbed",
    TuningStop.BUDGET: "the time was used up",
    TuningStop.INTERRUPTED: "interrupted; go on with --resume",
}
_LOOP_STOPS = {
    LoopStop.SETTLED: "Settled: the best has stood the last round, and nothing is predicted to be faster",
    LoopStop.EXHAUSTED: "Ended: no plan is left that was not measured",
    LoopStop.ROUNDS: "All rounds are done",
    LoopStop.BUDGET: "The time was used up",
    LoopStop.INTERRUPTED: "Interrupted; go on with --resume",
}


def tuned_view(tuned: Tuned) -> Group:
    """Return what `gapless tune` shows: the rounds, if several were asked for, and the result."""
    if tuned.loop is None:
        return tuning_view(tuned.result)
    return loop_view(tuned.loop, tuned.result, units=tuned.problem.platform.unit_names)


def loop_view(loop: Loop, result: TuningResult, *, units: Sequence[str] = ()) -> Group:
    """Return the rounds of a closed loop, and its result.

    Parameters
    ----------
    loop, result
        All rounds, and the one that the answer is from.
    units
        Names of the units, for the factors that were learned; empty: they are not known, and not shown.
    """
    words = Text(_loop_words(loop))
    return Group(indented(_rounds(loop, result, units)), "", words, "", tuning_view(result))


def _rounds(loop: Loop, answer: TuningResult, units: Sequence[str]) -> RenderableType:
    """Return one line for each round, that of the result in bold."""
    times = tuple(f"x {unit}" for unit in units)
    numbers = ("round", "new plans", "predicted", "measured", "error", *times, "seconds")
    table = plain_table("round", "new plans", "best", *numbers[2:], numbers=numbers)
    for number, (one, count) in enumerate(zip(loop.rounds, loop.new_plans, strict=True), start=1):
        result, winner = one.result, one.result.winner
        factors = () if one.corrections is None else one.corrections.unit_factor[: len(units)]
        errors = [quality.mape_percent for quality in result.quality if quality.table == one.costs]
        table.add_row(
            str(number),
            str(count),
            "-" if winner is None else winner.candidate.label,
            microseconds(None if winner is None else winner.candidate.predicted(one.costs)),
            microseconds(None if winner is None else winner.comparable_us),
            "-" if not errors or errors[0] is None else f"{errors[0]:.1f} %",
            *([f"{factor:.2f}" for factor in factors] or ["-" for _ in units]),
            f"{result.spent_s:.1f}",
            style="bold" if result is answer else "",
        )
    return table


def _loop_words(loop: Loop) -> str:
    """Return why a loop ended, and what could be measured next."""
    words, next_one = _LOOP_STOPS[loop.stop], loop.outlook
    if next_one is None:
        return f"{words}."
    times = f"{microseconds(next_one.predicted_us)} against {microseconds(next_one.best_us)}"
    words += f". Next would be [{next_one.plan}], predicted {times} of the best"
    if next_one.better and loop.stop is LoopStop.ROUNDS:
        words += f": go on with --rounds {len(loop.rounds) + 1} --resume"
    return f"{words}."


def tuning_view(result: TuningResult) -> Group:
    """Return what `gapless tune` shows: the verdict first, then everybody."""
    parts: list[RenderableType] = [
        *verdict_view(result),
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


def verdict_view(result: TuningResult) -> list[Text]:
    """Return who is the fastest, who ties, and whether a baseline wins."""
    winner = result.winner
    if winner is None or winner.period_us is None:
        return [Text("nothing was measured", style="bold magenta")]
    text = Text(winner.candidate.label, style="bold green")
    deployment, median_us = winner.candidate.deployment, winner.period_us.median
    rate = (len(deployment.streams) if deployment.rounds else 1) * 1e6 / median_us
    text.append(
        f" is the fastest: {deployment.pace} {microseconds(median_us)}, "
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
    tables = result.tables
    # The latency is a column of its own, unless it is what candidates were compared by.
    pace = result.pace
    numbers = ("#", *(f"{name} says" for name in tables), str(pace), "ratio")
    numbers += () if pace == "latency" else ("latency p50",)
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
            *(() if pace == "latency" else (microseconds(row.latency_p50_us),)),
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
