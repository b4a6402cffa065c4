"""Measures candidates on the device, in a race and then for a long time, and says which one to run.

Runs the finalists of a race in turns for a long time: heat and throttling show after minutes only. Visits are
recorded one by one, like those of a race, so that a run which was cut off can be resumed, and one that has
come to its end can be given more minutes. What is kept in memory of a visit is a few numbers: memory does not
grow with what was executed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ...formulations.errors import ExecutionError, InvalidInputError
from ...formulations.files import dump, parse
from ..progress import Report, Step, silent
from ..runner import Budget, Runner
from .candidates import CandidateKind, TuningCandidate, without_duplicates
from .race import LEAST_REQUESTS, Race
from .racing import TuningOptions
from .result import (
    TRIAL,
    Failure,
    Sustained,
    SustainedVisit,
    TableFacts,
    Trial,
    TuningResult,
    TuningStop,
    Visit,
    attempt,
)
from .store import RunDescription, Store, TuningRun
from .summary import summarise

MOST_FINALISTS = 4
"""As many pipelines as `PipelineRunner` keeps open, so that none is opened again at each visit."""

VISIT_S = 2.0
_LEAST_ROUNDS = 12
"""Short runs have shorter visits, so that there are as many rounds."""

_SUSTAINED_RUNG = 0


def finalists(result: TuningResult) -> tuple[TuningCandidate, ...]:
    """Return the winner, the best plan, the best baseline, and whoever else ties with the winner."""
    rows = {row.candidate.key: row.candidate for row in result.rows}
    best = [row.candidate.key for kind in CandidateKind if (row := result.best(kind)) is not None]
    keys = dict.fromkeys([*result.ties[:1], *best, *result.ties[1:]])
    return tuple(rows[key] for key in list(keys)[:MOST_FINALISTS])


def endure(
    candidates: Sequence[TuningCandidate],
    runner: Runner,
    *,
    seconds: float,
    store: Store,
    options: TuningOptions,
    problem: str = "",
    device: str = "",
    after: int = 0,
    resume: bool = False,
    report: Report = silent,
) -> Sustained:
    """Run finalists interleaved, for a given time.

    `seconds`: how long all of them together run, with what lies between visits; on a simulated device the
    time that it would have taken. `problem`, `device`: as in `tuner.TuningSubject`. `resume`: go on with the
    latest run of the same finalists: what it has recorded is not done again.
    After Ctrl-C the result holds what is there so far and says so.
    """
    about = RunDescription(
        candidates=json.dumps([asdict(candidate) for candidate in candidates]),
        options=json.dumps({"sustained": options.warm_up_requests, "seed": options.seed, "after": after}),
        problem=problem,
        device=device,
    )
    with store.begin(about, resume=resume) as run:
        work = _Endurance(candidates, runner, run, seconds=seconds, options=options, report=report)
        interrupted = False
        try:
            work.go()
        except KeyboardInterrupt:
            interrupted = True
        else:
            run.finish()
    return Sustained(
        asked_s=seconds,
        seconds=work.passed_s,
        visits=tuple(work.visits),
        failures=tuple(work.failures.items()),
        interrupted=interrupted,
        run=run.number,
    )


class _Endurance:
    """The state of a sustained run: `passed_s` of it is over."""

    def __init__(
        self,
        candidates: Sequence[TuningCandidate],
        runner: Runner,
        run: TuningRun,
        *,
        seconds: float,
        options: TuningOptions,
        report: Report,
    ) -> None:
        self.visits: list[SustainedVisit] = []
        self.failures: dict[str, Failure] = {}
        self.passed_s = 0.0
        self._candidates = {candidate.key: candidate for candidate in candidates}
        self._runner = runner
        self._run = run
        self._seconds = seconds
        self._options = options
        self._report = report
        self._visit_s = min(VISIT_S, seconds / (_LEAST_ROUNDS * len(candidates)))
        self._recorded = run.trials()

    def go(self) -> None:
        """Visit everybody in turns until the time is over; errors as for `attempt`."""
        number = 0
        while self.passed_s < self._seconds and len(self.failures) < len(self._candidates):
            order = [key for key in self._candidates if key not in self.failures]
            random.Random(f"{self._options.seed} sustained {number}").shuffle(order)
            for key in order:
                if self.passed_s < self._seconds:
                    self._visit(Visit(key, _SUSTAINED_RUNG, number))
            number += 1

    def _visit(self, visit: Visit) -> None:
        text = self._recorded.pop(visit, None)
        if text is not None:
            trial = parse(text.encode(), TRIAL, name=f"trial {visit} of tuning run {self._run.number}")
        else:
            trial = self._tried(visit)
            self._run.record(visit, dump(trial, TRIAL))
        found = trial.measurement
        if found is not None:
            self.visits.append(
                SustainedVisit(
                    candidate=visit.candidate,
                    round=visit.round,
                    begin_s=self.passed_s,
                    period_us=found.period_us,
                    machine=found.machine,
                )
            )
        if trial.failure is not None:
            self.failures[visit.candidate] = trial.failure
        # A simulated device takes no time: what counts is the time that it would have taken.
        self.passed_s += max(trial.spent_s, 0.0 if found is None else found.seconds)

    def _tried(self, visit: Visit) -> Trial:
        candidate = self._candidates[visit.candidate]
        self._report(
            Step(
                text=f"sustained: {candidate.label}",
                done=round(1000 * self.passed_s),
                total=round(1000 * self._seconds),
            )
        )
        known = [one.period_us for one in self.visits[-MOST_FINALISTS:] if one.candidate == visit.candidate]
        seconds = max(self._visit_s, LEAST_REQUESTS * median(known) / 1e6 if known else 0.0)
        budget = Budget(seconds=seconds, warm_up_requests=self._options.warm_up_requests)
        return attempt(self._runner, candidate.deployment, budget, verifies=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSubject:
    """What the candidates are about: two runs with the same subject, candidates and options are one."""

    problem: str = ""  # the problem that the plans solve, as JSON
    device: str = ""  # fingerprint of the device and of the engine that executes them
    after: tuple[int, ...] = ()
    """Numbers of the runs whose findings the candidates were made from; empty for a first round."""


def tune(
    candidates: Sequence[TuningCandidate],
    runner: Runner,
    *,
    store: Store,
    options: TuningOptions = TuningOptions(),
    subject: TuningSubject = TuningSubject(),
    facts: TableFacts = TableFacts(),
    resume: bool = False,
    report: Report = silent,
) -> TuningResult:
    """Measure candidates and find the fastest; never a plan that is slower than the best baseline.

    `candidates`: plans of a solver and baselines. Those with equal deployments are measured once, as a
    baseline that bears all their labels. `resume`: go on with the latest run of the same candidates, options
    and subject: what it has recorded, failures too, is not done again. A run that had come to its end gives
    its result again.
    Candidates that could not be executed are rows with a reason. After Ctrl-C the result holds what is there
    so far and says so; the store can be resumed.
    Raises StoreError: the store cannot be used, or another process works on this very run.
    """
    contest = without_duplicates(candidates)
    if not contest:
        raise InvalidInputError("there is nothing to tune: no candidates are given")
    with store.begin(_description(contest, options, subject), resume=resume) as run:
        race = Race(contest, runner, run, options, report)
        try:
            stop = race.go()
        except KeyboardInterrupt:
            stop = TuningStop.INTERRUPTED
        else:
            run.finish()
    if len(race.failures) == len(contest):
        raise _total_failure(race)
    return summarise(race, stop, facts)


def _description(
    contest: Sequence[TuningCandidate], options: TuningOptions, subject: TuningSubject
) -> RunDescription:
    asked = asdict(options)
    del asked["budget_s"]  # a run that has used up its budget goes on with a larger one
    if subject.after:
        asked["after"] = subject.after
    return RunDescription(
        candidates=json.dumps([_described(candidate) for candidate in contest]),
        options=json.dumps(asked),
        problem=subject.problem,
        device=subject.device,
    )


def _described(candidate: TuningCandidate) -> dict[str, Any]:
    """Return a candidate as it is told from others; runs of earlier versions knew no intervals."""
    return {name: value for name, value in asdict(candidate).items() if name != "interval_us" or value}


def _total_failure(race: Race) -> ExecutionError:
    reasons = dict.fromkeys(race.failures.values())
    kinds = {failure.error for failure in reasons}
    wrong = [failure for failure in reasons if failure.wrong]
    first = next(iter(wrong or reasons))
    text = f"none of the {len(race.candidates)} candidates could be executed: {first.message}"
    if len(reasons) > 1:
        text += f" (and {len(reasons) - 1} other reasons)"
    return first.exception(text) if wrong or len(kinds) == 1 else ExecutionError(text)
