"""From what a race and a profile have shown to the verdict: how far the answer can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from .candidates import CandidateKind, strongest_first
from .result import TuningResult, TuningStop
from .sustained import Sustained
from .trust import LIMITS_PERCENT, Evidence, Ground, TableFacts, percent, verdict_of

_KINDS = {CandidateKind.PLAN: "the best plan by prediction", CandidateKind.BASELINE: "the strongest baseline"}
_CUTS = {TuningStop.BUDGET: "the budget was used up", TuningStop.INTERRUPTED: "it was interrupted"}


def judged(result: TuningResult, facts: TableFacts, others: float | None) -> TuningResult:
    """Return a result with its verdict.

    `others`: share of the cores that other programs kept busy meanwhile; None: not known.
    """
    return _with_verdict(
        result,
        [
            _evidence(Ground.NOISE, result.noise_percent),
            _evidence(Ground.DRIFT, result.drift_percent),
            _evidence(Ground.OTHERS, percent(others)),
            _evidence(Ground.SUMS, percent(facts.sums_error)),
            _evidence(Ground.UNSTEADY, percent(facts.unsteady)),
            _evidence(Ground.BASELINES, _baselines_percent(result)),
        ],
    )


def sustained(result: TuningResult, found: Sustained) -> TuningResult:
    """Return a result that was judged, with what its finalists did for longer."""
    known = [] if result.verdict is None else result.verdict.evidence
    slowest = max((row.change_percent for row in found.rows), default=None)
    return _with_verdict(replace(result, sustained=found), [*known, _evidence(Ground.SUSTAINED, slowest)])


def _with_verdict(result: TuningResult, evidence: Sequence[Evidence]) -> TuningResult:
    missing, cut = tuple(_missing(result)), tuple(_cut(result))
    return replace(result, verdict=verdict_of(evidence, missing=missing, cut=cut))


def _evidence(ground: Ground, percent: float | None) -> Evidence:
    return Evidence(ground=ground, percent=percent, limit_percent=LIMITS_PERCENT[ground])


def _missing(result: TuningResult) -> Iterator[str]:
    """Yield which of the strongest rivals were not tried, in words."""
    if result.winner is None:
        yield "nothing was measured"
        return
    rows = {row.candidate.key: row for row in result.rows}
    for rival in strongest_first([row.candidate for row in result.rows])[:2]:
        row = rows[rival.key]
        if row.period_us is None and row.failure is None:
            yield f"{_KINDS[rival.kind]}, {rival.label}, was not measured"


def _cut(result: TuningResult) -> Iterator[str]:
    """Yield what kept the race from its end, in words."""
    if result.stop in _CUTS:
        tried = (
            f", {result.measured} of {len(result.rows)} measured"
            if result.measured < len(result.rows)
            else ""
        )
        yield f"{_CUTS[result.stop]}{tried}"
    checked = result.winner.verification if result.winner is not None else None
    if checked is not None and checked.problem:
        yield f"numbers of the winner are not verified, because {checked.problem}"
    if result.sustained is not None and result.sustained.interrupted:
        yield "the sustained run was interrupted"
    if result.sustained is not None and result.sustained.order_held is False:
        yield f"the order of the {result.sustained.beginning} did not hold"


def _baselines_percent(result: TuningResult) -> float | None:
    """Return the mean difference of baselines from what the first table predicts, percent of that."""
    errors = [
        abs(row.comparable_us / row.candidate.expected_us - 1)
        for row in result.rows
        if row.candidate.kind is CandidateKind.BASELINE and row.candidate.predicted_us
        if row.comparable_us is not None and row.failure is None
    ]
    return 100 * fmean(errors) if errors else None
