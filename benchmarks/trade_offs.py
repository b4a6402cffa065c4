"""Times to the whole front: `python -m benchmarks.trade_offs` (some minutes).

Fronts of one network: the period against the latency, the peak memory, the energy, and against two of them,
of a shipped table (9 layers x 4 units) and of random ones (30x6, 100x8). The platforms say no powers and the
random networks no sizes: powers and sizes are drawn, equal for equal seeds. What is printed is the number of
plans on the front, how many of them are proven, the problems solved and the seconds.

Options: `--backends native,cpsat,...`, `--sizes 9x4,30x6,100x8`, `--terms "period,energy;..."`, `--limit 60`
(seconds a front).
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from benchmarks.instances import random_problem
from benchmarks.printing import WIDTH, show, titled
from gapless.api.problems import load_problem
from gapless.formulations.network import Tensor
from gapless.formulations.problem import Problem
from gapless.solvers.pareto import ParetoSearch
from gapless.solvers.protocol import SolveOptions

SHIPPED = {"9x4": "pixel7a/alexnet-sparse"}
TERMS = (
    "period,latency",
    "period,peak_memory",
    "period,energy",
    "period,units",
    "period,latency,energy",
    "period,peak_memory,energy",
)
_MEBIBYTE = 2**20


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one row a front."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--backends", default="native")
    parser.add_argument("--sizes", default="9x4,30x6,100x8")
    parser.add_argument("--terms", default=";".join(TERMS))
    parser.add_argument("--limit", type=float, default=60.0)
    asked = parser.parse_args(arguments)
    table = titled("Fronts", "layers x units", "terms", "backend", "plans", "proven", "solves", "all", "s")
    for size in asked.sizes.split(","):
        problem = instance(size)
        for terms in asked.terms.split(";"):
            for backend in asked.backends.split(","):
                table.add_row(size, terms, backend, *_row(problem, terms.split(","), backend, asked.limit))
    show(Console(width=WIDTH), table)


def instance(size: str, seed: int = 0) -> Problem:
    """Return a problem of a size with powers, and with sizes of layers and tensors."""
    layers, units = map(int, size.split("x"))
    problem = load_problem(SHIPPED[size]) if size in SHIPPED else random_problem(layers, units, seed=seed)
    draw = random.Random(f"{size} {seed}")
    powers = [draw.randrange(400, 8000, 100) for _ in problem.platform.units]
    powered = tuple(
        replace(unit, power_mw=power, idle_mw=power // draw.randint(8, 30))
        for unit, power in zip(problem.platform.units, powers, strict=True)
    )
    network = replace(
        problem.network,
        layers=tuple(
            replace(layer, weight_bytes=draw.randrange(10 * _MEBIBYTE)) for layer in problem.network.layers
        ),
        tensors=tuple(
            Tensor(name=f"t{i}", bytes=draw.randrange(4 * _MEBIBYTE), source=i - 1, targets=(i,))
            for i in range(layers)
        ),
    )
    return replace(problem, platform=replace(problem.platform, units=powered), networks=(network,))


def _row(problem: Problem, terms: Sequence[str], backend: str, limit_s: float) -> tuple[str, ...]:
    front = ParetoSearch(problem, terms, backend, SolveOptions(time_limit_s=limit_s)).run()
    proven = sum(point.proven for point in front.points)
    return (
        str(len(front.points)),
        str(proven),
        str(front.solves),
        "yes" if front.complete else "no",
        f"{front.runtime_s:.2f}",
    )


if __name__ == "__main__":
    main()
