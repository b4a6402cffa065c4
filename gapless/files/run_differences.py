"""What differs between two runs: what was measured where, and the times with their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import comb
from pathlib import Path

from ..executor.measurement import Spread
from ..executor.tuning.result import TuningResult, TuningRow
from ..formulations.errors import InvalidInputError
from ..formulations.files import load_problem
from ..formulations.problem import Problem
from .runs import RunSummary, summary_of, tuning_of

CHANCE = 0.05
"""How often the visits of two equal runs may lie apart by chance."""

_MOST_SHARED = 20


class Noise(StrEnum):
    """Whether a difference of times means anything.

    BEYOND
        Every visit of one run was slower than every visit of the other one, and there were enough of them.
    WITHIN
        The visits of both overlap.
    FEW
        There were too few visits to tell.
    OTHER
        The times are not of the same thing: other networks, or period against latency.
    """

    BEYOND = "beyond the noise"
    WITHIN = "within the noise"
    FEW = "too few visits to tell"
    OTHER = "not the same thing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that both runs say; empty: it is not known of that run."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeDifference:
    """Times of both runs over their visits.

    `first`, `second`: its times, microseconds.
    """

    what: str  # what ran
    first: Spread
    second: Spread
    percent: float  # how much longer it took in the second run, by the medians
    noise: Noise  # whether that means anything


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifferences:
    """Two runs side by side.

    `first`, `second`: both.
    """

    first: RunSummary
    second: RunSummary
    facts: tuple[Fact, ...]  # what they say differently
    same: tuple[str, ...]  # names of what they say alike
    best: TimeDifference | None  # the winner of each; None where nothing was measured
    shared: tuple[TimeDifference, ...]  # deployments that both have measured, the fastest first


def run_differences(first: Path, second: Path) -> RunDifferences:
    """Return what differs between the runs of two folders; errors as for `load`."""
    one, other = summary_of(first), summary_of(second)
    facts = list(_facts(one, other, _problem(first), _problem(second)))
    alike = one.networks == other.networks and one.pace == other.pace
    best = None
    if one.period_us is not None and other.period_us is not None:
        what = one.deployment if one.deployment == other.deployment else "the fastest of each run"
        best = _difference(what, one.period_us, other.period_us, alike=alike)
    return RunDifferences(
        first=one,
        second=other,
        facts=tuple(fact for fact in facts if fact.first != fact.second),
        same=tuple(fact.name for fact in facts if fact.first == fact.second and fact.first),
        best=best,
        shared=tuple(_shared(tuning_of(first), tuning_of(second), alike=alike)),
    )


def noise_of(first: Spread, second: Spread) -> Noise:
    """Return whether two sets of visits lie apart, and could hardly do so by chance.

    Of two equal runs with m and n visits, all of one lie above all of the other in 2 of the C(m + n, m)
    orders: with three visits each in every tenth case, with four in every 35th.
    """
    if 2 / comb(first.count + second.count, first.count) > CHANCE:
        return Noise.FEW
    apart = first.most < second.least or second.most < first.least
    return Noise.BEYOND if apart else Noise.WITHIN


def _difference(what: str, first: Spread, second: Spread, *, alike: bool) -> TimeDifference:
    return TimeDifference(
        what=what,
        first=first,
        second=second,
        percent=100 * (second.median / first.median - 1),
        noise=noise_of(first, second) if alike else Noise.OTHER,
    )


def _shared(
    first: TuningResult | None, second: TuningResult | None, *, alike: bool
) -> Iterator[TimeDifference]:
    if first is None or second is None or not alike:
        return
    others = {row.candidate.key: row for row in second.rows}
    pairs = [(row, others[row.candidate.key]) for row in first.rows if row.candidate.key in others]
    known = [(a, b) for a, b in pairs if a.period_us is not None and b.period_us is not None]
    for row, other in sorted(known, key=lambda pair: _median(pair[0]))[:_MOST_SHARED]:
        assert row.period_us is not None
        assert other.period_us is not None
        yield _difference(str(row.candidate.deployment), row.period_us, other.period_us, alike=True)


def _median(row: TuningRow) -> float:
    return row.period_us.median if row.period_us is not None else 0.0


def _facts(
    first: RunSummary, second: RunSummary, planned: Problem | None, other: Problem | None
) -> Iterator[Fact]:
    """Yield what both runs say, alike or not."""

    def fact(name: str, one: str, two: str) -> Fact:
        return Fact(name=name, first=one, second=two)

    yield fact("networks", ", ".join(first.networks), ", ".join(second.networks))
    yield fact("models", _models(planned), _models(other))
    yield fact("units", ", ".join(first.units), ", ".join(second.units))
    yield fact("engine", first.engine, second.engine)
    yield fact("gapless", first.gapless, second.gapless)
    yield fact("device", first.device, second.device)
    yield fact("objective", _objective(planned), _objective(other))
    yield fact("costs", _costs(planned), _costs(other))
    yield fact("problem", planned.fingerprint if planned else "", other.fingerprint if other else "")
    yield fact("state", first.state, second.state)
    yield fact("winner", first.best, second.best)
    yield fact("runs", first.deployment, second.deployment)
    yield fact("verdict", first.verdict, second.verdict)
    yield fact("begun", first.started_at, second.started_at)
    yield fact("command", first.line, second.line)


def _problem(place: Path) -> Problem | None:
    try:
        return load_problem(place / "problem.json")
    except InvalidInputError:
        return None


def _models(problem: Problem | None) -> str:
    networks = () if problem is None else problem.networks
    models = (model for network in networks for model in network.models)
    return ", ".join(f"{model.locator} (digest {model.digest[:12]})" for model in models)


def _objective(problem: Problem | None) -> str:
    return "" if problem is None else str(problem.objective)


def _costs(problem: Problem | None) -> str:
    return "" if problem is None else problem.costs.provenance.method
