"""How late backends answer under a time limit: `python -m benchmarks.limits` (a few minutes).

Each backend solves workloads and networks that it does not finish in time; what is measured is the time from
the question to the judged answer, beyond the limit. Once as the machine is, and once overbooked: busy
processes, three for each core, compete with the backend, and are ended with this program. Every round runs
each backend once. A backend that answers before its limit is not late.

There is a table for each kind of problem: usual ones, large ones (100, 300 and 1,000 requests, 100 single
requests, 8 unlike devices in groups), and infeasible ones, whose conflict is looked for in the same time.
The last column counts the answers without a plan; of infeasible problems those with a smallest conflict.

Options: `--backends cpsat,pulp,...`, `--limits 0.1,1,5`, `--rounds 3`, `--busy 0,3` (busy processes a core),
`--kinds usual,large,infeasible`.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
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

from benchmarks.group_instances import chain_problem, unlike_speeds
from benchmarks.instances import random_problem
from benchmarks.offline_frames import frame
from benchmarks.workload_instances import random_workload
from gapless.formulations.errors import UnsupportedFeatureError
from gapless.formulations.flow_shop.rules import before, keep_off
from gapless.formulations.problem import Problem
from gapless.solvers.protocol import SolveOptions, StopReason
from gapless.solvers.registry import backend_names
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve


def in_a_circle(requests: int) -> Problem:
    """Return a workload whose first three requests come each before the next one, which cannot be."""
    first, second, third = (f"r{index}" for index in range(3))
    circle = before(first, second), before(second, third), before(third, first)
    return random_workload(requests, 4).with_rules(*circle, keep_off(third, unit="npu"))


INFEASIBLE = "infeasible"

CASES: dict[str, dict[str, Callable[[], Problem]]] = {
    "usual": {
        "12 requests x 4 units": partial(random_workload, 12, 4),
        "60 requests x 8 units": partial(random_workload, 60, 8, slowdown=True),
        "100 layers x 8 units": partial(random_problem, 100, 8),
    },
    "large": {
        "100 requests x 4 units": partial(random_workload, 100, 4, slowdown=True),
        "300 requests x 4 units": partial(random_workload, 300, 4, slowdown=True),
        "1,000 requests x 4 units": partial(random_workload, 1000, 4, slowdown=True),
        "100 single requests": partial(frame, 0, 100, "eagleeye"),
        "20 pieces x 8 devices": partial(chain_problem, 20, unlike_speeds(8)),
    },
    INFEASIBLE: {
        "4 requests in a circle": partial(in_a_circle, 4),
        "12 requests in a circle": partial(in_a_circle, 12),
    },
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
    """Seconds beyond the limit, and how many answers are worth counting (`_is_counted`)."""

    late_s: list[float] = field(default_factory=list)
    counted: int = 0


def main() -> None:
    """Run the benchmark and print its tables."""
    options = _arguments()
    cores = len(os.sched_getaffinity(0))
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {cores} cores, Python {platform.python_version()}; "
        f"{options.rounds} rounds; seconds beyond the limit, median / worst"
    )
    for kind, each in itertools.product(options.kinds, options.busy):
        with _busy(each * cores):
            runs = _measure(kind, options.backends, options.limits, options.rounds)
            load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        title = f"{'; '.join(CASES[kind])}; {each * cores} busy processes beside (load averages then: {load})"
        console.print(_table(kind, title, runs, options.backends, options.limits))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=backend_names())
    parser.add_argument(
        "--limits", type=lambda text: [float(number) for number in text.split(",")], default=[0.1, 1.0, 4.0]
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=lambda text: [int(n) for n in text.split(",")], default=[0, 3])
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(CASES))
    found = parser.parse_args()
    unknown = [kind for kind in found.kinds if kind not in CASES]
    if unknown:
        parser.error(f"--kinds: {unknown[0]!r} is none of {', '.join(CASES)}")
    return found


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


def _measure(
    kind: str, backends: Sequence[str], limits: Sequence[float], rounds: int
) -> dict[tuple[str, float], Runs]:
    found = {(name, limit_s): Runs() for name in backends for limit_s in limits}
    for _ in range(rounds):
        for (name, limit_s), runs in found.items():
            for make in CASES[kind].values():
                _run(kind, name, limit_s, make(), runs)
    return found


def _run(kind: str, backend: str, limit_s: float, problem: Problem, runs: Runs) -> None:
    started, explain = time.monotonic(), kind == INFEASIBLE
    try:
        result = solve(problem, backend, SolveOptions(time_limit_s=limit_s), explain=explain)
    except UnsupportedFeatureError:
        return
    runs.late_s.append(max(0.0, time.monotonic() - started - limit_s))
    runs.counted += _is_counted(kind, result)


def _is_counted(kind: str, result: SolveResult) -> bool:
    """Return whether an answer is counted: there was no plan in time, or there is a smallest conflict."""
    if kind == INFEASIBLE:
        return result.conflict is not None and result.conflict.smallest
    return result.plan is None and result.stop is StopReason.TIME_LIMIT


def _table(
    kind: str,
    title: str,
    runs: Mapping[tuple[str, float], Runs],
    backends: Sequence[str],
    limits: Sequence[float],
) -> Table:
    table = Table(title=title, title_justify="left", min_width=70)
    table.add_column("backend")
    for limit_s in limits:
        table.add_column(f"limit {limit_s:g} s", justify="right")
    last = "with a smallest conflict" if kind == INFEASIBLE else "without a plan"
    table.add_column(last, justify="right")
    for name in backends:
        own = [runs[name, limit_s] for limit_s in limits]
        if not own[0].late_s:
            continue
        cells = [f"{median(each.late_s):.2f} / {max(each.late_s):.2f}" for each in own]
        counted, asked = sum(each.counted for each in own), sum(len(each.late_s) for each in own)
        table.add_row(name, *cells, f"{counted} of {asked}")
    return table


if __name__ == "__main__":
    main()
