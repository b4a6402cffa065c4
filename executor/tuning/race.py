"""The race itself: visits candidates round by round, records every visit, drops the clearly slower.

What happens next depends only on the trials so far, never on the clock. So a race that was cut off is
resumed by running it again: visits that were recorded are read instead of made.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from math import inf
from statistics import median

from ...formulations.files import dump, parse
from ..measurement import Measurement
from ..progress import Report, Step
from ..runner import Budget, Runner
from . import racing
from .candidates import CandidateKind, TuningCandidate, strongest_first
from .racing import TuningMode, TuningOptions
from .result import TRIAL, Failure, Trial, TuningStop, Visit, attempt
from .store import TuningRun

LEAST_REQUESTS = 8
"""A visit lasts at least this many periods, once the candidate has survived the first rung."""


class Race:
    """The state of one race.

    `runner`, `run`, `options`, `report`: who executes; where trials are recorded; how; whom to tell.
    `left_after`, `failures`: rung after which a candidate left; why it could not be executed. `number`,
    `reused`: number of the run in the store; how many trials it had when this race began.
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
        self.trials: dict[Visit, Trial] = {}  # what came of each visit, in the order of the visits
        # candidates that are still in the race, by key
        self.alive = {candidate.key: candidate for candidate in candidates}
        self.left_after: dict[str, int] = {}
        self.failures: dict[str, Failure] = {}
        self.spent_s = 0.0  # time of all visits, with preparation, checks and warm-up: what the budget limits
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

        Raises StoreError, EngineUnavailableError: nothing can be recorded or executed, whatever the
        candidate.
        """
        for number, rung in enumerate(self.options.steps):
            for turn in range(rung.rounds):
                order = self._order(number, turn)
                for done, key in enumerate(order):
                    if self._over_budget:
                        return TuningStop.BUDGET
                    visit = Visit(key, number, turn)
                    if visit not in self._recorded:
                        self._say(visit, len(order) - done)
                    self._visit(visit)
                    self._climbed_s += rung.seconds
            if not self.alive:
                break
            if self.options.mode is TuningMode.RACE and self._decided(number):
                return TuningStop.DECIDED
        return TuningStop.COMPLETE

    def measurements(self, key: str, *, rung: int | None = None) -> dict[int, Measurement]:
        """Return what was measured of a candidate in the race, or in one rung, by number of the round."""
        first = [sum(r.rounds for r in self.options.steps[:n]) for n in range(len(self.options.steps))]
        return {
            first[visit.rung] + visit.round: trial.measurement
            for visit, trial in self.trials.items()
            if visit.candidate == key and trial.measurement is not None
            if rung is None or visit.rung == rung
        }

    def periods(self, keys: Iterable[str]) -> racing.Periods:
        """Return the periods of some candidates, without those that have none."""
        found = {key: {n: m.period_us for n, m in self.measurements(key).items()} for key in keys}
        return {key: periods for key, periods in found.items() if periods}

    def _order(self, number: int, turn: int) -> list[str]:
        """Return who is visited in a round (rule 1 of `racing`)."""
        if not self.trials:
            return [candidate.key for candidate in strongest_first(self.candidates)]
        usual = {key: median(own.values()) for key, own in self.periods(self.alive).items()}
        enough = (1 + racing.HUGE) * min(usual.values(), default=inf)
        order = list(self.alive)
        random.Random(f"{self.options.seed} {number} {turn}").shuffle(order)
        return sorted(order, key=lambda key: usual[key] > enough)

    def _decided(self, number: int) -> bool:
        """Let the clearly slower leave; return whether everybody but the leader is clearly slower."""
        periods = self.periods(one.key for one in self.candidates if one.key not in self.failures)
        first = racing.leader(periods, self.alive)
        foretold = self._foretold_slower(first)
        slower = racing.slower_ones(periods, first, margin=self.options.margin, foretold=foretold)
        kinds = [[key for key, one in self.alive.items() if one.kind is kind] for kind in CandidateKind]
        kept = {racing.leader(periods, keys) for keys in kinds if keys}
        for candidate in self.candidates:
            if candidate.key in slower - kept:
                self.left_after.setdefault(candidate.key, number)
            else:
                self.left_after.pop(candidate.key, None)
        self.alive = {key: self._candidate(key) for key in periods if key not in self.left_after}
        rounds = min(len(periods[key]) for key in self.alive)
        return len(self.alive) == 1 or (
            rounds >= racing.FEW_ROUNDS and len(self.alive) == len(slower & kept) + 1
        )

    def _foretold_slower(self, first: str) -> set[str]:
        """Return whose interval lies above that of a candidate."""
        leads = self._candidate(first).interval_us
        return {
            one.key for one in self.candidates if leads and one.interval_us and one.interval_us[0] > leads[1]
        }

    def _visit(self, visit: Visit) -> Trial:
        trial = self._recorded.get(visit)
        if trial is None:
            known = any(done.candidate == visit.candidate for done in self.trials)
            deployment = self._candidate(visit.candidate).deployment
            trial = attempt(self._runner, deployment, self._budget(visit), verifies=not known)
            self._run.record(visit, dump(trial, TRIAL))
        self.trials[visit] = trial
        self.spent_s += trial.spent_s
        if trial.failure is not None:
            self.failures[visit.candidate] = trial.failure
            self.alive.pop(visit.candidate, None)
        return trial

    def _budget(self, visit: Visit) -> Budget:
        seconds = self.options.steps[visit.rung].seconds
        if visit.rung > 0:
            known = [m.period_us for m in self.measurements(visit.candidate).values()]
            seconds = max(seconds, LEAST_REQUESTS * median(known) / 1e6)
        return Budget(seconds=seconds, warm_up_requests=self.options.warm_up_requests)

    def _candidate(self, key: str) -> TuningCandidate:
        return next(candidate for candidate in self.candidates if candidate.key == key)

    @property
    def _over_budget(self) -> bool:
        return self.options.budget_s is not None and self.spent_s >= self.options.budget_s

    def _say(self, visit: Visit, rest: int) -> None:
        """Report how far the race is, in milliseconds of measuring, as if nobody left from now on."""
        rungs = self.options.steps
        rung = rungs[visit.rung]
        left_s = rung.seconds * (rest + len(self.alive) * (rung.rounds - visit.round - 1))
        left_s += len(self.alive) * sum(later.seconds * later.rounds for later in rungs[visit.rung + 1 :])
        if self.options.budget_s is not None:
            left_s = min(left_s, self.options.budget_s - self.spent_s)
        done_ms = round(1000 * self._climbed_s)
        self._report(
            Step(
                text=f"rung {visit.rung + 1} of {len(rungs)}: {self.alive[visit.candidate].label}",
                done=done_ms,
                total=done_ms + round(1000 * left_s),
            )
        )
