"""From the trials of a race to its result: who wins, who ties, how good the predictions were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from statistics import median

from ..measurement import Measurement, Spread
from . import racing
from .candidates import CandidateKind, TuningCandidate
from .race import Race
from .result import TuningResult, TuningRow, TuningStop
from .statistics import PredictionQuality, quality


def summarise(race: Race, stop: TuningStop) -> TuningResult:
    """Return what a race has found."""
    ties = _ties(race)
    periods = race.periods(candidate.key for candidate in race.candidates)
    rows = [_row(race, candidate, periods, ties) for candidate in race.candidates]
    rows.sort(key=lambda row: _place(row, ties))
    devices = [trial.measurement.device for trial in race.trials.values() if trial.measurement]
    return TuningResult(
        options=race.options,
        rows=tuple(rows),
        ties=ties,
        baseline_wins=bool(ties) and rows[0].candidate.kind is CandidateKind.BASELINE,
        stop=stop,
        drift_percent=race.drift_percent,
        spent_s=race.spent_s,
        run=race.number,
        reused=race.reused,
        device=devices[-1] if devices else "",
        quality=tuple(_qualities(rows)),
    )


def _ties(race: Race) -> tuple[str, ...]:
    """Return the keys of those that cannot be told from the fastest, the one to choose first."""
    periods = race.periods(race.alive)
    if not periods:
        return ()
    first = racing.leader(periods, periods)
    found = {key: racing.ratios(periods, key, first) for key in periods}
    equal = [key for key in periods if key == first or racing.ties(found[key])]
    near = 1 + race.options.margin
    return tuple(sorted(equal, key=lambda key: (median(found[key]) > near, *_price(race, key))))


def _price(race: Race, key: str) -> tuple[int, float, float]:
    """Return what decides a tie: number of units, latency, prediction."""
    candidate = race.alive[key]
    latency_us = median(m.latency_us.median for m in race.measurements(key).values())
    predicted = min((period_us for _, period_us in candidate.predicted_us), default=inf)
    return len(candidate.deployment.units), latency_us, predicted


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
        )
    return replace(
        row,
        period_us=Spread.of(list(periods[key].values())),
        latency_p50_us=median(m.latency_us.median for m in found),
        latency_p95_us=median(m.latency_us.p95 for m in found),
        chunk_us=tuple(median(times) for times in zip(*map(_chunk_us, found), strict=True)),
        requests=sum(m.requests for m in found),
        measured_s=sum(m.seconds for m in found),
        receipts=found[-1].receipts,
    )


def _chunk_us(found: Measurement) -> list[float]:
    return [chunk.busy_us.median for chunk in found.chunks]


def _rung_us(race: Race, key: str, rung: int) -> float | None:
    found = [m.period_us for m in race.measurements(key, rung=rung).values()]
    return median(found) if found else None


def _place(row: TuningRow, ties: tuple[str, ...]) -> tuple[bool, bool, float]:
    """Return the key of the order of rows: the winner, then by ratio, then failures."""
    winner = row.candidate.key in ties[:1]
    return row.failure is not None, not winner, inf if row.ratio is None else row.ratio


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
