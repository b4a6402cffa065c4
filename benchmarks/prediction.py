"""Predicted against measured periods of executed plans, for every co-run cost model.

    python -m benchmarks.prediction FILE ...            # files of executed plans, e.g. of `gapless tune`
    python -m benchmarks.prediction                     # records on this machine first; about nine minutes
    python -m benchmarks.prediction --record DIR --networks squeezenet,resnet18 --emulate core1=50%

A file holds what gapless recorded ("gapless.executions"), or is of the form in which the BetterTogether
measurements are shared. Recorded are, for each network, the best plans of several chunks by the heavy table
and some random ones, all in turns, several visits each, medians; the files stay in DIR.

"learned" says what was learned, "from" from how many other plans: all others (leave one out), or the first
few in the order in which tuning measures them. "top 1" and so on: by how much the best of those plans with
the least prediction is slower than the fastest of all, where one fit predicts them all. At the end: how good
the first three candidates of tuning are, among the plans that were executed. How well executions predict
each other says what no cost model can be much better than: "half of the runs" predicts the other half of
each plan, "same chunks in other plans" predicts plans whose chunks all ran there, too. Several files are
also judged together, where the differences between networks inflate correlations.

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
from benchmarks.arguments import parse_emulation, parse_names
from gapless.answers.blocks import Section
from gapless.answers.prediction import prediction_blocks, quality_section
from gapless.api.execution import profiled_problem
from gapless.executor.engines.registry import get_engine
from gapless.executor.machine.state import fingerprint
from gapless.executor.measurement import Measurement
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.executor.tuning.result import quality
from gapless.formulations.chunking.operation import deploy
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.errors import GaplessError
from gapless.formulations.files import dump, save
from gapless.formulations.hardware import Platform
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.profiler.prediction.evaluation import (
    MULTI,
    Order,
    evaluation_of,
    plans_of,
    ranked_by,
    ways_of,
)
from gapless.profiler.prediction.executions import EXECUTIONS, ExecutedPlan, Executions, charged_us
from gapless.profiler.prediction.learned import Learned, learn
from gapless.profiler.prediction.published import load_executions
from gapless.profiler.prediction.session import Session
from gapless.profiler.profile import Profile, ProfileOptions
from gapless.view.layout import plain_table
from gapless.view.terminal.blocks import blocks_view

NETWORKS = "squeezenet,mobilenetv1,mobilenetv2,resnet18"
FIRSTS = ("3 by heavy", "3 apart", "3 learned from others", "6 by heavy", "3 apart, 3 learned from them")
"""Which candidates are first: by the heavy table, far apart, by what other files or the first three teach."""

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
            console.print(
                blocks_view(prediction_blocks(executions, evaluation_of(executions, own_share=True)))
            )
    except GaplessError as error:
        raise SystemExit(str(error)) from None
    if len(every) > 1:
        console.print(blocks_view([_together(every)]))
    console.print(_first_three(every))


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


def _together(every: Sequence[Executions]) -> Section:
    """Return the table of all files together, for plans of several chunks."""
    rows = []
    for way in ways_of(every[0], own_share=True):
        if not all(way in ways_of(one, own_share=True) for one in every):
            continue
        measured = [one.period_us for executions in every for one in plans_of(executions, MULTI)]
        predicted = [
            period_us
            for executions in every
            for period_us in way.left_out_us(executions, plans_of(executions, MULTI))
        ]
        found = quality(predicted, measured, table=way.model, scope=MULTI)
        # What the fastest plan of several networks is means nothing.
        rows.append((str(way.fit), None, replace(found, regret_percent=())))
    return quality_section(f"{MULTI} of all {len(every)} files together, leave one out", rows)


def _first_three(every: Sequence[Executions]) -> Table:
    """Return for each file by how much the best of the first three candidates is slower than the fastest."""
    table = plain_table("first candidates of", *FIRSTS, numbers=FIRSTS)
    title = "by how much the best of the first candidates is slower than the fastest"
    table.title, table.title_justify = f"\n{title}", "left"
    for number, executions in enumerate(every):
        plans = plans_of(executions, MULTI)
        least = min((one.period_us for one in plans), default=0.0)
        if len(plans) <= 3 or len(executions.tables) < 2:
            continue
        known = Session.of(executions)
        others = [Session.of(one) for one in [*every[:number], *every[number + 1 :]]]
        best, apart = (ranked_by(executions, "heavy", order) for order in Order)
        before = _next_three(executions, learn(replace(known, executed=()), others), ())
        after = _next_three(executions, learn(replace(known, executed=tuple(apart[:3]))), apart[:3])
        lists = [best[:3], apart[:3], before, best[:6], [*apart[:3], *after]]
        losses = [min(one.period_us for one in chosen) / least - 1 for chosen in lists]
        table.add_row(executions.network.name, *(f"{loss:.1%}" for loss in losses))
    return table


def _next_three(executions: Executions, learned: Learned, seen: Sequence[ExecutedPlan]) -> list[ExecutedPlan]:
    """Return the three plans of which least is expected, among those that were not learned from."""
    problem = learned.problem()
    rest = [one for one in plans_of(executions, MULTI) if one not in seen]
    return sorted(rest, key=lambda one: max(charged_us(problem, one)))[:3]


if __name__ == "__main__":
    main()
