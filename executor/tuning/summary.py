"""From the trials of a race to its result: who wins, who ties, how good the predictions were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from statistics import median

from ..measurement import Measurement, Spread
from . import racing
from .candidates import CandidateKind, TuningCandidate
from .judging import judged
from .race import Race
from .result import TuningResult, TuningRow, TuningStop
from .statistics import PredictionQuality, quality
from .trials import Trial
from .trust import TableFacts, percent


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
