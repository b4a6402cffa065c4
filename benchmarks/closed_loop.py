"""The closed loop against one-shot tuning.

    python -m benchmarks.closed_loop                       # simulated, about four minutes
    python -m benchmarks.closed_loop --device              # this machine, about three minutes a network

Simulated: every shipped problem is planned with one of its tables, on a device that obeys another one: the
interpolated model, with a random factor for each unit and another for each layer on each unit, and noise of
2 %. "Loss" is by how much the choice of the tuner is truly slower than the fastest there is: the proven
optimum of the device's own table, or a baseline. "One-shot equal" measures as many of the best plans by the
given table as the loop has measured in all its rounds.

On this machine (`--networks a,b`, `--emulate core1=50%`) every network is profiled once. The first round of
the loop is one-shot tuning of its 10 best plans; one-shot tuning of as many plans as the loop has measured
is another run. In the end the choices of all three are executed side by side, interleaved in one run: the
last column compares them there.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rich.console import Console
from rich.table import Table

import gapless
from benchmarks.arguments import parse_emulation
from benchmarks.instances import SPREADS, distorted
from gapless.api.engines import resolve_engine
from gapless.api.execution import models_for
from gapless.api.tuned import Tuned
from gapless.api.tuning import tune_simulated
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.executor.simulated import SimulatedRunner
from gapless.executor.tuning.candidates import CandidateKind, TuningCandidate, baselines
from gapless.executor.tuning.racing import Rung, TuningOptions
from gapless.executor.tuning.store import Store
from gapless.executor.tuning.tuner import tune
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.catalog import shipped_names, shipped_problem

TOP = 10
ROUNDS = 6
NOISE_PERMILLE = 20
NETWORKS = ("squeezenet", "mobilenetv2")
SHORT = TuningOptions(
    rungs=(Rung(seconds=0.25), Rung(seconds=0.25), Rung(seconds=0.5), Rung(seconds=0.5, rounds=4))
)
"""Half of what `gapless tune` measures."""

SIDE_BY_SIDE = TuningOptions(rungs=(Rung(seconds=0.5, rounds=12),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A simulated device, and what is known of it."""

    planned: Problem
    truth: Problem
    best_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one way of tuning has found on one device, and what it cost."""

    loss: float
    plans: int
    rounds: int
    measured_s: float


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--device", action="store_true", help="this machine instead of simulated ones")
    parser.add_argument("--seeds", type=int, default=3, help="simulated devices for each shipped problem")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--emulate", action="append", default=None, help="e.g. core1=50%%")
    given = parser.parse_args()
    console = Console(width=118)
    if given.device:
        for network in given.networks.split(","):
            console.print(on_this_machine(network, parse_emulation(given.emulate)))
        return
    for planned in ("isolated", "heavy", "interpolated"):
        console.print(simulated(planned, range(given.seeds)))


def simulated(planned: str, seeds: Sequence[int]) -> Table:
    """Return the table of all simulated devices for plans by one of their tables."""
    table = Table(title=f"plans by the {planned} table, top {TOP}, noise 2 %", title_justify="left")
    for column in (
        "factors",
        "tuning",
        "devices",
        "mean loss",
        "most",
        "optimum",
        "plans",
        "rounds",
        "device s",
    ):
        table.add_column(column, justify="left" if column in {"factors", "tuning"} else "right")
    for spread in SPREADS:
        devices = [
            device(name, planned, spread, s)
            for name in shipped_names()
            for s in seeds
            if s == 0 or any(spread)
        ]
        for name, found in ways(devices).items():
            losses = [one.loss for one in found]
            table.add_row(
                "none" if not any(spread) else f"{spread[0]:.0%} unit, {spread[1]:.0%} layer",
                name,
                str(len(found)),
                f"{fmean(losses):.2%}",
                f"{max(losses):.1%}",
                str(sum(loss < 0.001 for loss in losses)),
                f"{fmean(one.plans for one in found):.1f}",
                f"{fmean(one.rounds for one in found):.1f}",
                f"{fmean(one.measured_s for one in found):.0f}",
            )
        table.add_section()
    return table


def device(name: str, planned: str, spread: tuple[float, float], seed: int) -> Device:
    """Return a device that obeys the interpolated table of a shipped problem, distorted."""
    rng = random.Random(f"{name} {spread} {seed}")
    problem = shipped_problem(name, method="interpolated")
    truth = distorted(problem, spread, rng)
    alone = baselines(problem)
    optimum = gapless.plan(truth).objective
    assert optimum is not None
    best_us = min(optimum, *(true_us(truth, baseline) for baseline in alone))
    return Device(planned=shipped_problem(name, method=planned), truth=truth, best_us=best_us)


def true_us(truth: Problem, candidate: TuningCandidate) -> float:
    """Return what a candidate takes on a device without noise."""
    return SimulatedRunner(truth).measure(candidate.deployment, Budget(requests=1)).period_us


def ways(devices: Sequence[Device]) -> dict[str, list[Outcome]]:
    """Tune each device in all ways."""

    def tuned(one: Device, top: int, rounds: int = 1) -> Tuned:
        return tune_simulated(one.planned, one.truth, top=top, rounds=rounds, noise_permille=NOISE_PERMILLE)

    loops = [tuned(one, TOP, ROUNDS) for one in devices]
    counts = [plans_measured(loop) for loop in loops]
    found: dict[str, list[Tuned]] = {
        f"one-shot {TOP}": [tuned(one, TOP) for one in devices],
        "one-shot equal": [tuned(one, count) for one, count in zip(devices, counts, strict=True)],
        f"one-shot {2 * TOP}": [tuned(one, 2 * TOP) for one in devices],
        f"one-shot {4 * TOP}": [tuned(one, 4 * TOP) for one in devices],
        "loop": loops,
    }
    return {
        name: [outcome(one, what) for one, what in zip(devices, results, strict=True)]
        for name, results in found.items()
    }


def outcome(one: Device, tuned: Tuned) -> Outcome:
    """Return what tuning has found."""
    winner = tuned.result.winner
    assert winner is not None
    results = [tuned.result] if tuned.loop is None else [turn.result for turn in tuned.loop.rounds]
    return Outcome(
        loss=true_us(one.truth, winner.candidate) / one.best_us - 1,
        plans=plans_measured(tuned),
        rounds=len(results),
        measured_s=sum(result.measured_s for result in results),
    )


def plans_measured(tuned: Tuned) -> int:
    """Return how many plans of the solver were executed."""
    if tuned.loop is not None:
        return sum(tuned.loop.new_plans)
    return sum(1 for row in tuned.result.rows if row.candidate.rank and row.period_us)


def on_this_machine(network: str, emulate: dict[str, int]) -> Table:
    """Return the table of one network."""
    platform = gapless.this_device(emulate=emulate)
    problem = gapless.profiled_problem(gapless.profile(network, platform=platform, engine="mnn"))

    def tuned(top: int, rounds: int = 1) -> Tuned:
        return gapless.tune(problem, top=top, rounds=rounds, options=SHORT)

    loop = tuned(TOP, ROUNDS)
    assert loop.loop is not None
    first = replace(loop, result=loop.loop.rounds[0].result, loop=None)
    found = {f"one-shot {TOP}": first, "one-shot equal": tuned(plans_measured(loop)), "loop": loop}
    compared = side_by_side(
        problem, [one.result.winner.candidate for one in found.values() if one.result.winner]
    )
    table = Table(
        title=f"{network} on {', '.join(platform.unit_names)}: {loop.loop.stop}", title_justify="left"
    )
    for column in ("tuning", "plans", "rounds", "seconds", "choice", "period", "side by side"):
        table.add_column(column, justify="left" if column in {"tuning", "choice"} else "right")
    for name, one in found.items():
        winner, results = one.result.winner, [one.result]
        if one.loop is not None:
            results = [turn.result for turn in one.loop.rounds]
        if winner is None or winner.comparable_us is None:
            continue
        table.add_row(
            name,
            str(plans_measured(one)),
            str(len(results)),
            f"{sum(result.spent_s for result in results):.0f}",
            f"{winner.candidate.label} [{winner.candidate.deployment}]",
            f"{winner.comparable_us / 1000:.2f} ms",
            f"{compared[winner.candidate.key] / 1000:.2f} ms",
        )
    return table


def side_by_side(problem: Problem, choices: Sequence[TuningCandidate]) -> dict[str, float]:
    """Execute some choices interleaved in one run; return the period of each, by key, microseconds."""
    models = models_for(problem)
    engine = resolve_engine(None, *models.values())
    with PipelineRunner(models, problem.platform, engine, device="") as runner, Store(":memory:") as store:
        # As baselines: what is the same plan in two ways of tuning is one candidate.
        alike = [replace(choice, kind=CandidateKind.BASELINE) for choice in choices]
        found = tune(alike, runner, store=store, options=SIDE_BY_SIDE)
    return {row.candidate.key: row.comparable_us for row in found.rows if row.comparable_us is not None}


if __name__ == "__main__":
    main()
