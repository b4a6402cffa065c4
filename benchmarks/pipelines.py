"""How long planners of pipelines over devices take, and how good the plans of others are.

    python -m benchmarks.pipelines                       # all tables, some minutes
    python -m benchmarks.pipelines --tables growth       # growth with layers, types and devices
    python -m benchmarks.pipelines --tables solvers,baselines

`growth`: seconds of the program for a single pipeline on every set of devices, of the packing of several, and
of whole solves (tables, program, packing, plan, judge), medians of the rounds. `solvers`: CP-SAT and HiGHS on
the same instances, without a plan or a bound of the native algorithms to start from. `baselines`: share of
the proven best throughput that other planners reach on the same instances, all judged on the true table.
Instances are random (`benchmarks/pipeline_instances.py`).
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from gapless.formulations.pipelines.tables import cluster_of
from gapless.formulations.problem import Problem
from gapless.solvers.exact import base
from gapless.solvers.families import Start
from gapless.solvers.pipelines.arrays import build_arrays
from gapless.solvers.pipelines.relaxed import Relaxation
from gapless.solvers.pipelines.samples import random_cluster
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

Sizes = tuple[tuple[int, tuple[int, ...]], ...]
"""Layers, and devices of each type."""

GROWTH: Sizes = (
    (96, (1,) * 6),
    (96, (1,) * 8),
    (96, (1,) * 10),
    (96, (1,) * 12),
    (96, (1,) * 14),
    (24, (1,) * 12),
    (48, (1,) * 12),
    (192, (1,) * 10),
    (96, (4,) * 3),
    (384, (4,) * 3),
    (96, (10,) * 4),
)
SOLVED: Sizes = (
    (6, (1,) * 3),
    (12, (1,) * 4),
    (12, (2, 2)),
    (24, (1,) * 4),
)
COMPARED: Sizes = ((24, (1,) * 6), (48, (1,) * 8), (48, (3, 3, 2)))
BASELINES = (
    "pipeedge",
    "pipedream",
    "pico-costs",
    "greedy",
    "epipe-ga",
    "epipe-ga-unseeded",
    "epipe-ga-repair",
    "epipe-ga-repair-unseeded",
    "random-search",
)


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=list(TABLES))
    parser.add_argument("--rounds", type=int, default=5, help="runs of which the median is taken")
    parser.add_argument("--seeds", type=int, default=10, help="instances for the baselines")
    parser.add_argument("--time-limit", type=float, default=60.0, help="of the other solvers, seconds")
    options = parser.parse_args()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    for name in options.tables:
        console.print(TABLES[name](options))


def _timed(rounds: int, run: Callable[[], object]) -> float:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return median(taken)


def _shape(layers: int, counts: Sequence[int]) -> str:
    kinds = f"{sum(counts)} of {len(counts)} types" if max(counts) > 1 else f"{len(counts)} unlike"
    return f"{layers} x {kinds}"


def _growth(options: argparse.Namespace) -> Table:
    table = _table(
        "growth, seconds", "layers x devices", "overlap", "sets", "program", "packing", "one", "many"
    )
    for layers, counts in GROWTH:
        for overlap in (True, False):
            problem = random_cluster(layers, counts, overlap=overlap)
            arrays = build_arrays(cluster_of(problem))
            relaxation = Relaxation(cluster_of(problem), arrays)

            def program(problem: Problem = problem) -> object:
                return Relaxation(cluster_of(problem), build_arrays(cluster_of(problem))).period_us

            program_s = _timed(options.rounds, program)
            relaxation.types  # noqa: B018 - what the packing needs is there before it is timed
            packing_s = _timed(options.rounds, relaxation.packing)
            whole = [
                _timed(options.rounds, lambda asked=asked: solve(replace(asked), "native"))  # type: ignore[misc]
                for asked in (problem.with_objective("period"), problem)
            ]
            cells = [f"{seconds:.3f}" for seconds in (program_s, packing_s, *whole)]
            overlaps = "yes" if overlap else "no"
            table.add_row(_shape(layers, counts), overlaps, str(relaxation.states.number), *cells)
    return table


def _nothing(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    return iter(())


def _solvers(options: argparse.Namespace) -> Table:
    table = _table("exact backends, throughput", "layers x devices", "backend", "status", "seconds", "gap")
    vars(base)["starts_for"] = _nothing
    for layers, counts in SOLVED:
        problem = random_cluster(layers, counts)
        for name in ("native", "cpsat", "pulp"):
            if not get_backend(name).availability().ok:
                continue
            result = solve(problem, name, SolveOptions(time_limit_s=options.time_limit), explain=False)
            gap = "-" if result.gap is None else f"{100 * result.gap:.1f} %"
            table.add_row(_shape(layers, counts), name, str(result.status), f"{result.runtime_s:.3f}", gap)
    return table


def _baselines(options: argparse.Namespace) -> Table:
    columns = [_shape(layers, counts) for layers, counts in COMPARED]
    table = _table("share of the best throughput: mean (least)", "planner", *columns)
    rows: dict[str, list[str]] = {name: [] for name in BASELINES}
    for layers, counts in COMPARED:
        problems = [random_cluster(layers, counts, seed, memory_share=0.3) for seed in range(options.seeds)]
        best = [solve(problem, "native").objective for problem in problems]
        for name in BASELINES:
            shares = []
            for problem, known in zip(problems, best, strict=True):
                found = solve(problem, name).objective
                shares.append(0.0 if found is None or known is None else known / found)
            rows[name].append(f"{mean(shares):.3f} ({min(shares):.3f})")
    for name, cells in rows.items():
        table.add_row(name, *cells)
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


TABLES: dict[str, Callable[[argparse.Namespace], Table]] = {
    "growth": _growth,
    "solvers": _solvers,
    "baselines": _baselines,
}

if __name__ == "__main__":
    main()
