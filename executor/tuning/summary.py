"""From the trials of a race to its result: winner, ties, errors of predictions, and the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from statistics import fmean, median

from ..measurement import Measurement, Spread
from . import racing
from .candidates import CandidateKind, TuningCandidate, strongest_first
from .race import Race
from .result import (
    LIMITS_PERCENT,
    Evidence,
    Ground,
    PredictionQuality,
    Sustained,
    TableFacts,
    Trial,
    TuningResult,
    TuningRow,
    TuningStop,
    percent,
    quality,
    verdict_of,
)

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


def summarise(race: Race, stop: TuningStop, facts: TableFacts) -> TuningResult:
    """Return what a race has found, and how far it can be trusted."""
    contenders = [one.key for one in race.candidates if one.key not in race.failures]
    ties = _ties(race, race.periods(contenders))
    periods = race.periods(candidate.key for candidate in race.candidates)
    rows = [_row(race, candidate, periods, ties) for candidate in race.candidates]
    rows.sort(key=lambda row: _order(row, ties))
    taken = [trial.measurement for trial in race.trials.values() if trial.measurement]
    found = TuningResult(
        options=race.options,
        rows=tuple(_placed(rows, periods)),
        ties=ties,
        baseline_wins=bool(ties) and rows[0].candidate.kind is CandidateKind.BASELINE,
        stop=stop,
        drift_percent=percent(racing.drift(periods)),
        noise_percent=percent(racing.noise(periods, ties[0]) if ties else None),
        spent_s=race.spent_s,
        run=race.number,
        reused=race.reused,
        device=taken[-1].device if taken else "",
        quality=tuple(_qualities(rows)),
        simulated=any(one.simulated for one in taken),
    )
    return judged(found, facts, _others(race.trials.values()))


def _others(trials: Iterable[Trial]) -> float | None:
    """Return which share of the cores other programs kept busy while candidates ran; None: not known."""
    known = [
        (one.measurement.machine.others, one.measurement.seconds)
        for one in trials
        if one.measurement is not None and one.measurement.machine is not None
    ]
    told = [(share, seconds) for share, seconds in known if share is not None]
    return sum(share * seconds for share, seconds in told) / sum(s for _, s in told) if told else None


def _ties(race: Race, periods: racing.Periods) -> tuple[str, ...]:
    """Return the winner and those that cannot be told from it, by their keys (rule 8 of `racing`)."""
    alive = [key for key in race.alive if key in periods]
    if not alive:
        return ()
    first = racing.leader(periods, alive)
    found = {key: racing.ratios(periods, key, first) for key in alive}
    near = 1 + race.options.margin
    equal = (key for key in alive if key == first or racing.ties(found[key]))
    winner = min(equal, key=lambda key: (median(found[key]) > near, *_price(race, key)))
    told = {key: racing.ratios(periods, key, winner) for key in periods if key != winner}
    return (
        winner,
        *sorted((key for key in told if racing.ties(told[key])), key=lambda key: median(told[key])),
    )


def _price(race: Race, key: str) -> tuple[int, int, float, float]:
    """Return what decides a tie: numbers of units and of hops, latency, prediction."""
    candidate = race.alive[key]
    hops = sum(len(stream.groups) - 1 for stream in candidate.deployment.streams)
    latency_us = median(m.latency_us.median for m in race.measurements(key).values())
    predicted = min((period_us for _, period_us in candidate.predicted_us), default=inf)
    return len(candidate.deployment.units), hops, latency_us, predicted


def _row(race: Race, candidate: TuningCandidate, periods: racing.Periods, ties: tuple[str, ...]) -> TuningRow:
    key = candidate.key
    trials = [trial for visit, trial in race.trials.items() if visit.candidate == key]
    found = tuple(race.measurements(key).values())
    row = TuningRow(
        candidate=candidate,
        rung_us=tuple(_rung_us(race, key, rung) for rung in range(len(race.options.steps))),
        verification=next((trial.verification for trial in trials if trial.verification), None),
        failure=race.failures.get(key),
        left_after=race.left_after.get(key),
    )
    if not found:
        return row
    if ties and (compared := racing.ratios(periods, key, ties[0])):
        row = replace(
            row,
            ratio=median(compared),
            comparable_us=median(compared) * median(periods[ties[0]].values()),
            lower_ratio=racing.lower_limit(compared),
            shared_rounds=len(compared),
        )
    return replace(
        row,
        period_us=Spread.of(list(periods[key].values())),
        visit_us=tuple(periods[key].values()),
        latency_p50_us=median(m.latency_us.median for m in found),
        latency_p95_us=median(m.latency_us.p95 for m in found),
        chunk_us=tuple(median(times) for times in zip(*map(_chunk_us, found), strict=True)),
        requests=sum(m.requests for m in found),
        measured_s=sum(m.seconds for m in found),
        receipts=found[-1].receipts,
        watts=_watts(found),
    )


def _watts(found: Sequence[Measurement]) -> float | None:
    """Return the mean power of the machine over some visits; None where it did not say it in all of them."""
    told = [None if one.machine is None else one.machine.watts for one in found]
    known = [(watts, one.seconds) for watts, one in zip(told, found, strict=True) if watts is not None]
    whole = sum(seconds for _, seconds in known)
    return sum(watts * seconds for watts, seconds in known) / whole if len(known) == len(found) else None


def _chunk_us(found: Measurement) -> list[float]:
    return [chunk.busy_us.median for chunk in found.chunks]


def _rung_us(race: Race, key: str, rung: int) -> float | None:
    found = [m.period_us for m in race.measurements(key, rung=rung).values()]
    return median(found) if found else None


def _order(row: TuningRow, ties: tuple[str, ...]) -> tuple[bool, bool, bool, float, float]:
    """Return the key of the order of rows: the winner, its ties, others by ratio, not measured, failures."""
    key, ratio = row.candidate.key, inf if row.ratio is None else row.ratio
    return row.failure is not None, key not in ties[:1], key not in ties, ratio, row.candidate.expected_us


def _placed(rows: Sequence[TuningRow], periods: racing.Periods) -> Iterator[TuningRow]:
    """Yield rows with their places (rule 9 of `racing`)."""
    first, place = "", 0
    for number, row in enumerate(rows, start=1):
        if row.failure is not None or row.ratio is None:
            yield row
            continue
        if not first or not racing.ties(racing.ratios(periods, row.candidate.key, first)):
            first, place = row.candidate.key, number
        yield replace(row, place=place)


def _qualities(rows: Sequence[TuningRow]) -> Iterator[PredictionQuality]:
    planned = [row for row in rows if row.candidate.rank is not None and row.failure is None]
    scopes = {
        "all plans": planned,
        "plans of several chunks": [row for row in planned if _chunks(row) > 1],
    }
    tables = dict.fromkeys(table for row in planned for table, _ in row.candidate.predicted_us)
    for table in tables:
        for scope, members in scopes.items():
            pairs = [
                (predicted, row.comparable_us)
                for row in members
                if row.comparable_us and (predicted := row.candidate.predicted(table)) is not None
            ]
            yield quality([p for p, _ in pairs], [m for _, m in pairs], table=table, scope=scope)


def _chunks(row: TuningRow) -> int:
    return max(len(stream.chunks) for stream in row.candidate.deployment.streams)
