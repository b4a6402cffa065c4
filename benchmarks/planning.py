"""How long backends take on the same instances, interleaved; medians, spread and ratios.

    python -m benchmarks.planning            # a few minutes
    python -m benchmarks.planning --growth   # native only: growth with layers and units

Every round runs each backend once on the same instance before the next round begins, so that a
machine whose speed drifts slows all of them alike. Times are those of the backends themselves,
without starting their child processes; a backend that runs in this process is run once more before
it is timed, because the child processes of the others leave it cold caches. The last column says what
was proved.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.instances import Shape, random_problem
from gapless.formulations.errors import BackendError
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve

SIZES = ((9, 4), (30, 6), (100, 8), (300, 8))
BACKENDS = ("native", "exhaustive", "cpsat", "z3", "z3-paper", "pulp", "pulp-cbc")
LARGEST = {"exhaustive": 9 * 4, "z3": 30 * 6, "z3-paper": 9 * 4, "pulp-cbc": 30 * 6}
"""Layers x units up to which a backend is run at all; beyond, it does not finish within the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One instance and how it is asked."""

    name: str
    problem: Problem
    top: int

    def objective_for(self, backend: str) -> str:
        """Return the objective: the paper's encoding knows the paper's one only."""
        return "paper" if backend == "z3-paper" else str(self.problem.objective)


def main() -> None:
    """Run the benchmark and print its tables."""
    options = _arguments()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}; time limit {options.time_limit:g} s a solve, "
        f"{options.rounds} interleaved rounds"
    )
    if options.growth:
        console.print(_growth_table(options.rounds))
        return
    for layers, units in options.sizes:
        for top in options.top:
            case = Case(
                name=f"{layers} layers x {units} units, top {top}",
                problem=random_problem(layers, units),
                top=top,
            )
            names = [name for name in options.backends if layers * units <= LARGEST.get(name, 10**9)]
            console.print(_case_table(case, names, options.rounds, options.time_limit))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--sizes", type=_sizes, default=SIZES, help="e.g. 9x4,30x6")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=BACKENDS)
    parser.add_argument("--top", type=lambda text: [int(n) for n in text.split(",")], default=[1, 20])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--growth", action="store_true", help="native: growth with layers and units")
    return parser.parse_args()


def _sizes(text: str) -> tuple[tuple[int, int], ...]:
    pairs = [part.split("x") for part in text.split(",")]
    return tuple((int(layers), int(units)) for layers, units in pairs)


def _run(case: Case, backend: str, time_limit_s: float | None) -> SolveResult | str:
    problem = case.problem.with_objective(case.objective_for(backend))
    options = SolveOptions(top=case.top, time_limit_s=time_limit_s)
    try:
        return solve(problem, get_backend(backend), options, explain=False)
    except BackendError as error:
        return f"{type(error).__name__}: {str(error)[:60]}..."


def _case_table(case: Case, names: Sequence[str], rounds: int, time_limit_s: float) -> Table:
    runs: dict[str, list[SolveResult | str]] = {name: [] for name in names}
    for _ in range(rounds):
        for name, done in runs.items():
            # What ran into the limit once is not run again: it would only repeat the limit.
            if not done or (isinstance(done[-1], SolveResult) and done[-1].stop == "complete"):
                if not get_backend(name).capabilities.isolated:
                    _run(case, name, time_limit_s)
                done.append(_run(case, name, time_limit_s))
    table = Table(title=case.name, title_justify="left")
    for column in ("backend", "objective", "median", "min - max", "runs", "x native", "best", "proved"):
        table.add_column(column, justify="left" if column in ("backend", "objective") else "right")
    native = _median_s(runs.get("native", []))
    for name, done in runs.items():
        table.add_row(name, case.objective_for(name), *_cells(done, native))
    return table


def _seconds(done: Sequence[SolveResult | str]) -> list[float]:
    return [result.runtime_s for result in done if isinstance(result, SolveResult)]


def _median_s(done: Sequence[SolveResult | str]) -> float | None:
    seconds = _seconds(done)
    return median(seconds) if seconds else None


def _cells(done: Sequence[SolveResult | str], native: float | None) -> list[str]:
    middle = _median_s(done)
    last = done[-1]
    if middle is None or isinstance(last, str):
        return ["-", "-", "0", "-", "-", str(last)]
    seconds = _seconds(done)
    spread = f"{_ms(min(seconds))} - {_ms(max(seconds))}"
    ratio = f"{middle / native:.1f}" if native else "-"
    gap = "" if last.gap is None else f", gap {100 * last.gap:.1f} %"
    proved = f"{last.status}, {last.proven} of {len(last.candidates)}{gap}"
    return [_ms(middle), spread, str(len(seconds)), ratio, str(last.values), proved]


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


_GROWTH = (
    ("mixed", Shape.MIXED, None),
    ("plateau", Shape.PLATEAU, None),
    ("mixed, balance >= 80 %", Shape.MIXED, 800),
    ("uneven, balance >= 80 %", Shape.UNEVEN, 800),
    ("plateau, balance >= 80 %", Shape.PLATEAU, 800),
    ("mixed, balance >= 99 %", Shape.MIXED, 990),
)


def _growth_table(rounds: int) -> Table:
    """Native, top 20: layers down, units across; plain, plateau, and with a balance filter."""
    units = (2, 4, 6, 8, 10)
    table = Table(title="native, top 20, medians", title_justify="left")
    table.add_column("layers")
    table.add_column("instances")
    for count in units:
        table.add_column(f"{count} units", justify="right")
    for layers in (9, 30, 100, 300):
        for kind, shape, balance in _GROWTH:
            cells = []
            for count in units:
                problem = random_problem(layers, count, shape=shape)
                problem = problem.with_limits(min_balance_permille=balance)
                case = Case(name=kind, problem=problem, top=20)
                done = [_run(case, "native", 60.0) for _ in range(rounds)]
                middle = _median_s(done)
                cells.append("-" if middle is None else _ms(middle))
            table.add_row(str(layers), kind, *cells)
    return table


if __name__ == "__main__":
    main()
