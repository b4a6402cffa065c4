"""Which candidates to tune: least gapness first, as in the paper, or least period first, and how different.

    python -m benchmarks.candidates                        # simulated, about four minutes
    python -m benchmarks.candidates --device               # this machine, about six minutes

Lists of 20 candidates are made from the same costs: BetterTogether's (III-D: the 20 plans of least gapness,
shown by period), the 20 of least period, the same with three that are four layers apart first (as `gapless
tune` does), and with a distance of 2, 3 and 6 layers between any two plans. Whoever tunes measures a list
from the top, and keeps what is fastest on the device.

Simulated: every shipped problem is planned with a table, on a device that obeys another one: the
interpolated model, with a random factor for each unit and another for each layer on each unit. Then random
problems of more layers than the shipped ones have, distorted in the same way. "Loss" is by how much the
fastest of the first 1, 3, 5, 10 and 20 candidates is truly slower than the truly fastest plan of all, on
average, and "most" the largest one of 20; "optimum" counts the devices whose fastest plan of all is in the
list; "rank" is where in the list the fastest candidate is; "distance" is the mean distance of two
candidates, in layers; "slowest" is the slowest candidate over the fastest.

On this machine (`--networks a,b`, `--emulate core1=50%`) every network is profiled, and all lists together
are executed in turns. The fastest of each list is then executed once more beside those of the other lists,
longer: what was picked as the fastest of many looks faster than it is. "loss" compares with the fastest of
all lists.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from rich.console import Console, Group, RenderableType

import gapless
from benchmarks.arguments import parse_emulation, parse_names
from benchmarks.instances import SPREADS, distorted, random_problem
from gapless.executor.engines.registry import get_engine
from gapless.executor.machine.state import fingerprint
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget, Runner
from gapless.executor.tuning.candidates import APART, FIRST_APART
from gapless.formulations.chunking.formulation import plan_distance
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.judge import score
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.catalog import shipped_names, shipped_problem
from gapless.profiler.profile import ProfileOptions
from gapless.view.layout import plain_table

TOP = 20
FIRST = (1, 3, 5, 10, 20)
SIZES = ((16, 4), (30, 6), (100, 8))
"""Layers and units of the random problems."""

NETWORKS = "squeezenet,mobilenetv1,mobilenetv2,resnet18"
ENGINE = "mnn"
PROFILING = ProfileOptions(checks=0, most_far=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """A way to choose candidates."""

    name: str
    objective: str
    distance: int
    apart: bool = False

    def plans(self, problem: Problem) -> tuple[Plan, ...]:
        """Return the candidates in the order in which they are measured."""
        lists = [(FIRST_APART, APART)] if self.apart else []
        found = (
            gapless.plan(problem, top=top, objective=self.objective, distance=distance)
            for top, distance in (*lists, (TOP, self.distance))
        )
        plans = dict.fromkeys(one.plan for result in found for one in result.candidates)
        return tuple(plans)[:TOP]


MODES = (
    Mode(name="gapness first", objective="paper", distance=1),
    Mode(name="period first", objective="period,gapness", distance=1),
    Mode(name="apart first", objective="period,gapness", distance=1, apart=True),
    *(Mode(name=f"distance {d}", objective="period,gapness", distance=d) for d in (2, 3, 6)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One list on one device: what is true of each candidate, and of the best plan of all."""

    plans: tuple[Plan, ...]
    true_us: tuple[float, ...]
    best_us: float

    def loss(self, first: int) -> float:
        """Return by how much the best of the first candidates is slower than the best plan of all."""
        return min(self.true_us[:first]) / self.best_us - 1

    @property
    def rank(self) -> int:
        """Place of the fastest candidate in the list, from 1."""
        return self.true_us.index(min(self.true_us)) + 1

    @property
    def apart(self) -> float:
        """Mean distance of two candidates."""
        return fmean([plan_distance(a, b) for a, b in combinations(self.plans, 2)] or [0])

    @property
    def slowest(self) -> float:
        """Slowest candidate over the fastest."""
        return max(self.true_us) / min(self.true_us)


def main() -> None:
    """Run the benchmark and print its tables."""
    options = _arguments()
    console = Console(width=118)
    if not options.device:
        for spread in SPREADS:
            seeds = range(options.seeds if any(spread) else 1)
            for planned in ("heavy", "interpolated"):
                devices = [d for name in shipped_names() for d in _shipped(name, planned, spread, seeds)]
                console.print(
                    simulated(f"shipped problems, planned with the {planned} table", spread, devices)
                )
            for layers, units in SIZES if any(spread) else ():
                random_ones = _random(layers, units, spread, seeds)
                console.print(simulated(f"random problems, {layers} x {units}", spread, random_ones))
        return
    platform = gapless.this_device(
        units=parse_names(options.units) or _two_cores(),
        emulate=parse_emulation(options.emulate),
        engine=ENGINE,
    )
    console.print(f"{fingerprint()}; load {os.getloadavg()[0]:.1f}; units {', '.join(platform.unit_names)}")
    for name in parse_names(options.networks):
        begin = time.monotonic()
        model = gapless.open_model(name)
        taken = gapless.profile(model, platform=platform, engine=ENGINE, options=PROFILING)
        problem = gapless.profiled_problem(taken)
        with PipelineRunner(
            {model.network.name: model}, platform, get_engine(ENGINE), max_open=TOP * len(MODES)
        ) as runner:
            console.print(measured(problem, runner, options))
        console.print(f"({time.monotonic() - begin:.0f} s)")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="simulated devices for each shipped problem")
    parser.add_argument("--device", action="store_true", help="this machine instead of simulated ones")
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--units", default=None, help="default: the first two cores")
    parser.add_argument("--emulate", action="append", default=None)
    parser.add_argument("--visits", type=int, default=3, help="of each candidate")
    parser.add_argument("--seconds", type=float, default=0.2, help="of a visit")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _two_cores() -> tuple[str, ...]:
    """Return the first two units of one core each: others share a core with them."""
    return tuple(unit.name for unit in gapless.this_device(engine=ENGINE).units if len(unit.cores) == 1)[:2]


