"""Runs the finalists of a race in turns for a long time: heat and throttling show after minutes only.

Visits are recorded one by one, like those of a race, so that a run which was cut off can be resumed, and one
that has come to its end can be given more minutes. What is kept in memory of a visit is a few numbers: memory
does not grow with what was executed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median

from ...formulations.files import dump, parse
from ..progress import Report, Step, silent
from ..runner import Budget, Runner
from .candidates import CandidateKind, TuningCandidate
from .documents import TRIAL
from .options import TuningOptions
from .race import LEAST_REQUESTS
from .result import TuningResult
from .store import RunDescription, Store, TuningRun
from .sustained import Sustained, SustainedVisit
from .trials import Failure, Trial, Visit, attempt

MOST_FINALISTS = 4
"""As many pipelines as `PipelineRunner` keeps open, so that none is opened anew at each visit."""

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
