"""How long planners of groups of devices take, and how good the plans of others are.

    python -m benchmarks.groups_planning                       # all tables, some minutes
    python -m benchmarks.groups_planning --tables graphs,unlike

`graphs`, `chains`: Tables 6 and 7 of PICO, the same sizes on networks of ours: seconds to find pieces
(`graphs` only) and the best groups, beside the seconds that the paper prints for its heuristic and for its
search of all configurations. Exact here means: given the pieces. `targets`: larger sizes. `solvers`: CP-SAT,
CBC or HiGHS and Z3 on the same problems, without a plan or a bound of the native algorithms to start from.
`baselines`: PICO's Algorithms 2 and 3 and the schemes LW, EFL, OFL and CE against the optimum, with messages
between groups charged and not. `unlike`: half of the devices 1 to 16 times as fast as the others. Seconds are
medians of processor time, the tables of the problem included; in `solvers` wall-clock time of single runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from gapless.formulations.cooperation.quantities import GroupValues
from gapless.formulations.cooperation.tables import groups_of
from gapless.formulations.problem import Problem
from gapless.formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window
from gapless.solvers.cooperation.schemes import SCHEMES, scheme
from gapless.solvers.exact import base
from gapless.solvers.families import Start
from gapless.solvers.pieces.finding import usual_pieces
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve

from .group_instances import chain_problem, group_problem, unlike_speeds

GRAPHS = {
    (2, 4, 4): ("< 1", "1.58"),
    (2, 8, 6): ("< 1", "18.23"),
    (3, 12, 4): ("< 1", "718"),
    (3, 12, 6): ("< 1", "2714"),
    (3, 12, 8): ("< 1", "> 1 s, meant: > 1 h"),
    (4, 20, 4): ("< 1", "> 3600"),
    (4, 20, 6): ("< 1", "> 3600"),
}
"""Table 6: (branches, layers, devices) and the paper's seconds for PICO and for its search."""

CHAINS = {
    (4, 4): ("< 1", "< 1"),
    (8, 4): ("< 1", "1.62"),
    (12, 4): ("< 1", "3.84"),
    (16, 4): ("< 1", "11.27"),
    (8, 6): ("< 1", "261"),
    (10, 6): ("< 1", "737"),
    (12, 6): ("< 1", "> 3600"),
    (8, 8): ("< 1", "> 3600"),
}
"""Table 7: (layers, devices), likewise."""

SOLVED = ((4, 3), (6, 3), (6, 4), (8, 4))
PLANNERS = ("pico", "pico-literal")
RATIOS = (1, 2, 4, 8, 16)


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
        console.print(TABLES[name](options))


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _seconds(rounds: int, run: Callable[[], object]) -> str:
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        run()
        taken.append(time.process_time() - started)
    return f"{median(taken):.3f}"


def _solved_s(rounds: int, problem: Problem, backend: str = "native") -> str:
    """Return the median seconds of a whole solve, the tables of the problem included."""
    return _seconds(rounds, lambda: solve(replace(problem), backend, explain=False))


