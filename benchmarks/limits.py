"""How late backends answer under a time limit: `python -m benchmarks.limits` (a few minutes).

Each backend solves workloads and networks that it does not finish in time; what is measured is the time from
the question to the judged answer, beyond the limit. Once as the machine is, and once overbooked: busy
processes, three for each core, compete with the backend, and are ended with this program. Every round runs
each backend once. A backend that answers before its limit is not late.

The last column counts the answers without a plan.

Options: `--backends cpsat,pulp,...`, `--limits 0.1,1,5`, `--rounds 3`, `--busy 0,3` (busy processes a core).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks.instances import random_problem
from benchmarks.workload_instances import random_workload
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import SolveOptions, StopReason
from gapless.solvers.registry import backend_names
from gapless.solvers.session import solve

CASES: dict[str, Callable[[], Problem]] = {
    "12 requests x 4 units": partial(random_workload, 12, 4),
    "60 requests x 8 units": partial(random_workload, 60, 8, slowdown=True),
    "100 layers x 8 units": partial(random_problem, 100, 8),
}

BUSY = """
import sys
from gapless.formulations.processes import end_with_parent
end_with_parent(int(sys.argv[1]))
print(flush=True)
while True: pass
"""


@dataclass(slots=True)
class Runs:
    """Seconds beyond the limit, and how many answers had no plan."""

    late_s: list[float] = field(default_factory=list)
    empty: int = 0


def main() -> None:
    """Run the benchmark and print its tables."""
    options = _arguments()
    cores = len(os.sched_getaffinity(0))
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {cores} cores, Python {platform.python_version()}; "
        f"{options.rounds} rounds of {', '.join(CASES)}; seconds beyond the limit, median / worst"
    )
    for each in options.busy:
        with _busy(each * cores):
            runs = _measure(options.backends, options.limits, options.rounds)
            load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        title = f"{each * cores} busy processes beside (load averages then: {load})"
        console.print(_table(title, runs, options.backends, options.limits))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=backend_names())
    parser.add_argument(
        "--limits", type=lambda text: [float(number) for number in text.split(",")], default=[0.1, 1.0, 4.0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=lambda text: [int(n) for n in text.split(",")], default=[0, 3])
    return parser.parse_args()


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    words = [sys.executable, "-c", BUSY, str(os.getpid())]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _measure(backends: Sequence[str], limits: Sequence[float], rounds: int) -> dict[tuple[str, float], Runs]:
    found = {(name, limit_s): Runs() for name in backends for limit_s in limits}
    for _ in range(rounds):
        for (name, limit_s), runs in found.items():
            for make in CASES.values():
                _run(name, limit_s, make(), runs)
    return found


def _run(backend: str, limit_s: float, problem: Problem, runs: Runs) -> None:
    started = time.monotonic()
    try:
        result = solve(problem, backend, SolveOptions(time_limit_s=limit_s), explain=False)
    except UnsupportedFeatureError:
        return
    runs.late_s.append(max(0.0, time.monotonic() - started - limit_s))
    runs.empty += result.plan is None and result.stop is StopReason.TIME_LIMIT


def _table(
    title: str, runs: Mapping[tuple[str, float], Runs], backends: Sequence[str], limits: Sequence[float]
) -> Table:
    table = Table(title=title, title_justify="left", min_width=70)
    table.add_column("backend")
    for limit_s in limits:
        table.add_column(f"limit {limit_s:g} s", justify="right")
    table.add_column("without a plan", justify="right")
    for name in backends:
        own = [runs[name, limit_s] for limit_s in limits]
        if not own[0].late_s:
            continue
        cells = [f"{median(each.late_s):.2f} / {max(each.late_s):.2f}" for each in own]
        empty, asked = sum(each.empty for each in own), sum(len(each.late_s) for each in own)
        table.add_row(name, *cells, f"{empty} of {asked}")
    return table


if __name__ == "__main__":
    main()
