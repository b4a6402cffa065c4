"""How good the native search for workloads is by time, and how it grows.

    python -m benchmarks.workload_search             # about three minutes
    python -m benchmarks.workload_search --exact 30  # the same, references proved by cpsat where it can
    python -m benchmarks.workload_search --limits 25,50,100,300  # a search of its own for each limit, in ms

Every search runs once with the largest budget; what it had found by the smaller ones is read from its
history, so the columns of a row belong to one run. The reference is the best schedule of all runs, a
long one and, if asked, cpsat; *proven* are the instances whose reference meets a lower bound. Times are
of the processor, of the search itself with bounds and start; whole calls of `gapless.plan` have a table.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median

from rich.console import Console
from rich.table import Table

import gapless
from benchmarks.workload_instances import random_workload
from gapless.formulations.flow_shop.tables import Schedule
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Execution, RequestOrder
from gapless.solvers.flow_shop.measure import Key
from gapless.solvers.flow_shop.search import JointSearch, Proof
from gapless.solvers.protocol import Deadline, SolveOptions
from gapless.solvers.session import solve

BUDGETS_MS = (20, 50, 100, 300, 1000)
_BUSY = 3
"""How many times longer than its budget a search may take on a machine that does other things, too."""

SIZES = (100, 300, 1000, 3000)
CLASSES: dict[str, Callable[[int], Problem]] = {
    "joint": lambda seed: random_workload(10, 4, seed),
    "joint, balanced": lambda seed: random_workload(10, 4, seed, balanced=True),
    "joint, slowdown": lambda seed: random_workload(10, 4, seed, slowdown=True),
    "joint, balanced, slowdown": lambda seed: random_workload(10, 4, seed, balanced=True, slowdown=True),
    "alignment": lambda seed: random_workload(10, 4, seed, order=RequestOrder.FIXED),
    "alignment, balanced": lambda seed: random_workload(10, 4, seed, balanced=True, order=RequestOrder.FIXED),
    "columns, balanced": lambda seed: random_workload(
        10, 4, seed, balanced=True, order=RequestOrder.FIXED, execution=Execution.COLUMNS
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One run: what was best when, and the lower bound."""

    history: tuple[tuple[float, int], ...]
    bound_us: int

    def by(self, budget_ms: int) -> int:
        """Return the best makespan by a time; the first one where there was none yet."""
        found = [value for at_s, value in self.history if 1000 * at_s <= budget_ms]
        return found[-1] if found else self.history[0][1]


def main() -> None:
    """Run the benchmark and print its tables."""
    options = _arguments()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}; {options.instances} instances of 10 requests on 4 units a class"
    )
    if options.limits:
        console.print(_limits(options))
        return
    console.print(_gaps(options))
    console.print(_calls(options.instances))
    console.print(_growth())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--instances", type=int, default=12, help="instances of each class")
    parser.add_argument(
        "--limits", type=lambda text: tuple(map(int, text.split(","))), default=(), help="ms, e.g. 25,50"
    )
    parser.add_argument("--reference", type=float, default=4.0, help="seconds of the long search")
    parser.add_argument("--exact", type=float, default=0.0, help="seconds of cpsat for a proof; 0: not asked")
    return parser.parse_args()


def search(problem: Problem, limit_s: float | None, seed: int = 0) -> Searched:
    """Run the search and keep its history."""
    history: list[tuple[float, int]] = []
    started = time.process_time()

    def better(key: Key, schedule: Schedule) -> None:
        history.append((time.process_time() - started, key[1]))

    deadline = Deadline(limit_s)
    run = JointSearch(problem, seed=seed, on_better=better, deadline=deadline, proof=Proof.PRICED)
    run.run()
    return Searched(history=tuple(history), bound_us=run.bounds[0])


