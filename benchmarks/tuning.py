"""Racing against a fixed time for everybody, on simulated devices whose truth is known.

    python -m benchmarks.tuning               # about two minutes

For every shipped network and device the 20 best plans by the *isolated* table, with the baselines, are
tuned on a device that behaves as the *heavy* table says, plus noise; and again with plans by the heavy
table. "Steady" noise is a random factor on each request and another on each visit. A "disturbed" device
drifts on top of it (a random walk of 1 % a visit), and one visit in ten is up to twice as slow. The last
columns say by how much the choice is truly slower than the truly fastest candidate.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import TuningCandidate, baselines, plan_candidates
from gapless.executor.tuning.racing import TuningMode, TuningOptions
from gapless.executor.tuning.result import TuningResult
from gapless.executor.tuning.store import Store
from gapless.executor.tuning.tuner import tune
from gapless.formulations.deployment import Deployment
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.catalog import shipped_names, shipped_problem

NOISES_PERMILLE = (0, 5, 20, 50, 100)
PLANNED_WITH = ("isolated", "heavy")


class Disturbed(SimulatedRunner):
    """A noisy device that drifts, and is disturbed now and then."""

    def __init__(self, problem: Problem, *, noise_permille: int, seed: int) -> None:
        super().__init__(problem, noise_permille=noise_permille, seed=seed)
        self._rng = random.Random(seed)
        self._drift = 1.0

    def measure(self, deployment: Deployment, budget: Budget) -> Measurement:
        """Measure, slower by the drift and the disturbance of the moment."""
        found = super().measure(deployment, budget)
        self._drift *= 1 + self._rng.gauss(0, 0.01)
        burst = 1 + self._rng.random() if self._rng.random() < 0.1 else 1.0
        return replace(found, period_us=found.period_us * self._drift * burst)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One network on one device: candidates, and the problem whose costs are the truth."""

    name: str
    truth: Problem
    candidates: tuple[TuningCandidate, ...]

    def true_us(self) -> dict[str, float]:
        """Return the true period of each candidate, by key."""
        runner, once = SimulatedRunner(self.truth), Budget(requests=1)
        return {c.key: runner.measure(c.deployment, once).period_us for c in self.candidates}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What racing and fixed tuning chose for the same device, and what it cost."""

    same: bool
    tie: bool
    share: float
    race_loss: float
    fixed_loss: float


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=3, help="devices for each case and noise")
    seeds = range(parser.parse_args().seeds)
    console = Console(width=118)
    for planned in PLANNED_WITH:
        found = [case(name, planned) for name in shipped_names()]
        table = Table(
            title=f"plans by the {planned} table, truth: heavy; {len(found)} cases", title_justify="left"
        )
        for column in (
            "device",
            "noise",
            "runs",
            "same or tie",
            "same",
            "share of time",
            "race loss",
            "fixed loss",
        ):
            table.add_column(column, justify="left" if column == "device" else "right")
        for kind in (SimulatedRunner, Disturbed):
            for noise in NOISES_PERMILLE if kind is SimulatedRunner else (20, 50):
                table.add_row(
                    *_cells(kind, noise, [outcome(c, kind, noise, s) for c in found for s in seeds])
                )
        console.print(table)


def case(name: str, planned: str) -> Case:
    """Return a shipped problem with the 20 best plans by one of its tables, and the baselines."""
    problem, truth = shipped_problem(name, method=planned), shipped_problem(name, method="heavy")
    plans = [candidate.plan for candidate in gapless.plan(problem, top=20).candidates]
    return Case(
        name=name,
        truth=truth,
        candidates=(
            *plan_candidates(plans, tables={planned: problem}),
            *baselines(truth),
        ),
    )


def outcome(what: Case, kind: type[SimulatedRunner], noise: int, seed: int) -> Outcome:
    """Tune a case in both modes, each on a fresh device."""
    race, fixed = (
        tuned(what.candidates, kind(what.truth, noise_permille=noise, seed=2 * seed + second), mode, seed)
        for second, mode in enumerate((TuningMode.RACE, TuningMode.FIXED))
    )
    true_us = what.true_us()
    best_us = min(true_us.values())
    ours, theirs = race.ties[0], fixed.ties[0]
    return Outcome(
        same=ours == theirs,
        tie=ours in fixed.ties or theirs in race.ties,
        share=race.measured_s / fixed.measured_s,
        race_loss=true_us[ours] / best_us - 1,
        fixed_loss=true_us[theirs] / best_us - 1,
    )


def tuned(
    candidates: Sequence[TuningCandidate], runner: SimulatedRunner, mode: TuningMode, seed: int
) -> TuningResult:
    """Tune with a store that is forgotten."""
    with Store(":memory:") as store:
        return tune(candidates, runner, store=store, options=TuningOptions(mode=mode, seed=seed))


def _cells(kind: type[SimulatedRunner], noise: int, found: Sequence[Outcome]) -> Iterator[str]:
    count = len(found)
    yield "steady" if kind is SimulatedRunner else "disturbed"
    yield f"{noise / 10:g} %"
    yield str(count)
    yield str(sum(one.same or one.tie for one in found))
    yield str(sum(one.same for one in found))
    yield f"{100 * sum(one.share for one in found) / count:.0f} %"
    for losses in ([one.race_loss for one in found], [one.fixed_loss for one in found]):
        yield f"{100 * sum(losses) / count:.2f} % (most {100 * max(losses):.1f} %)"


if __name__ == "__main__":
    main()
