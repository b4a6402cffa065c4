"""What tuning found: visits, candidates with their numbers, winner, ties, and how far it can be trusted."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...formulations import errors
from ...formulations.deployment import FULL_SLOTS, Deployment
from ...formulations.errors import EngineUnavailableError, ExecutionError, InvalidInputError, StoreError
from ...formulations.files import Schema
from ...formulations.validation import FileContent
from ..engine import PlacementReceipt
from ..machine.state import MachineState
from ..measurement import Measurement, Spread
from ..runner import Budget, Runner, Verification
from . import racing
from .candidates import CandidateKind, TuningCandidate
from .racing import FEW_ROUNDS, TuningOptions


class Visit(NamedTuple):
    """Which visit: identity of the deployment, rung, and round within the rung."""

    candidate: str
    rung: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(FileContent):
    """Why a candidate could not be executed."""

    error: str
    """Name of the class of the error."""
    message: str
    """What it said."""

    @classmethod
    def of(cls, error: ExecutionError) -> Failure:
        """Return an error as data."""
        return cls(error=type(error).__name__, message=str(error))

    @property
    def wrong(self) -> bool:
        """Whether its numbers are wrong."""
        return self.error == errors.OutputMismatchError.__name__

    def exception(self, message: str) -> ExecutionError:
        """Return an error of the same class with another message."""
        kind = getattr(errors, self.error, ExecutionError)
        found: ExecutionError = kind(message)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(FileContent):
    """What came of one visit."""

    spent_s: float
    """What it took, with preparation, warm-up and verification, seconds."""
    measurement: Measurement | None = None
    """What was measured, or None."""
    failure: Failure | None = None
    """Why nothing was measured, or None."""
    verification: Verification | None = None
    """Numbers against the uncut model, taken at the first visit; None at others, and where a runner has no
    numbers."""


def attempt(runner: Runner, deployment: Deployment, budget: Budget, *, verifies: bool) -> Trial:
    """Execute a candidate; its failure is data, unless it would befall every candidate.

    Raises StoreError, EngineUnavailableError: nothing can be recorded or executed, whatever the candidate.
    """
    started = time.monotonic()
    verification: Verification | None = None
    measurement, failure = None, None
    try:
        if verifies:
            verification = runner.verify(deployment)
        measurement = runner.measure(deployment, budget)
    except (StoreError, EngineUnavailableError):
        raise
    except ExecutionError as error:
        failure = Failure.of(error)
    return Trial(
        spent_s=time.monotonic() - started,
        measurement=measurement,
        failure=failure,
        verification=verification,
    )


WINDOW_S = 60.0
"""Length of the beginning, and of the end, that are compared; of a short run, a third of it."""

_THROTTLED = 0.95
"""Share of the clock at the beginning below which the machine has throttled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedVisit(FileContent):
    """One visit of a sustained run."""

    candidate: str
    """Identity of the deployment."""
    round: int
    """In each round every finalist is visited once."""
    begin_s: float
    """When it began, seconds of the run."""
    period_us: float
    """What was measured."""
    machine: MachineState | None = None
    """What the machine was like meanwhile; None: not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedRow:
    """How one finalist fared: periods at the beginning and at the end, and the difference in percent."""

    candidate: str
    visits: int
    first_us: float
    last_us: float

    @property
    def change_percent(self) -> float:
        """By how much it was slower at the end."""
        return 100 * (self.last_us / self.first_us - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained(FileContent):
    """What a sustained run has found."""

    asked_s: float
    seconds: float
    """How long it was to be, and how long it was."""
    visits: tuple[SustainedVisit, ...]
    """Every visit, in order of time."""
    failures: tuple[tuple[str, Failure], ...]
    """Finalists that could not be executed any more: identity, and why."""
    interrupted: bool
    """Whether somebody stopped it."""
    run: int
    """Number of the run in the store."""

    @property
    def window_s(self) -> float:
        """Length of the beginning and of the end."""
        return min(WINDOW_S, self.seconds / 3)

    @property
    def beginning(self) -> str:
        """What the first `window_s` are called."""
        return "first minute" if self.window_s == WINDOW_S else f"first {self.window_s:.0f} s"

    @property
    def first(self) -> tuple[SustainedVisit, ...]:
        """Visits of the beginning: whole rounds."""
        rounds = {visit.round for visit in self.visits if visit.begin_s >= self.window_s}
        return tuple(visit for visit in self.visits if visit.round not in rounds)

    @property
    def last(self) -> tuple[SustainedVisit, ...]:
        """Visits of the end."""
        begin_s = max(self.window_s, self.seconds - self.window_s)
        return tuple(visit for visit in self.visits if visit.begin_s >= begin_s)

    @property
    def rows(self) -> tuple[SustainedRow, ...]:
        """How each finalist fared that was visited at both ends, the fastest at first before the others."""
        early, late = _by_candidate(self.first), _by_candidate(self.last)
        rows = [
            SustainedRow(
                candidate=key,
                visits=sum(visit.candidate == key for visit in self.visits),
                first_us=median(early[key].values()),
                last_us=median(late[key].values()),
            )
            for key in early
            if key in late
        ]
        return tuple(sorted(rows, key=lambda row: row.first_us))

    @property
    def order_held(self) -> bool | None:
        """Whether nobody became clearly slower than somebody who was slower at first; None: not known."""
        keys = [row.candidate for row in self.rows]
        begun = {visit.round for visit in self.first}
        after = _by_candidate([visit for visit in self.visits if visit.round not in begun])
        pairs = [racing.ratios(after, faster, slower) for faster, slower in combinations(keys, 2)]
        if not any(len(found) >= racing.FEW_ROUNDS for found in pairs):
            return None
        return not any(racing.clearly_slower(found, margin=racing.RESOLUTION) for found in pairs)

    @property
    def mhz(self) -> tuple[float, float] | None:
        """The clock at the beginning and at the end; None: not told."""
        first, last = ([v.machine.mhz for v in part if v.machine] for part in (self.first, self.last))
        return _ends(first, last)

    @property
    def celsius(self) -> tuple[float, float] | None:
        """The temperature at the beginning and at the end; None: not told."""
        first, last = ([v.machine.celsius for v in part if v.machine] for part in (self.first, self.last))
        return _ends(first, last)

    @property
    def throttled(self) -> bool | None:
        """Whether the clock was lower at the end; None: not told."""
        return None if self.mhz is None else self.mhz[1] < _THROTTLED * self.mhz[0]


def _by_candidate(visits: Sequence[SustainedVisit]) -> dict[str, dict[int, float]]:
    found: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for visit in visits:
        found[visit.candidate][visit.round] = visit.period_us
    return found


def _ends(first: Sequence[float | None], last: Sequence[float | None]) -> tuple[float, float] | None:
    early, late = ([value for value in part if value is not None] for part in (first, last))
    return (fmean(early), fmean(late)) if early and late else None


FEWEST = 3
"""Fewest plans of which anything is said: of two, a correlation is always 1 or -1."""

TOPS = (1, 3, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionQuality(FileContent):
    """How the predictions of one cost table compare with what was measured."""

    table: str
    """Name of the cost table."""
    scope: str
    """Which plans: "all plans", or "plans of several chunks" (plans of one chunk are far slower and so
    inflate a correlation)."""
    plans: int
    """How many."""
    pearson: float | None
    spearman: float | None
    """Correlations; None for fewer than three plans, or where one side does not vary."""
    mape_percent: float | None
    """Mean of |predicted - measured| / measured, percent; None for fewer than three plans."""
    regret_percent: tuple[tuple[int, float], ...]
    """(k, by how much the best of the k plans with the least prediction is slower than the best of all,
    percent): what trusting the table without measuring more than k plans would have cost. Empty for fewer
    than three plans."""

    @property
    def absent(self) -> str:
        """Why some of it is not known, in words; empty where all of it is."""
        if self.plans < FEWEST:
            return f"{self.plans} measured: {FEWEST} plans are the fewest of which anything can be said"
        if self.pearson is None or self.spearman is None:
            return "no correlation: all predictions, or all measurements, are equal"
        return ""


def quality(
    predicted_us: Sequence[float], measured_us: Sequence[float], *, table: str, scope: str
) -> PredictionQuality:
    """Compare predictions with measurements of the same plans, in the same order."""
    predicted, measured = np.asarray(predicted_us, float), np.asarray(measured_us, float)
    count = len(measured)
    enough = count >= FEWEST
    return PredictionQuality(
        table=table,
        scope=scope,
        plans=count,
        pearson=pearson(predicted, measured),
        spearman=pearson(_ranks(predicted), _ranks(measured)),
        mape_percent=float(100 * np.mean(np.abs(predicted - measured) / measured)) if enough else None,
        regret_percent=tuple(
            (k, _regret_percent(predicted, measured, k)) for k in TOPS if enough and k <= count
        ),
    )


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Return the correlation of two samples; None for fewer than three, or where one does not vary."""
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1; equal values share the mean of their ranks."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + 1 + np.searchsorted(ordered, values, "right")) / 2


