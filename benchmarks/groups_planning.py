"""How long planners of groups of devices take, and how good the plans of others are.

    python -m benchmarks.groups_planning                       # all tables, some minutes
    python -m benchmarks.groups_planning --tables targets

`targets`: large problems. `solvers`: CP-SAT, CBC or HiGHS and Z3, without a plan or a bound of the native
algorithms to start from. `baselines`: PICO's Algorithms 2 and 3 and the schemes LW, EFL, OFL and CE against
the optimum, with messages between groups charged and not. Seconds are medians of processor time, the tables
of the problem included; in `solvers` wall-clock time of single runs. Exact means: given the pieces.
PICO's own sizes (Tables 6 and 7) are in `python -m benchmarks.pico`.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from gapless.formulations.cooperation.tables import groups_of
from gapless.formulations.problem import Problem
from gapless.solvers.exact import base
from gapless.solvers.families import Start
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

from .group_instances import chain_problem, unlike_speeds
from .group_schemes import SCHEMES, scheme
from .printing import show, titled

SOLVED = ((4, 3), (6, 3), (6, 4), (8, 4))
PLANNERS = ("pico", "pico-literal")


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
        "; what is not the paper's is measured"
    )
    solve(chain_problem(4, unlike_speeds(2)), "native")  # what is loaded once is not timed
    for name in options.tables:
        show(console, TABLES[name](options))


def median_s(rounds: int, run: Callable[[], object]) -> str:
    """Return the median processor time of some runs, seconds."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        run()
        taken.append(time.process_time() - started)
    return f"{median(taken):.3f}"


def solved_s(rounds: int, problem: Problem, backend: str = "native") -> str:
    """Return the median processor time of a whole solve, the tables of the problem included, seconds."""
    return median_s(rounds, lambda: solve(replace(problem), backend, explain=False))


def _targets(options: argparse.Namespace) -> Table:
    table = titled("larger sizes, seconds", "pieces, devices", "native", "pico")
    sizes = [(16, unlike_speeds(8), ()), (20, unlike_speeds(8), ()), (20, unlike_speeds(10), ())]
    four = [speed for speed in (5.0, 3.0, 2.0, 1.0) for _ in range(4)]
    asked: list[tuple[int, list[float], tuple[str, ...]]] = [*sizes, (27, four, tuple(f"t{s}" for s in four))]
    for pieces, speeds, types in asked:
        problem = chain_problem(pieces, speeds, types=types)
        kinds = f"{len(speeds)} of {len(set(types))} types" if types else f"{len(speeds)} all different"
        found = [solved_s(options.rounds, problem, name) for name in ("native", "pico")]
        table.add_row(f"{pieces}, {kinds}", *found)
    return table


def _nothing(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    return iter(())


def _solvers(options: argparse.Namespace) -> Table:
    table = titled("exact backends, period", "pieces, devices", "backend", "status", "seconds", "period us")
    vars(base)["starts_for"] = _nothing
    for pieces, devices in SOLVED:
        problem = chain_problem(pieces, unlike_speeds(devices), objective="period")
        for name in ("native", "cpsat", "pulp", "z3"):
            if get_backend(name).availability().ok:
                asked = SolveOptions(time_limit_s=options.time_limit)
                result = solve(replace(problem), name, asked, explain=False)
                period = "-" if result.objective is None else f"{result.objective:,}"
                table.add_row(
                    f"{pieces}, {devices}", name, str(result.status), f"{result.runtime_s:.3f}", period
                )
    return table


def _period(problem: Problem, planner: str) -> int:
    """Return the period of a plan, or of a scheme that is no pipeline."""
    if planner in SCHEMES:
        found = scheme(groups_of(problem), planner)
        assert found is not None
        return found.period_us
    period = solve(problem, planner, explain=False).objective
    assert period is not None
    return period


def _baselines(options: argparse.Namespace) -> Table:
    table = titled(
        "period over the least one: mean (most)", "planner", "12 x 6, charged", "12 x 6, not",
        "8 x 8, charged", "8 x 8, not",
    )  # fmt: skip
    cells: dict[str, list[str]] = {name: [] for name in (*PLANNERS, *SCHEMES)}
    for pieces, devices in ((12, 6), (8, 8)):
        for interstage in (True, False):
            problems = [
                chain_problem(
                    pieces, unlike_speeds(devices, seed), interstage=interstage, mbit_per_second=50.0
                )
                for seed in range(options.seeds)
            ]
            best = [_period(problem, "native") for problem in problems]
            for name, row in cells.items():
                ratios = [
                    _period(problem, name) / least for problem, least in zip(problems, best, strict=True)
                ]
                row.append(f"{mean(ratios):.2f} ({max(ratios):.2f})")
    for name, row in cells.items():
        table.add_row(name, *row)
    return table


TABLES: dict[str, Callable[[argparse.Namespace], Table]] = {
    "targets": _targets,
    "solvers": _solvers,
    "baselines": _baselines,
}

if __name__ == "__main__":
    main()