def _gaps(options: argparse.Namespace) -> Table:
    table = Table(title="gap to the reference in %: mean / median / max, by time in ms")
    for name in ("class", "proven", *map(str, BUDGETS_MS)):
        table.add_column(name, justify="right")
    for name, build in CLASSES.items():
        proven, gaps = 0, []
        for seed in range(options.instances):
            problem = build(seed)
            search(problem, 0.02)  # caches of the processor and of the problem
            run = search(problem, _BUSY * BUDGETS_MS[-1] / 1000)
            reference, is_proven = _reference(problem, run, options)
            proven += is_proven
            gaps.append([100 * (run.by(budget) / reference - 1) for budget in BUDGETS_MS])
        columns = [
            f"{mean(column):.2f} / {median(column):.2f} / {max(column):.2f}"
            for column in zip(*gaps, strict=True)
        ]
        table.add_row(name, f"{proven}/{len(gaps)}", *columns)
    return table


def _limits(options: argparse.Namespace) -> Table:
    """Return how good searches with a time limit are: seconds of the clock, with bounds and start."""
    table = Table(title=f"10 requests on 4 units, mean / max; load {os.getloadavg()[0]:.1f}")
    for name in ("joint", "limit ms", "above the best known %", "took ms", "bound below it %"):
        table.add_column(name, justify="right")
    for slowdown in (False, True):
        rows: dict[int, list[tuple[float, float, float]]] = {limit: [] for limit in options.limits}
        for seed in range(options.instances):
            for balanced in (False, True):
                problem = random_workload(10, 4, seed, slowdown=slowdown, balanced=balanced)
                best = search(problem, options.reference, seed=1).history[-1][1]
                for limit, own in rows.items():
                    started = time.perf_counter()
                    run = search(problem, limit / 1000)
                    took = 1000 * (time.perf_counter() - started)
                    best = min(best, run.history[-1][1])
                    own.append((run.history[-1][1] / best, took, run.bound_us / best))
        for limit, found in rows.items():
            above, took_ms, below = zip(*found, strict=True)
            table.add_row(
                "with slowdown" if slowdown else "without",
                str(limit),
                f"{100 * (mean(above) - 1):.2f} / {100 * (max(above) - 1):.2f}",
                f"{mean(took_ms):.0f} / {max(took_ms):.0f}",
                f"{100 * (1 - mean(below)):.1f} / {100 * (1 - min(below)):.1f}",
            )
    return table


def _reference(problem: Problem, run: Searched, options: argparse.Namespace) -> tuple[int, bool]:
    """Return the best makespan known, and whether it is proven."""
    long = search(problem, options.reference, seed=1)
    best = min(run.history[-1][1], long.history[-1][1])
    bound = max(run.bound_us, long.bound_us)
    if options.exact and best > bound:
        result = solve(problem, "cpsat", SolveOptions(time_limit_s=options.exact, threads=2))
        best = min(best, result.objective or best)
        bound = max(bound, result.bound or bound)
    return best, best == bound


def _calls(instances: int) -> Table:
    table = Table(title="whole calls of gapless.plan without a time limit, ms")
    for name in ("class", "median", "max"):
        table.add_column(name, justify="right")
    for name, build in CLASSES.items():
        took = []
        for seed in range(instances):
            problem = build(seed)
            started = time.process_time()
            gapless.plan(problem)
            took.append(1000 * (time.process_time() - started))
        table.add_row(name, f"{median(took):.0f}", f"{max(took):.0f}")
    return table


def _growth() -> Table:
    table = Table(title="growth with the requests, 4 units, no time limit")
    for name in ("requests", "s", "ms a request", "peak MB", "above the bound %", "with slowdown: s"):
        table.add_column(name, justify="right")
    for size in SIZES:
        problem = random_workload(size, 4, 0)
        seconds, gap = _timed(problem)
        tracemalloc.start()
        search(problem, None)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        slow = f"{_timed(random_workload(size, 4, 0, slowdown=True))[0]:.2f}"
        table.add_row(
            str(size), f"{seconds:.2f}", f"{1000 * seconds / size:.2f}", f"{peak:.1f}", f"{gap:.2f}", slow
        )
    return table


def _timed(problem: Problem) -> tuple[float, float]:
    """Return seconds of the processor, and how far the plan is above its bound in percent."""
    started = time.process_time()
    result = solve(problem, "native")
    seconds = time.process_time() - started
    if result.objective is None or result.bound is None:
        raise RuntimeError("the native backend found no plan")
    return seconds, 100 * (result.objective / result.bound - 1)


if __name__ == "__main__":
    main()
