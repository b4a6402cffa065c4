"""Tuning for people: the rounds, the verdict, and everybody who was measured."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ...api.rounds import Loop, LoopStop
from ...api.tuned import Tuned
from ...executor.tuning.result import TuningResult, TuningRow
from ...executor.tuning.statistics import PredictionQuality
from ...executor.tuning.tables import brief_outcome, outcome
from ...executor.tuning.trust import Trust
from ..layout import indented, plain_table
from ..verdict import (
    effort,
    evidence_rows,
    expected_words,
    next_step,
    place_words,
    quality_notes,
    rivals,
    sustained_rows,
    sustained_words,
)
from ..words import microseconds, observed, tier_legend, tier_words
from .running import simulated_line
from .trade_offs import front_view

MAX_ROWS_SHOWN = 30

_TRUST_STYLE = {Trust.HIGH: "green", Trust.LIMITED: "yellow", Trust.NONE: "bold magenta"}

_LOOP_STOPS = {
    LoopStop.SETTLED: "Settled: the best has stood the last round, and nothing is predicted to be faster",
    LoopStop.EXHAUSTED: "Ended: no plan was found that was not measured",
    LoopStop.ROUNDS: "All rounds are done",
    LoopStop.BUDGET: "The time was used up",
    LoopStop.INTERRUPTED: "Interrupted; go on with --resume",
}


def tuned_view(tuned: Tuned, *, details: bool = True) -> Group:
    """Return what `gapless tune` shows: the rounds, if several were asked for, and the result."""
    shown = (
        tuning_view(tuned.result, details=details)
        if tuned.loop is None
        else loop_view(tuned.loop, tuned.result, units=tuned.problem.platform.unit_names, details=details)
    )
    if tuned.front is not None:
        shown = Group(front_view(tuned.problem, tuned.front), "", shown)
    if tuned.profile is None:
        return shown
    return Group(shown, "", Text(f"before the race: {tuned.profile.seconds:.1f} s of profile", style="dim"))


def loop_view(loop: Loop, result: TuningResult, *, units: Sequence[str] = (), details: bool = True) -> Group:
    """Return the rounds of a closed loop, and its result.

    `units`: names of the units, for the factors that were learned; empty: they are not known, and not shown.
    """
    words = Text(_loop_words(loop))
    return Group(indented(_rounds(loop, result, units)), "", words, "", tuning_view(result, details=details))


def _rounds(loop: Loop, answer: TuningResult, units: Sequence[str]) -> RenderableType:
    """Return one line for each round, that of the result in bold."""
    times = tuple(f"x {unit}" for unit in units)
    numbers = ("round", "new plans", "predicted", "measured", "error", *times, "seconds")
    table = plain_table("round", "new plans", "best", *numbers[2:], numbers=numbers)
    for number, (one, count) in enumerate(zip(loop.rounds, loop.new_plans, strict=True), start=1):
        result, winner = one.result, one.result.winner
        factors = one.unit_factors[: len(units)]
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
            style="bold" if result.run == answer.run else "",
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


def tuning_view(result: TuningResult, *, details: bool = True) -> Group:
    """Return the answer first, how far it can be trusted, then everybody.

    `details`: whether all tables, latencies and what trust is based on are shown, or a line a candidate.
    """
    parts: list[RenderableType] = [*verdict_view(result), Text(effort(result), style="dim"), ""]
    if not details:
        more = "all numbers: gapless show OUT/tuning.json, or --details; a page: gapless report OUT"
        failed = [row for row in result.rows if row.failure is not None]
        parts += [indented(_compact(result))]
        parts += [Text(f"{row.candidate.label} {outcome(row, result)}", style="red") for row in failed]
        return Group(*parts, *_sustained(result), Text(more, style="dim"))
    parts += [*_rows(result), *_sustained(result), *_evidence(result)]
    if result.quality:
        parts += [
            "",
            Text(f"predicted against {observed(simulated=result.simulated)}:"),
            indented(_quality(result.quality)),
        ]
        parts += [Text(f"  {note}", style="dim") for note in quality_notes(result)]
    return Group(*parts)


def _compact(result: TuningResult) -> RenderableType:
    """Return a line for each candidate: what it is, what was predicted and measured, what became of it."""
    numbers = ("#", "predicted", "measured")
    table = plain_table("#", "candidate", "chunks", *numbers[1:], "outcome", numbers=numbers)
    for row in result.rows[:MAX_ROWS_SHOWN]:
        table.add_row(
            place_words(row),
            row.candidate.label.partition(" on ")[0],  # the units stand beside it
            str(row.candidate.deployment),
            microseconds(row.candidate.predicted(next(iter(result.tables), ""))),
            microseconds(row.comparable_us),
            brief_outcome(row, result),
            style=_style(row, result),
        )
    return table


def verdict_view(result: TuningResult) -> list[Text]:
    """Return who wins, who ties, whether a baseline wins, and how far that can be trusted."""
    winner = result.winner
    if winner is None or winner.period_us is None:
        lines = [Text("nothing was measured", style="bold magenta")]
    else:
        lines = [_winner_line(result, winner, winner.period_us.median)]
        lines += [Text(sentence, style="yellow" if result.ties[1:] else "") for sentence in rivals(result)]
    lines = [*simulated_line(result), *lines]
    if result.verdict is not None:
        lines.append(Text(result.verdict.line, style=_TRUST_STYLE[result.verdict.trust]))
    if step := next_step(result):
        lines.append(Text(step))
    return lines


def _winner_line(result: TuningResult, winner: TuningRow, median_us: float) -> Text:
    deployment = winner.candidate.deployment
    rate = (len(deployment.streams) if deployment.rounds else 1) * 1e6 / median_us
    what = "is the fastest" if len(result.ties) == 1 else "wins a tie"
    if not result.has_verdict or not result.all_told:
        what = "is the fastest so far"
    return Text.assemble(
        (winner.candidate.label, "bold green" if result.has_verdict else "yellow"),
        f" {what}: {deployment.pace_name} {microseconds(median_us)}, {rate:,.1f} requests/s  [{deployment}]",
    )


def _sustained(result: TuningResult) -> list[RenderableType]:
    """Return what the finalists did for longer."""
    if result.sustained is None:
        return []
    numbers = ("at first", "at the end", "difference", "visits")
    table = plain_table("finalist", *numbers, numbers=numbers)
    for row in sustained_rows(result):
        table.add_row(*row)
    return ["", *map(Text, sustained_words(result)), *([indented(table)] if table.rows else [])]


def _evidence(result: TuningResult) -> list[RenderableType]:
    """Return what the verdict is based on."""
    if result.verdict is None:
        return []
    table = plain_table("what", "value", "fine up to", "meaning", numbers=("value", "fine up to"))
    for one, row in zip(result.verdict.evidence, evidence_rows(result), strict=True):
        table.add_row(*row, style="yellow" if one.doubtful else "dim" if one.percent is None else "")
    return ["", Text("what trust is based on:"), indented(table)]


def _rows(result: TuningResult) -> list[RenderableType]:
    """Return everybody who was measured, and what is said of them."""
    tables = result.tables
    # The latency is a column of its own, unless it is what candidates were compared by.
    pace = result.pace
    numbers = ("#", *(f"{name} says" for name in tables), result.pace_name, "ratio")
    numbers += () if pace == "latency" else (f"{result.latency_name} p50",)
    told = ("90 % within",) if result.has_intervals else ()
    numbers = (*numbers[: 1 + len(tables)], *told, *numbers[1 + len(tables) :])
    found = tier_words([row.candidate.predicted(name) for row in result.rows for name in tables[:1]])
    tier = ("tier",) if found else ()
    table = plain_table("#", "candidate", "chunks", *tier, *numbers[1:], "outcome", numbers=(*tier, *numbers))
    for place, row in enumerate(result.rows[:MAX_ROWS_SHOWN]):
        candidate = row.candidate
        table.add_row(
            place_words(row),
            candidate.label,
            str(candidate.deployment),
            *(found[place] for _ in tier),
            *(microseconds(candidate.predicted(name)) for name in tables),
            *(expected_words(candidate) for _ in told),
            microseconds(row.comparable_us),
            "-" if row.ratio is None else f"{row.ratio:.3f}",
            *(() if pace == "latency" else (microseconds(row.latency_p50_us),)),
            outcome(row, result),
            style=_style(row, result),
        )
    return [
        indented(table),
        *(Text(tier_legend(f"{result.pace_name} ({tables[0]})"), style="dim") for _ in tier),
    ]


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
