"""Predicted against measured periods of executed plans, for every co-run cost model.

    python -m benchmarks.prediction FILE ...            # files of executed plans, e.g. of `gapless tune`
    python -m benchmarks.prediction                     # records on this machine first; about nine minutes
    python -m benchmarks.prediction --record DIR --networks squeezenet,resnet18 --emulate core1=50%

A file holds what gapless recorded ("gapless.executions"), or is of the form in which the BetterTogether
measurements are shared. Recorded are, for each network, the best plans of several chunks by the heavy table
and some random ones, all in turns, several visits each, medians; the files stay in DIR.

"learned" says which corrections were learned, "from" from how many other plans: all others (leave one out),
or a few drawn at random (medians of many draws). "top 1" and so on: by how much the best of so many plans
with the least prediction is slower than the fastest of all. How well executions foretell each other says
what no cost model can be much better than: "half of the runs" foretells the other half of each plan, "same
chunks in other plans" foretells plans whose chunks all ran there, too. Several files are also judged
together, where the differences between networks inflate correlations.

On two cores every plan of several chunks uses all units, and "interpolated" is the same as "heavy": units
are cores of their own here, and units that share a core cannot be in one plan.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import gapless
from gapless.api.execution import profiled_problem
from gapless.cli.options.models import parse_emulation, parse_names
from gapless.executor.engines.registry import get_engine
from gapless.executor.machine.fingerprint import fingerprint
from gapless.executor.measurement import Measurement
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.executor.tuning.statistics import quality
from gapless.formulations.chunking.deployment import deploy
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import GaplessError
from gapless.formulations.files import dump, save
from gapless.formulations.hardware import Platform
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.profiler.prediction.evaluation import (
    MULTI,
    Fit,
    evaluation_of,
    left_out_us,
    plans_of,
    usable_models,
)
from gapless.profiler.prediction.executions import EXECUTIONS, ExecutedPlan, Executions
from gapless.profiler.prediction.published import load_executions
from gapless.profiler.profile import Profile, ProfileOptions
from gapless.view.terminal.prediction import prediction_view, quality_table

NETWORKS = "squeezenet,mobilenetv1,mobilenetv2,resnet18"
PROFILING = ProfileOptions(checks=0, most_far=2.0)


def main() -> None:
    """Record, unless files are given; then print the tables."""
    options = _arguments()
    console = Console(width=118)
    try:
        files = options.files or record(console, options)
        every = [load_executions(file) for file in files]
        for file, executions in zip(files, every, strict=True):
            console.print(f"\n{file}:")
            console.print(prediction_view(executions, evaluation_of(executions)))
    except GaplessError as error:
        raise SystemExit(str(error)) from None
    if len(every) > 1:
        console.print(_together(every))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--record", type=Path, default=None, metavar="DIR", help="where recorded files go")
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--engine", default="mnn", help="mnn; callable for built-in applications")
    parser.add_argument("--units", default=None, help="default: the first two cores")
    parser.add_argument("--emulate", action="append", default=None)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--random", type=int, default=5)
    parser.add_argument("--visits", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.4, help="of a visit")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.files and options.record:
        parser.error("give files, or --record")
    return options


def record(console: Console, options: argparse.Namespace) -> list[Path]:
    """Profile and execute each network on this machine; return the files that were written."""
    place = options.record or Path(tempfile.mkdtemp(prefix="gapless-prediction-"))
    place.mkdir(parents=True, exist_ok=True)
    platform = gapless.this_device(
        units=parse_names(options.units) or _two_cores(options.engine),
        emulate=parse_emulation(options.emulate),
        engine=options.engine,
    )
    console.print(f"{fingerprint()}; load {os.getloadavg()[0]:.1f}; units {', '.join(platform.unit_names)}")
    files = []
    for name in parse_names(options.networks):
        begin = time.monotonic()
        executions = execute(name, platform, options)
        files.append(place / f"{name}.json")
        save(dump(executions, EXECUTIONS), files[-1])
        spent_s = time.monotonic() - begin
        console.print(f"{len(executions.executed)} plans of {name} in {files[-1]} ({spent_s:.0f} s)")
    return files


def _two_cores(engine: str) -> tuple[str, ...]:
    """Return the first two units of one core each: others share a core with them."""
    return tuple(unit.name for unit in gapless.this_device(engine=engine).units if len(unit.cores) == 1)[:2]


def execute(name: str, platform: Platform, options: argparse.Namespace) -> Executions:
    """Profile one network, and execute its best plans and random ones in turns."""
    model = gapless.open_model(name)
    taken = gapless.profile(model, platform=platform, engine=options.engine, options=PROFILING)
    problem = profiled_problem(taken).with_limits(min_units=2)
    rng = random.Random(f"{options.seed} {name}")
    plans = _plans(problem, options, rng)
    visits: dict[Plan, list[Measurement]] = {plan: [] for plan in plans}
    budget = Budget(seconds=options.seconds)
    with PipelineRunner({model.network.name: model}, platform, get_engine(options.engine)) as runner:
        for _ in range(options.visits):
            for plan in rng.sample(plans, len(plans)):
                visits[plan].append(runner.measure(deploy(plan), budget))
    return _executions(taken, visits)


def _executions(taken: Profile, visits: dict[Plan, list[Measurement]]) -> Executions:
    return Executions(
        platform=taken.platform,
        network=taken.network,
        tables=taken.tables,
        executed=tuple(_executed(plan, found) for plan, found in visits.items()),
        source=f"benchmarks.prediction on {fingerprint()}",
    )


def _executed(plan: Plan, found: Sequence[Measurement]) -> ExecutedPlan:
    periods = tuple(measured.period_us for measured in found)
    times = zip(*([chunk.busy_us.median for chunk in measured.chunks] for measured in found), strict=True)
    return ExecutedPlan(
        plan=plan,
        period_us=median(periods),
        chunk_us=tuple(map(median, times)),
        runs=len(periods),
        run_us=periods,
    )


def _plans(problem: Problem, options: argparse.Namespace, rng: random.Random) -> list[Plan]:
    """Return the best plans, and random ones with cuts anywhere."""
    found = [candidate.plan for candidate in gapless.plan(problem, top=options.top).candidates]
    chain = chain_of(problem)
    for _ in range(options.random):
        count = rng.randint(2, min(chain.unit_count, len(chain.cuts) - 1))
        bounds = [0, *sorted(rng.sample(chain.cuts[1:-1], count - 1)), chain.layer_count]
        units = rng.sample(range(chain.unit_count), count)
        found.append(chain.plan(tuple(zip(bounds, bounds[1:], units, strict=False))))
    return [plan for plan in dict.fromkeys(found) if not gapless.check(problem, plan)]


def _together(every: Sequence[Executions]) -> Table:
    """Return the table of all files together, for plans of several chunks."""
    rows = []
    for model in usable_models(every[0]):
        if not all(model in usable_models(one) for one in every):
            continue
        for fit in Fit:
            measured = [one.period_us for executions in every for one in plans_of(executions, MULTI)]
            predicted = [
                period_us
                for executions in every
                for period_us in left_out_us(executions.problem(model), plans_of(executions, MULTI), fit)
            ]
            found = quality(predicted, measured, table=model, scope=MULTI)
            # What the fastest plan of several networks is means nothing.
            rows.append((str(fit), None, replace(found, regret_percent=())))
    return quality_table(f"{MULTI} of all {len(every)} files together, leave one out", rows)


if __name__ == "__main__":
    main()
