"""What tuning found: every candidate with its numbers, the winner, ties, and how good predictions were."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...formulations.deployment import FULL_SLOTS
from ...formulations.errors import InvalidInputError
from ...formulations.validation import FileContent
from ..engine import PlacementReceipt
from ..measurement import Spread
from ..runner import Verification
from .candidates import CandidateKind, TuningCandidate
from .options import TuningOptions
from .racing import FEW_ROUNDS
from .statistics import PredictionQuality
from .sustained import Sustained
from .trials import Failure
from .trust import Trust, Verdict


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