def _regret_percent(predicted: NDArray[np.float64], measured: NDArray[np.float64], k: int) -> float:
    chosen = np.argsort(predicted, kind="stable")[:k]
    return float(100 * (measured[chosen].min() / measured.min() - 1))


class Trust(StrEnum):
    """How far an answer can be trusted.

    HIGH
        Nothing that is known speaks against it.
    LIMITED
        Something does: the verdict says what.
    NONE
        There is no answer: the strongest rival was not measured, or nothing was.
    """

    HIGH = "high"
    LIMITED = "limited"
    NONE = "none"


class Ground(StrEnum):
    """What trust is based on.

    NOISE
        By how much ratios between candidates vary from round to round.
    DRIFT
        By how much the machine was slower in the last round than in the first.
    OTHERS
        Share of the cores that other programs kept busy while candidates ran.
    SUMS
        Mean error of sums of measured layers against chunks that were measured as such.
    UNSTEADY
        Share of the pieces of the profile that stayed unsteady, however often they were measured.
    BASELINES
        Mean difference of the baselines from their predictions, which nobody has chosen for being small.
    SUSTAINED
        By how much the finalist that slowed down most was slower at the end of the sustained run.
    """

    NOISE = "noise"
    DRIFT = "drift"
    OTHERS = "other programs"
    SUMS = "sums of layers"
    UNSTEADY = "unsteady layers"
    BASELINES = "baselines against prediction"
    SUSTAINED = "slower when sustained"