def branching_network(branches: int, layers: int, seed: int = 0) -> SpatialNetwork:
    """Return branches of convolutions with so many layers in all, and their sum: as for Table 6."""
    rng, side = random.Random(seed), 56
    nodes = [SpatialNode(name="in", op_type="Input", size=(side, side), bytes=4 * 64 * side * side)]
    ends = [0] * branches
    for layer in range(layers):
        extent = rng.choice([1, 3, 3, 5])
        branch = layer % branches
        nodes.append(
            SpatialNode(
                name=f"conv{layer}",
                op_type="Conv",
                sources=(ends[branch],),
                windows=((Window(extent=extent, before=extent // 2),) * 2,),
                size=(side, side),
                bytes=4 * 64 * side * side,
                flops=2 * extent * extent * 64 * 64 * side * side,
            )
        )
        ends[branch] = len(nodes) - 1
    nodes.append(
        SpatialNode(
            name="sum",
            op_type="Add",
            sources=tuple(ends),
            windows=((SAME, SAME),) * branches,
            size=(side, side),
            bytes=4 * 64 * side * side,
            flops=branches * 64 * side * side,
        )
    )
    return SpatialNetwork(name="branches", nodes=tuple(nodes), outputs=(len(nodes) - 1,))


def _graphs(options: argparse.Namespace) -> Table:
    table = _table(
        "Table 6: branches, layers, devices alike; seconds",
        "size", "pieces", "find pieces", "native", "pico", "PICO (paper)", "BFS (paper)",
    )  # fmt: skip
    for (branches, layers, devices), printed in GRAPHS.items():
        network = branching_network(branches, layers)
        pieces = usual_pieces(network)
        pieces_s = _seconds(options.rounds, lambda network=network: usual_pieces(network))  # type: ignore[misc]
        problem = group_problem(network, pieces.labels, [1.0] * devices, types=["pi"] * devices)
        found = [_solved_s(options.rounds, problem, name) for name in ("native", "pico")]
        table.add_row(f"{branches}, {layers}, {devices}", str(pieces.count), pieces_s, *found, *printed)
    return table


def _chains(options: argparse.Namespace) -> Table:
    table = _table(
        "Table 7: layers, devices all different; seconds",
        "size",
        "native",
        "pico",
        "PICO (paper)",
        "BFS (paper)",
    )
    for (layers, devices), printed in CHAINS.items():
        problem = chain_problem(layers, unlike_speeds(devices))
        found = [_solved_s(options.rounds, problem, name) for name in ("native", "pico")]
        table.add_row(f"{layers}, {devices}", *found, *printed)
    return table


def _targets(options: argparse.Namespace) -> Table:
    table = _table("larger sizes, seconds", "pieces, devices", "native", "pico")
    sizes = [(16, unlike_speeds(8), ()), (20, unlike_speeds(8), ()), (20, unlike_speeds(10), ())]
    four = [speed for speed in (5.0, 3.0, 2.0, 1.0) for _ in range(4)]
    asked: list[tuple[int, list[float], tuple[str, ...]]] = [*sizes, (27, four, tuple(f"t{s}" for s in four))]
    for pieces, speeds, types in asked:
        problem = chain_problem(pieces, speeds, types=types)
        kinds = f"{len(speeds)} of {len(set(types))} types" if types else f"{len(speeds)} all different"
        found = [_solved_s(options.rounds, problem, name) for name in ("native", "pico")]
        table.add_row(f"{pieces}, {kinds}", *found)
    return table


def _nothing(problem: Problem, options: SolveOptions) -> Iterator[Start]:
    return iter(())


def _solvers(options: argparse.Namespace) -> Table:
    table = _table("exact backends, period", "pieces, devices", "backend", "status", "seconds", "period us")
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
    table = _table(
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


def _utilisation(problem: Problem, planner: str) -> tuple[int, Sequence[float]]:
    result = solve(problem, planner, explain=False)
    assert result.plan is not None
    code = problem.formulation.code(problem, result.plan)
    numbers = problem.formulation.numbers(problem, code)
    assert isinstance(numbers, GroupValues)
    devices = range(len(problem.platform.units))
    return numbers.period_us, [numbers.busy_us.get(d, 0) / numbers.period_us for d in devices]


def _unlike(options: argparse.Namespace) -> Table:
    table = _table(
        "6 devices, 3 of them faster; 12 pieces: period ms, and busy share of each device in per cent",
        "ratio", "planner", "period", "over exact", *(f"{'fast' if d < 3 else 'slow'} {d}" for d in range(6)),
    )  # fmt: skip
    for ratio in RATIOS:
        speeds = [2.0 * ratio] * 3 + [2.0] * 3
        types = ["fast"] * 3 + ["slow"] * 3
        problem = chain_problem(12, speeds, types=types, mbit_per_second=400.0)
        best = 0
        for name in ("native", "pico", "pico-literal"):
            period, shares = _utilisation(problem, name)
            best = best or period
            busy = (f"{100 * share:.0f}" for share in shares)
            table.add_row(f"1:{ratio}", name, f"{period / 1000:,.0f}", f"{period / best:.2f}", *busy)
    return table


TABLES: dict[str, Callable[[argparse.Namespace], Table]] = {
    "graphs": _graphs,
    "chains": _chains,
    "targets": _targets,
    "solvers": _solvers,
    "baselines": _baselines,
    "unlike": _unlike,
}

if __name__ == "__main__":
    main()
