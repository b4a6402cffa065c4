"""How long exact backends take on workloads: `python -m benchmarks.workload_solvers`.

Calibrated random instances (`benchmarks/workload_instances.py`) by formulation and size. For each backend:
seconds until it held a plan and a bound within 2 % of each other, until it proved the optimum, and the gap
that was left at the limit. Every backend starts from the plan of the native search; the seconds include
that. Medians over the seeds, with how many of them were proved; every run has one thread of its own, in a
child process.

Options: `--backends cpsat,pulp,pulp-cbc,z3`, `--sizes 3x3,5x4` (requests x units), `--kinds joint,...`,
`--seeds 2`, `--time-limit 60`.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.workload_instances import random_workload
from gapless.formulations.errors import BackendError
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Execution, RequestOrder
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

BACKENDS = ("cpsat", "pulp", "pulp-cbc", "z3")
CLOSE = 0.02

Make = Callable[..., Problem]

KINDS: dict[str, Make] = {
    "slicing": lambda *size, **more: random_workload(*size, **more).with_objective("bottleneck,work"),
    "ordering": lambda *size, **more: random_workload(*size, slowdown=True, **more).with_objective(
        "contention,displacement"
    ),
    "alignment": partial(random_workload, order=RequestOrder.FIXED),
    "columns": partial(random_workload, order=RequestOrder.FIXED, execution=Execution.COLUMNS),
    "joint": random_workload,
    "joint, slowdown": partial(random_workload, slowdown=True),
}
"""Makers of problems, by formulation."""

SIZES = {
    "slicing": ((10, 4),),
    "ordering": ((20, 4), (50, 4)),
    "alignment": ((3, 3), (5, 4), (10, 4), (20, 4)),
    "columns": ((3, 3), (5, 4), (10, 4), (20, 4)),
    "joint": ((3, 3), (5, 4), (8, 4), (10, 4)),
    "joint, slowdown": ((3, 3), (3, 4), (5, 4), (8, 4)),
}
LARGEST = {"z3": 3 * 4, "pulp-cbc": 5 * 4}
"""Requests x units up to which a backend is run with clocks; beyond, it does not finish."""


@dataclass(slots=True)
class Run:
    """What one solve came to."""

    close_s: float | None = None
    optimum_s: float | None = None
    gap: float | None = None
    _started: float = field(default_factory=time.monotonic)

    def see(self, claim: Claim) -> None:
        """Note when plan and bound come close."""
        if claim.values and claim.bound is not None and self.close_s is None:
            if claim.values[0] - claim.bound <= CLOSE * claim.values[0]:
                self.close_s = time.monotonic() - self._started


def main() -> None:
    """Run the benchmark and print one table a formulation."""
    options = _arguments()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}; "
        f"limit {options.time_limit:g} s a solve, {options.seeds} seeds"
    )
    for kind in options.kinds:
        console.print(_table(kind, options))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=list(BACKENDS))
    parser.add_argument(
        "--kinds", type=lambda text: text.split(";"), default=list(KINDS), help="joint;columns"
    )
    parser.add_argument("--sizes", type=_sizes, default=None, help="e.g. 3x3,5x4")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=60.0)
    return parser.parse_args()


def _sizes(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (part.split("x") for part in text.split(","))
    return tuple((int(requests), int(units)) for requests, units in pairs)


def _table(kind: str, options: argparse.Namespace) -> Table:
    table = Table(title=kind, title_justify="left")
    for column in ("requests x units", "loads", "backend", "within 2 %", "optimum", "proved", "gap left"):
        table.add_column(column, justify="left" if column in ("loads", "backend") else "right")
    clocked = kind not in ("slicing", "ordering")
    for requests, units in options.sizes or SIZES[kind]:
        for balanced in (False, True) if clocked else (False,):
            for name in options.backends:
                if clocked and requests * units > LARGEST.get(name, 10**9):
                    continue
                problems = (
                    KINDS[kind](requests, units, seed, balanced=balanced) for seed in range(options.seeds)
                )
                runs = [_run(problem, name, options.time_limit) for problem in problems]
                loads = "balanced" if balanced else "mixed"
                table.add_row(f"{requests} x {units}", loads, name, *_cells(runs))
    return table


def _run(problem: Problem, name: str, limit_s: float) -> Run:
    run = Run()
    options = SolveOptions(time_limit_s=limit_s, publish=run.see)
    try:
        result = solve(problem, get_backend(name), options, explain=False)
    except BackendError as error:
        print(f"{name}: {error}")
        return run
    run.gap = result.gap
    if result.status is SolveStatus.OPTIMAL:
        run.optimum_s = result.runtime_s
        run.close_s = min(run.close_s or result.runtime_s, result.runtime_s)
    return run


def _cells(runs: list[Run]) -> list[str]:
    proved = [run.optimum_s for run in runs if run.optimum_s is not None]
    close = [run.close_s for run in runs if run.close_s is not None]
    gaps = [f"{100 * run.gap:.1f} %" for run in runs if run.gap]
    return [
        f"{median(close):.2f} s ({len(close)})" if close else "-",
        f"{median(proved):.2f} s" if proved else "-",
        f"{len(proved)} of {len(runs)}",
        ", ".join(gaps) or "-",
    ]


if __name__ == "__main__":
    main()