LIMITS_PERCENT = {
    Ground.NOISE: 5.0,
    Ground.DRIFT: 10.0,
    Ground.OTHERS: 15.0,
    Ground.SUMS: 10.0,
    Ground.UNSTEADY: 10.0,
    Ground.BASELINES: 10.0,
    Ground.SUSTAINED: 10.0,
}
"""Above these a number speaks against an answer."""

_SIGNED = (Ground.DRIFT, Ground.SUSTAINED)


def percent(share: float | None) -> float | None:
    """Return a share in percent; None stays None."""
    return None if share is None else 100 * share


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(FileContent):
    """One number that trust is based on."""

    ground: Ground
    """What it is."""
    percent: float | None
    """The number; None: not known."""
    limit_percent: float
    """Above it, or below its negative, it speaks against the answer."""

    @property
    def doubtful(self) -> bool:
        """Whether it speaks against the answer."""
        return self.percent is not None and abs(self.percent) > self.limit_percent

    @property
    def words(self) -> str:
        """The number as text."""
        sign = "+" if self.ground in _SIGNED else ""
        return "not known" if self.percent is None else f"{self.percent:{sign}.1f} %".replace("-0.0", "0.0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(FileContent):
    """How far the answer of a tuning run can be trusted."""

    trust: Trust
    """In a word."""
    reasons: tuple[str, ...]
    """What speaks against it, in words, what weighs most first; empty where trust is high."""
    evidence: tuple[Evidence, ...]
    """The numbers that it is based on, one for each ground that applies."""

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.trust is Trust.NONE:
            return f"No verdict: {'; '.join(self.reasons)}."
        if self.trust is Trust.LIMITED:
            return f"Trust is limited: {'; '.join(self.reasons)}."
        known = [f"{one.ground} {one.words}" for one in self.evidence if one.percent is not None]
        return f"Trust is high: {', '.join(known) or 'nothing speaks against it'}."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What is known of the measured table that plans were made from, as shares; None: not known."""

    sums_error: float | None = None  # mean error of sums of layers against chunks that were measured as such
    unsteady: float | None = None  # share of the measured pieces that stayed unsteady


def verdict_of(evidence: Sequence[Evidence], *, missing: Sequence[str], cut: Sequence[str]) -> Verdict:
    """Return a verdict.

    `missing`: what was not measured and without which there is no answer, in words; `cut`: what else speaks
    against the answer, in words.
    """
    doubts = [f"{one.ground} {one.words}" for one in evidence if one.doubtful]
    reasons = (*missing, *cut, *doubts)
    return Verdict(
        trust=Trust.NONE if missing else Trust.LIMITED if reasons else Trust.HIGH,
        reasons=reasons,
        evidence=tuple(evidence),
    )


class TuningStop(StrEnum):
    """Why tuning ended.

    DECIDED
        Everybody else was clearly slower than the fastest, or nobody else was left.
    COMPLETE
        All rungs were climbed; what still competes cannot be told apart with them.
    BUDGET
        The time was used up.
    INTERRUPTED
        Somebody stopped it; it can be resumed.
    """

    DECIDED = "decided"
    COMPLETE = "complete"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRow(FileContent):
    """One candidate and what was measured of it."""

    candidate: TuningCandidate
    """What ran."""
    rung_us: tuple[float | None, ...]
    """Median period of its visits by rung, microseconds; None where it was not visited."""
    period_us: Spread | None = None
    """Periods of its visits (`Deployment.pace` says what they are), all rungs; None: never measured."""
    ratio: float | None = None
    """Its period over that of the winner: median over the rounds in which both were measured. None: no such
    round."""
    comparable_us: float | None = None
    """Its period, freed from drift: the ratio times the median period of the winner. Whoever left early was
    measured when the machine may have been faster or slower; compare by this, not by `period_us`."""
    lower_ratio: float | None = None
    """Lower limit of the ratio (`racing.lower_limit`): above 1 it is slower than the winner beyond noise."""
    latency_p50_us: float | None = None
    latency_p95_us: float | None = None
    """Latency of its slowest stream (`Deployment.latency_name` says which): median over its visits."""
    visit_us: tuple[float, ...] = ()
    """Period of each of its visits, in their order, as it was measured."""
    chunk_us: tuple[float, ...] = ()
    """Busy time of each chunk of each stream, in their order: median over its visits, as it was measured."""
    requests: int = 0
    measured_s: float = 0.0
    """Requests and seconds that were measured in all."""
    receipts: tuple[PlacementReceipt, ...] = ()
    """Of its last visit."""
    verification: Verification | None = None
    """Its numbers against the uncut model; None where the runner has none."""
    watts: float | None = None
    """Mean power of the machine during its visits, as the machine says it (`MachineState.watts`), or None."""
    failure: Failure | None = None
    """Why it could not be executed: it is out, whatever was measured before."""
    left_after: int | None = None
    """Rung after which it left the race, being clearly slower; None: it stayed to the end."""
    place: int | None = None
    """Its place, from 1; candidates that cannot be told apart share one. None: not measured, or it failed."""
    shared_rounds: int = 0
    """In how many rounds both it and the winner were measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningResult(FileContent):
    """What tuning found.

    Attributes
    ----------
    options
        What was asked.
    rows
        Winner first, then its ties, then others, by ratio; what was not measured, and failures last.
    ties
        Keys of the candidates that cannot be told from the winner, which is the first; one key: the winner
        is alone. Empty without a winner. Of a tie, among those within the margin of the fastest, the one on
        the fewest units wins, then the one with the least latency, then the one with the least prediction:
        equal speed at a lower price.
    baseline_wins
        Whether the winner is a baseline: no plan is faster beyond noise.
    stop
        Why it ended.
    drift_percent
        By how much the machine was slower in the last round than in the first (`racing.drift`); None: not
        known, because nobody was visited twice.
    spent_s
        Time of the race, with preparation, checks and warm-up, without profiling and planning; of all
        sessions of a resumed run.
    run
        Number of the run in the store.
    reused
        Trials that an earlier session of the run had recorded.
    device
        Device of the measurements.
    quality
        Predicted against measured.
    noise_percent
        By how much ratios vary from round to round (`racing.noise`); None: not known.
    verdict
        How far all of this can be trusted; None: it was not judged.
    sustained
        What the finalists did for longer; None: that was not asked for.
    simulated
        Whether no device ran: a cost table was played.
    """

    options: TuningOptions
    rows: tuple[TuningRow, ...]
    ties: tuple[str, ...]
    baseline_wins: bool
    stop: TuningStop
    drift_percent: float | None
    spent_s: float
    run: int
    reused: int
    device: str
    quality: tuple[PredictionQuality, ...]
    noise_percent: float | None = None
    verdict: Verdict | None = None
    sustained: Sustained | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        unknown = set(self.ties) - {row.candidate.key for row in self.rows}
        if unknown:
            raise InvalidInputError(f"{min(unknown)!r} ties for the first place, and is no candidate")

    @property
    def interrupted(self) -> bool:
        """Whether somebody stopped the race, or the sustained run after it."""
        sustained = self.sustained is not None and self.sustained.interrupted
        return sustained or self.stop is TuningStop.INTERRUPTED

    @property
    def pace(self) -> str:
        """What the candidates were compared by: period, makespan of a batch, or latency."""
        found = {row.candidate.deployment.pace for row in self.rows}
        return found.pop() if len(found) == 1 else "period"

    @property
    def pace_name(self) -> str:
        """What people call `pace`."""
        found = {row.candidate.deployment.pace_name for row in self.rows}
        return found.pop() if len(found) == 1 else self.pace

    @property
    def latency_name(self) -> str:
        """What people call the latencies: requests that wait are not those that do not."""
        return self.rows[0].candidate.deployment.latency_name if self.rows else FULL_SLOTS

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the cost tables that predicted, in order."""
        return tuple(dict.fromkeys(name for row in self.rows for name, _ in row.candidate.predicted_us))

    @property
    def winner(self) -> TuningRow | None:
        """What to run; None when nothing was measured before it was interrupted."""
        return self.rows[0] if self.ties else None

    @property
    def has_verdict(self) -> bool:
        """Whether the race says who is fastest; without the strongest rival it does not (`Trust.NONE`)."""
        return bool(self.ties) and (self.verdict is None or self.verdict.trust is not Trust.NONE)

    def is_known_tie(self, row: TuningRow) -> bool:
        """Whether enough rounds say that a row cannot be told from the winner; with few, nothing is known."""
        return row.candidate.key in self.ties and row.shared_rounds >= FEW_ROUNDS

    @property
    def all_told(self) -> bool:
        """Whether each candidate that is not clearly slower than the winner is known to tie with it."""
        near = [row for row in self.rows[1:] if row.candidate.key in self.ties]
        return all(map(self.is_known_tie, near))

    @property
    def measured(self) -> int:
        """How many candidates were measured at least once."""
        return sum(row.period_us is not None for row in self.rows)

    @property
    def measured_s(self) -> float:
        """Seconds that were measured in all, without preparation and warm-up."""
        return sum(row.measured_s for row in self.rows)

    def best(self, kind: CandidateKind) -> TuningRow | None:
        """Return the first working candidate of a kind, or None."""
        found = (row for row in self.rows if row.candidate.kind is kind and row.place is not None)
        return next(found, None)


MEASUREMENT = Schema(format="gapless.measurement", version=1, content=Measurement)
TUNING = Schema(format="gapless.tuning", version=1, content=TuningResult)
TRIAL = Schema(format="gapless.trial", version=1, content=Trial)
