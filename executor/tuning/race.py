"""The race itself: visits candidates round by round, records every visit, drops the clearly slower.

What happens next depends only on the trials so far, never on the clock. So a race that was cut off is
resumed by running it again: visits that were recorded are read instead of made.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from statistics import median

from ...formulations.errors import EngineUnavailableError, ExecutionError, StoreError
from ...formulations.files import dump, parse
from ..measurement import Measurement
from ..progress import Report, Step
from ..runner import Budget, Runner, Verification
from . import racing
from .candidates import CandidateKind, TuningCandidate
from .documents import TRIAL
from .options import TuningMode, TuningOptions
from .result import TuningStop
from .store import TuningRun
from .trials import DRIFT_RUNG, Failure, Trial, Visit

LEAST_REQUESTS = 8
"""A visit lasts at least this many periods, once the candidate has survived the first rung."""


class Race:
    """The state of one race.

    Parameters
    ----------
    candidates
        With distinct deployments.
    runner, run, options, report
        Who executes; where trials are recorded; how; whom to tell.

    Attributes
    ----------
    trials
        What came of each visit, in the order of the visits.
    alive
        Candidates that are still in the race, by key.
    left_after, failures
        Rung after which a candidate left; why it could not be executed.
    spent_s
        Time of all visits.
    number, reused
        Number of the run in the store; how many trials it had when this race began.
    """

    def __init__(
        self,
        candidates: Sequence[TuningCandidate],
        runner: Runner,
        run: TuningRun,
        options: TuningOptions,
        report: Report,
    ) -> None:
        self.candidates = tuple(candidates)
        self.options = options
        self.number = run.number
        self.trials: dict[Visit, Trial] = {}
        self.alive = {candidate.key: candidate for candidate in candidates}
        self.left_after: dict[str, int] = {}
        self.failures: dict[str, Failure] = {}
        self.spent_s = 0.0
        self._climbed_s = 0.0
        self._runner = runner
        self._run = run
        self._report = report
        self._recorded = {
            visit: parse(text.encode(), TRIAL, name=f"trial {visit} of tuning run {run.number}")
            for visit, text in run.trials().items()
        }
        self.reused = len(self._recorded)

    def go(self) -> TuningStop:
        """Run to the end and return why it ended.

        Raises
        ------
        StoreError, EngineUnavailableError
            Nothing can be recorded or executed, whatever the candidate.
        """
        self._open()
        stop = self._climb()
        if not self._over_budget:
            self._close()
        return stop

    def measurements(self, key: str, *, rung: int | None = None) -> dict[int, Measurement]:
        """Return what was measured of a candidate in the race, or in one rung, by number of the round."""
        first = [sum(r.rounds for r in self.options.steps[:n]) for n in range(len(self.options.steps))]
        return {
            first[visit.rung] + visit.round: trial.measurement
            for visit, trial in self.trials.items()
            if visit.candidate == key and trial.measurement is not None
            if (visit.rung != DRIFT_RUNG if rung is None else visit.rung == rung)
        }

    def periods(self, keys: Iterable[str]) -> racing.Periods:
        """Return the periods of some candidates, without those that have none."""
        found = {key: {n: m.period_us for n, m in self.measurements(key).items()} for key in keys}
        return {key: periods for key, periods in found.items() if periods}

    @property
    def drift_percent(self) -> float | None:
        """By how much the reference was slower after the race than before; None: not known."""
        before, after = (
            [t.measurement for v, t in self.trials.items() if v[1:] == (DRIFT_RUNG, n) and t.measurement]
            for n in (0, 1)
        )
        return 100 * (after[0].period_us / before[-1].period_us - 1) if before and after else None

    def _open(self) -> None:
        """Visit the reference: the first candidate that can be executed."""
        for key in tuple(self.alive):
            if self._over_budget:
                return
            self._report(Step(text=f"before the race: {self.alive[key].label}"))
            if self._visit(Visit(key, DRIFT_RUNG, 0)).failure is None:
                return

    def _close(self) -> None:
        """Visit the reference again."""
        reference = [visit.candidate for visit in self.trials if visit.rung == DRIFT_RUNG]
        for key in (key for key in reference if key not in self.failures):
            self._report(Step(text=f"after the race: {self._candidate(key).label} again"))
            self._visit(Visit(key, DRIFT_RUNG, 1))

    def _climb(self) -> TuningStop:
        for number, rung in enumerate(self.options.steps):
            order = [key for turn in range(rung.rounds) for key in self._order(number, turn)]
            turns = dict.fromkeys(order, 0)
            for done, key in enumerate(order):
                if self._over_budget:
                    return TuningStop.BUDGET
                if key in self.alive:
                    visit = Visit(key, number, turns[key])
                    if visit not in self._recorded:
                        self._say(number, key, order[done:])
                    self._visit(visit)
                    self._climbed_s += rung.seconds
                    turns[key] += 1
            if not self.alive:
                break
            if self.options.mode is TuningMode.RACE and self._decided(number):
                return TuningStop.DECIDED
        return TuningStop.COMPLETE

    def _order(self, number: int, turn: int) -> list[str]:
        order = list(self.alive)
        random.Random(f"{self.options.seed} {number} {turn}").shuffle(order)
        return order

    def _decided(self, number: int) -> bool:
        """Let the clearly slower leave; return whether everybody but the leader is clearly slower."""
        periods = self.periods(self.alive)
        slower = racing.slower_ones(periods, tuple(self.alive), margin=self.options.margin)
        kept = {
            racing.leader(periods, keys)
            for kind in CandidateKind
            if (keys := [key for key, candidate in self.alive.items() if candidate.kind is kind])
        }
        for key in slower - kept:
            self.left_after[key] = number
            del self.alive[key]
        rounds = min(len(periods[key]) for key in self.alive)
        return len(self.alive) == 1 or (
            rounds >= racing.FEW_ROUNDS and len(self.alive) == len(slower & kept) + 1
        )

    def _visit(self, visit: Visit) -> Trial:
        trial = self._recorded.get(visit)
        if trial is None:
            trial = self._try(visit)
            self._run.record(visit, dump(trial, TRIAL))
        self.trials[visit] = trial
        self.spent_s += trial.spent_s
        if trial.failure is not None:
            self.failures[visit.candidate] = trial.failure
            self.alive.pop(visit.candidate, None)
        return trial

    def _try(self, visit: Visit) -> Trial:
        """Execute a candidate; its failure is data, unless it would befall every candidate."""
        deployment = self._candidate(visit.candidate).deployment
        started = time.monotonic()
        verification: Verification | None = None
        measurement, failure = None, None
        try:
            if all(done.candidate != visit.candidate for done in self.trials):
                verification = self._runner.verify(deployment)
            measurement = self._runner.measure(deployment, self._budget(visit))
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

    def _budget(self, visit: Visit) -> Budget:
        seconds = self.options.steps[max(visit.rung, 0)].seconds
        if visit.rung > 0:
            known = [m.period_us for m in self.measurements(visit.candidate).values()]
            seconds = max(seconds, LEAST_REQUESTS * median(known) / 1e6)
        return Budget(seconds=seconds, warm_up_requests=self.options.warm_up_requests)

    def _candidate(self, key: str) -> TuningCandidate:
        return next(candidate for candidate in self.candidates if candidate.key == key)

    @property
    def _over_budget(self) -> bool:
        return self.options.budget_s is not None and self.spent_s >= self.options.budget_s

    def _say(self, number: int, key: str, rest: Sequence[str]) -> None:
        """Report how far the race is, in milliseconds of measuring, as if nobody left from now on."""
        rungs = self.options.steps
        left_s = rungs[number].seconds * sum(each in self.alive for each in rest)
        left_s += len(self.alive) * sum(rung.seconds * rung.rounds for rung in rungs[number + 1 :])
        if self.options.budget_s is not None:
            left_s = min(left_s, self.options.budget_s - self.spent_s)
        done_ms = round(1000 * self._climbed_s)
        self._report(
            Step(
                text=f"rung {number + 1} of {len(rungs)}: {self.alive[key].label}",
                done=done_ms,
                total=done_ms + round(1000 * left_s),
            )
        )
