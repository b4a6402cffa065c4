"""Measures candidates on the device and says which one to run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...formulations.errors import ExecutionError, InvalidInputError
from ..progress import Report, silent
from ..runner import Runner
from .candidates import TuningCandidate, without_duplicates
from .options import TuningOptions
from .race import Race
from .result import TuningResult, TuningStop
from .store import RunDescription, Store
from .summary import summarise
from .trust import TableFacts


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
