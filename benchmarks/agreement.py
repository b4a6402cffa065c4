"""Check that all exact backends prove the same plans on the shipped tables.

    python -m benchmarks.agreement
    python -m benchmarks.agreement --backends native,exhaustive,cpsat --objectives period

For every shipped problem, every co-run cost model that comes with gapless, and every objective, each
backend proves the 20 best plans; then optimum, bound and the whole list of scores are compared with the
first backend's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from time import perf_counter

from rich.console import Console
from rich.table import Table

from gapless.api.problems import load_problem
from gapless.formulations.co_run import BUILT_IN_MODELS
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.catalog import shipped_names
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve

BACKENDS = ("exhaustive", "native", "cpsat", "z3", "pulp")
OBJECTIVES = ("period", "gapness", "period,gapness", "paper")


def main() -> int:
    """Compare, print a table, and return 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=BACKENDS)
    parser.add_argument("--objectives", type=lambda text: text.split("/"), default=OBJECTIVES)
    parser.add_argument("--top", type=int, default=20)
    options = parser.parse_args()
    table = Table(title=f"top {options.top}: equal to {options.backends[0]}", title_justify="left")
    for column in (
        "objective",
        "backend",
        "tables",
        "optima equal",
        "lists equal",
        "proven plans",
        "seconds",
    ):
        table.add_column(column, justify="right")
    wrong = 0
    for objective in options.objectives:
        for backend, tally in _tallies(objective, options.backends, options.top).items():
            cells = [str(tally[key]) for key in ("tables", "optima", "lists", "proven")]
            table.add_row(objective, backend, *cells, f"{tally['ms'] / 1000:.1f}")
            wrong += 2 * tally["tables"] - tally["optima"] - tally["lists"]
    Console(width=110).print(table)
    return int(wrong > 0)


def _tallies(objective: str, backends: list[str], top: int) -> dict[str, Counter[str]]:
    tallies = {backend: Counter[str]() for backend in backends}
    for name in shipped_names():
        for method in BUILT_IN_MODELS:
            problem = load_problem(name, costs=method).with_objective(objective)
            reference: SolveResult | None = None
            for backend, tally in tallies.items():
                started = perf_counter()
                result = solve(problem, backend, SolveOptions(top=top))
                reference = reference or result
                tally["ms"] += int(1000 * (perf_counter() - started))
                tally["tables"] += 1
                tally["proven"] += result.proven
                proved = result.status is SolveStatus.OPTIMAL and result.bound == result.objective
                tally["optima"] += proved and result.values == reference.values
                tally["lists"] += _lists(problem, result) == _lists(problem, reference)
    return tallies


def _lists(problem: Problem, result: SolveResult) -> list[tuple[object, ...]]:
    return [(c.plan, c.score.values(problem.ranking)) for c in result.candidates[: result.proven]]


if __name__ == "__main__":
    sys.exit(main())
