"""A small contest on a simulated device, for tests in this process and for child processes that are killed.

python -m tests.executor.tuning.contest STORE LOG
"""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import gapless
from gapless.api.problems import table_problem
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Budget, Verification
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import TuningCandidate, baselines, plan_candidates, predicted
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.executor.tuning.result import TuningResult
from gapless.executor.tuning.store import Store
from gapless.executor.tuning.tuner import tune
from gapless.formulations.deployment import Deployment
from gapless.formulations.problem import Problem

TIMES_MS = ((2.0, 5.0, 3.0), (3.0, 1.0, 2.5), (1.0, 4.0, 3.5), (2.0, 1.5, 1.0))
OPTIONS = TuningOptions(rungs=(Rung(seconds=0.03), Rung(seconds=0.03), Rung(seconds=0.06)), seed=3)


def problem() -> Problem:
    """Return four layers on three units, where the best plan is faster than all baselines."""
    return table_problem(TIMES_MS, ["big", "gpu", "little"], network="net")


def contest(top: int = 6) -> tuple[TuningCandidate, ...]:
    """Return the best plans and the baselines of the problem."""
    asked = problem()
    plans = [candidate.plan for candidate in gapless.plan(asked, top=top).candidates]
    tables = {"truth": asked}
    return plan_candidates(plans, tables=tables) + tuple(predicted(one, tables) for one in baselines(asked))


class Repeatable(SimulatedRunner):
    """Noisy, and yet the same at the n-th visit of a deployment, whichever process makes it.

    Parameters
    ----------
    visits
        How often each deployment was measured before.
    log
        Where to note every measurement before it begins.
    """

    def __init__(self, visits: Counter[str], *, log: Path | None = None, real_time: bool = False) -> None:
        super().__init__(problem())
        self.visits = visits
        self.verified: Counter[str] = Counter()
        self._log = log
        self._real = real_time

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        key = deployment.deployment_id
        if self._log is not None:
            with self._log.open("a") as file:
                file.write(key + "\n")
        device = SimulatedRunner(problem(), noise_permille=20, seed=self.visits[key], real_time=self._real)
        self.visits[key] += 1
        return device.measure(deployment, budget)

    def verify(self, deployment: Deployment) -> Verification | None:
        self.verified[deployment.deployment_id] += 1
        return Verification(requests=1, worst_error=1e-6, tolerance=1e-3)


def recorded(store: Path) -> dict[tuple[object, ...], str]:
    """Return the trials in a store, read without the store."""
    if not store.exists():
        return {}
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        try:
            rows = connection.execute("SELECT run, candidate, rung, round, trial FROM trials").fetchall()
        except sqlite3.OperationalError:  # killed before the tables were made
            return {}
    return {tuple(key): trial for *key, trial in rows}


def go_on(store: Path, runner: SimulatedRunner) -> TuningResult:
    """Begin or resume the contest."""
    with Store(store) as opened:
        return tune(contest(), runner, store=opened, options=OPTIONS, resume=True)


def table(result: TuningResult) -> TuningResult:
    """Return a result without what differs between sessions."""
    return replace(result, spent_s=0.0, reused=0)


def main() -> None:
    store, log = map(Path, sys.argv[1:])
    visits = Counter(str(key[1]) for key in recorded(store))
    contest()  # whoever kills this process wants to hit the tuning, not the imports
    print("begin", flush=True)  # noqa: T201 - the parent waits for it
    go_on(store, Repeatable(visits, log=log, real_time=True))


if __name__ == "__main__":
    main()
