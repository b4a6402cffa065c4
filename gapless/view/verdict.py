"""The verdict of a tuning run in words and tables: the terminal and the page say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from ..executor.tuning.candidates import CandidateKind, TuningCandidate
from ..executor.tuning.result import TuningResult, TuningRow, TuningStop
from ..executor.tuning.sustained import Sustained
from ..executor.tuning.trust import Ground
from ..formulations.plan import comes_back
from .words import interval_words, listed, microseconds

_STOPS = {
    TuningStop.DECIDED: "decided: all others are clearly slower",
    TuningStop.COMPLETE: "all rungs climbed",
    TuningStop.BUDGET: "the budget was used up",
    TuningStop.INTERRUPTED: "interrupted; go on with --resume",
}
_MEANINGS = {
    Ground.NOISE: "how much ratios vary from round to round",
    Ground.DRIFT: "how much slower the machine was in the last round",
    Ground.OTHERS: "share of the cores that they kept busy",
    Ground.SUMS: "mean error against chunks measured as such",
    Ground.UNSTEADY: "share of the profile that stayed unsteady",
    Ground.BASELINES: "mean difference",
    Ground.SUSTAINED: "the worst finalist, at the end",
}
ENOUGH_VISITS = 2
"""So many visits of each candidate are the least that differences can be told from noise by."""

_UP_TO_S = 5
"""Missing seconds are rounded up to a multiple of it."""

NOT_TOLD = "not told by this system"

Rows = Sequence[Sequence[str]]


def expected_words(candidate: TuningCandidate) -> str:
    """Return between what the period of a candidate is expected to lie; "-": nothing was learned of it."""
    return interval_words(*candidate.interval_us) if candidate.interval_us else "-"


def place_words(row: TuningRow) -> str:
    """Return the place of a candidate."""
    return "-" if row.place is None else str(row.place)


def rivals(result: TuningResult) -> list[str]:
    """Return how the winner compares with its ties, and with the best of the other kind, as sentences."""
    winner = result.winner
    if winner is None:
        return []
    near = [row for row in result.rows if row.candidate.key in result.ties[1:]]
    tied = [row.candidate.label for row in near if result.is_known_tie(row)]
    open_ = [row.candidate.label for row in near if not result.is_known_tie(row)]
    lines = [f"It ties with {listed(tied)}: the difference is within the noise."] if tied else []
    if open_:
        lines.append(f"Too few visits to tell it from {listed(open_)}.")
    if result.baseline_wins and result.has_verdict:
        plan = result.best(CandidateKind.PLAN)
        best = f" (the best one, {plan.candidate.label}, {compared(plan, result)})" if plan else ""
        return [*lines, f"A baseline wins: no plan is faster beyond the noise{best}."]
    lines += _other_class(result, winner)
    baseline = result.best(CandidateKind.BASELINE)
    if baseline is None:
        return lines
    return [*lines, f"The best baseline, {baseline.candidate.label}, {compared(baseline, result)}."]


def _other_class(result: TuningResult, winner: TuningRow) -> list[str]:
    """Return how the best plan compares whose units have one chunk each, or of those that come back."""

    def back(row: TuningRow) -> bool:
        streams = row.candidate.deployment.streams
        return any(stream.cycle is not None or comes_back(stream.chunks) for stream in streams)

    rows = [row for row in result.rows if row.ratio is not None and row.candidate.kind is CandidateKind.PLAN]
    in_step = winner.candidate.deployment.rounds is not None
    others = [
        row
        for row in rows
        if back(row) != back(winner) and (in_step or len(row.candidate.deployment.streams) == 1)
    ]
    best = min(others, key=lambda row: (row.place or len(rows), row.ratio), default=None)
    if best is None:
        return []
    ways = ("with one chunk per unit", "that comes back to a unit")
    if in_step:
        ways = ("whose requests have one chunk per unit", "whose requests come back to a unit")
    kind = ways[not back(winner)]
    return [f"The best plan {kind}, {best.candidate.label}, {compared(best, result)}."]


def compared(row: TuningRow, result: TuningResult, winner: str = "") -> str:
    """Return how a candidate compares with the winner: whoever shares its place is not called slower."""
    if result.is_known_tie(row):
        return f"ties with {winner or 'it'}"
    if row.candidate.key in result.ties:
        ratio = "" if row.ratio is None else f" ({row.ratio:.3f} times as long by now)"
        return f"had too few visits to be told from {winner or 'it'}{ratio}"
    if row.ratio is None:
        return f"was not compared with {winner or 'it'}"
    return f"takes {row.ratio:.3f} times as long{winner and f' as {winner}'}"


def effort(result: TuningResult) -> str:
    """Return why the race ended, how many were measured, and how long that took."""
    failed = sum(row.failure is not None for row in result.rows)
    counts = f"{result.measured} of {len(result.rows)} candidates measured"
    times = f"{result.measured_s:.1f} s {'played on a cost table' if result.simulated else 'measured'}"
    times += "" if result.simulated else f" in a race of {result.spent_s:.1f} s"
    if result.options.budget_s is not None:
        times += f" (budget {result.options.budget_s:.0f} s)"
    return "; ".join([_STOPS[result.stop], counts, *([f"{failed} failed"] if failed else []), times])


def next_step(result: TuningResult) -> str:
    """Return what to do where not all were measured twice, and what that takes; empty where they were."""
    running = [len(row.visit_us) for row in result.rows if row.failure is None]
    missing = sum(max(0, ENOUGH_VISITS - visits) for visits in running)
    if result.stop is not TuningStop.BUDGET or not missing:
        return ""
    words = "Go on with a larger --budget and --resume: what was measured is not measured again"
    if result.simulated or not sum(running):
        return f"{words}."
    more_s = _UP_TO_S * ceil(missing * result.spent_s / sum(running) / _UP_TO_S)
    return f"{words}; about {more_s} s more measure each candidate {ENOUGH_VISITS} times."


def evidence_rows(result: TuningResult) -> Rows:
    """Return (what, value, fine up to, meaning) for each number that the verdict is based on."""
    if result.verdict is None:
        return ()
    return [
        (str(one.ground), one.words, f"{one.limit_percent:g} %", _MEANINGS[one.ground])
        for one in result.verdict.evidence
    ]


def quality_notes(result: TuningResult) -> list[str]:
    """Return why some numbers about predictions are absent, each reason once."""
    return list(dict.fromkeys(entry.absent for entry in result.quality if entry.absent))


def sustained_words(result: TuningResult) -> list[str]:
    """Return what a sustained run has shown, as sentences; none where there was none."""
    found = result.sustained
    if found is None:
        return []
    asked = f" of {_duration(found.asked_s)}; go on with --resume" if found.interrupted else ""
    order = {
        True: f"The order of the {found.beginning} held.",
        False: f"The order of the {found.beginning} did not hold: somebody who was slower is clearly faster.",
        None: "Whether the order held is not known: there were too few rounds.",
    }
    return [
        f"Sustained for {_duration(found.seconds)}{asked}; the {found.beginning} and the last "
        f"{found.window_s:.0f} s are compared.",
        order[found.order_held],
        *_machine_words(found),
        *(f"{_label(result, key)} failed: {failure.message}." for key, failure in found.failures),
    ]


def sustained_rows(result: TuningResult) -> Rows:
    """Return (candidate, at the beginning, at the end, difference, visits) for each finalist."""
    if result.sustained is None:
        return ()
    return [
        (
            _label(result, row.candidate),
            microseconds(row.first_us),
            microseconds(row.last_us),
            f"{row.change_percent:+.1f} %",
            str(row.visits),
        )
        for row in result.sustained.rows
    ]


def _machine_words(found: Sustained) -> Iterator[str]:
    heat = NOT_TOLD if found.celsius is None else "{:.0f} to {:.0f} C".format(*found.celsius)
    clock = NOT_TOLD if found.mhz is None else "{:.0f} to {:.0f} MHz".format(*found.mhz)
    slower = " (throttled)" if found.throttled else ""
    if heat == clock:
        yield f"Clock and temperature: {NOT_TOLD}."
    else:
        yield f"Clock: {clock}{slower}; temperature: {heat}."


def _label(result: TuningResult, key: str) -> str:
    return next(row.candidate.label for row in result.rows if row.candidate.key == key)


def _duration(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