def _shipped(
    name: str, planned: str, spread: tuple[float, float], seeds: Sequence[int]
) -> Iterator[tuple[Problem, Problem]]:
    """Yield what is planned and what is true, for each seed."""
    believed, model = shipped_problem(name, method=planned), shipped_problem(name, method="interpolated")
    for seed in seeds:
        yield believed, distorted(model, spread, random.Random(f"{name} {spread} {seed}"))


def _random(
    layers: int, units: int, spread: tuple[float, float], seeds: Sequence[int]
) -> Iterator[tuple[Problem, Problem]]:
    for seed in seeds:
        problem = random_problem(layers, units, seed=seed)
        yield problem, distorted(problem, spread, random.Random(f"{layers} {units} {spread} {seed}"))


def simulated(
    title: str, spread: tuple[float, float], devices: Iterable[tuple[Problem, Problem]]
) -> RenderableType:
    """Return the table of some devices: what is planned, and what is true."""
    found: dict[Mode, list[Outcome]] = {mode: [] for mode in MODES}
    for believed, truth in devices:
        best_us = gapless.plan(truth).objective
        assert best_us is not None
        for mode, outcomes in found.items():
            outcomes.append(_outcome(mode.plans(believed), truth, best_us))
    losses = tuple(f"loss of {count}" for count in FIRST)
    numbers = (*losses, "most", "optimum", "rank", "distance", "slowest")
    table = plain_table("candidates", *numbers, numbers=numbers)
    for mode, outcomes in found.items():
        table.add_row(mode.name, *_means(outcomes))
    factors = f"{spread[0]:.0%} a unit, {spread[1]:.0%} a layer" if any(spread) else "none"
    return Group(f"\n{title}; factors: {factors}; {len(found[MODES[0]])} devices", table)


def _outcome(plans: tuple[Plan, ...], truth: Problem, best_us: int) -> Outcome:
    true_us = tuple(float(score(truth, plan).period_us) for plan in plans)
    return Outcome(plans=plans, true_us=true_us, best_us=best_us)


def _means(outcomes: Sequence[Outcome]) -> list[str]:
    last = [one.loss(TOP) for one in outcomes]
    return [
        *(f"{fmean(one.loss(count) for one in outcomes):.2%}" for count in FIRST),
        f"{max(last):.1%}",
        str(sum(loss < 0.0005 for loss in last)),
        f"{fmean(one.rank for one in outcomes):.1f}",
        f"{fmean(one.apart for one in outcomes):.1f}",
        f"{fmean(one.slowest for one in outcomes):.2f}",
    ]


def measured(problem: Problem, runner: Runner, options: argparse.Namespace) -> RenderableType:
    """Execute all lists in turns, then the fastest of each; return the table of one network."""
    lists = {mode: mode.plans(problem) for mode in MODES}
    union = list(dict.fromkeys(plan for plans in lists.values() for plan in plans))
    rng = random.Random(f"{options.seed} {problem.network.name}")
    budget = Budget(seconds=options.seconds)
    us = {plan: median(found) for plan, found in _visits(union, runner, budget, options.visits, rng).items()}
    picked = {mode: min(plans, key=us.__getitem__) for mode, plans in lists.items()}
    again = _visits(list(dict.fromkeys(picked.values())), runner, budget, 3 * options.visits, rng)
    best_us = min(map(median, again.values()))
    numbers = ("plans", "distance", "slowest", "rank", "once more", "loss")
    table = plain_table("candidates", *numbers, "winner", numbers=numbers)
    for mode, plans in lists.items():
        seen = Outcome(plans=plans, true_us=tuple(us[plan] for plan in plans), best_us=best_us)
        visits = again[picked[mode]]
        table.add_row(
            mode.name,
            str(len(plans)),
            f"{seen.apart:.1f}",
            f"{seen.slowest:.2f}",
            str(seen.rank),
            f"{median(visits) / 1000:.2f} ms ({min(visits) / 1000:.2f}..{max(visits) / 1000:.2f})",
            f"{median(visits) / best_us - 1:.1%}",
            str(picked[mode]),
        )
    layers = len(problem.network.layers)
    return Group(f"\n{problem.network.name}, {layers} layers: {len(union)} plans executed", table)


def _visits(
    plans: Sequence[Plan], runner: Runner, budget: Budget, visits: int, rng: random.Random
) -> Mapping[Plan, list[float]]:
    """Return the periods of each plan, microseconds; all of them in turns."""
    found: dict[Plan, list[float]] = {plan: [] for plan in plans}
    for _ in range(visits):
        for plan in rng.sample(plans, len(plans)):
            found[plan].append(runner.measure(deploy(plan), budget).period_us)
    return found


if __name__ == "__main__":
    main()
