"""How long exact backends take on workloads: `python -m benchmarks.workload_solvers`.

Calibrated random instances (`benchmarks/workload_instances.py`) by formulation and size, and with `--study N`
the first N random combinations of networks of Hetero2Pipe's study on kirin990, and the README's. For each
backend: seconds until it held a plan and a bound within 2 % of each other, until it proved the optimum, those
of the processor alone (which a busy machine makes little longer), the gap after some seconds (`--after`) and
the one left at the limit; for the study also plan and bound with where they come from, the means, and the
same for combinations of few requests.
Backends start from plan and bound of the native search, whose seconds are included, or cold (`--start none`),
or once so and once so (`both`). Medians over the seeds, with how many of them were proved, and
where the bounds of the others come from; every run is in a child process, with one thread (`--threads`).
Backends are left out where they do not finish (`LARGEST`). The runs of a study are kept in a file if one is
named (`--keep FILE`), and those that are in it are not made again: so a study that was cut off goes on.

Options: `--backends cpsat,pulp,pulp-cbc,z3` (others, such as `native`, start with nothing in any case),
`--sizes 3x3,5x4` (requests x units), `--kinds joint;...`, `--seeds 2`, `--start native`, `--study 0`,
`--requests 10` (no longer combinations), `--after 1,10`, `--time-limit 60`, `--keep FILE`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import mean, median

from rich.console import Console
from rich.table import Table

from benchmarks.workload_instances import random_workload
from gapless.formulations.errors import BackendError
from gapless.formulations.flow_shop.tables import workload_of
from gapless.formulations.problem import Problem
from gapless.formulations.workload import Execution, RequestOrder
from gapless.profiler.platforms.workloads import random_workloads, shipped_workload
from gapless.solvers.protocol import Claim, SolveOptions, SolveStatus
from gapless.solvers.registry import get_backend
from gapless.solvers.session import solve
from gapless.solvers.sources import Source, StartMode, label_of, start_mode

_WIDTH, _PLANS = 118, 40
"""Of the tables in characters, and of what the study's has besides."""

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
STUDY, README = "kirin990", "yolov4,bert,mobilenetv2x3"
LARGEST = {"z3": 3 * 4, "pulp-cbc": 5 * 4}
"""Requests x units up to which a backend is run with clocks; beyond, it does not finish."""
FEW = 6
"""Requests of the combinations that the study's table counts apart."""


@dataclass(slots=True)
class Run:
    """What one solve came to."""

    requests: int = 0
    close_s: float | None = None
    optimum_s: float | None = None
    cpu_s: float = 0.0
    gap: float | None = None
    source: Source | None = None
    plan_us: int | None = None
    bound_us: int | None = None
    plan_source: Source | None = None
    gaps: dict[str, float] = field(default_factory=dict)
    """By the seconds after which it was."""

    def note(self, seconds: float, gap: float, after: Sequence[float]) -> None:
        """Note the gap at a time."""
        self.gaps.update({f"{mark:g}": gap for mark in after if seconds <= mark})
        if self.close_s is None and gap <= CLOSE:
            self.close_s = seconds


class KeptRuns:
    """The runs of a study in a file, one JSON object a line.

    Parameters
    ----------
    path
        The file, made when the first run is added; None: nothing is kept.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self._known = {tuple(entry["asked"]): Run(**entry["run"]) for entry in map(json.loads, lines)}

    def get(self, asked: tuple[str, ...], make: Callable[[], Run]) -> Run:
        """Return what was run with these words, or run it and keep it."""
        if asked not in self._known:
            self._known[asked] = run = make()
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({"asked": asked, "run": asdict(run)}) + "\n")
        return self._known[asked]


def main() -> None:
    """Run the benchmark and print one table a formulation."""
    options = _arguments()
    console = Console(width=_WIDTH + (_PLANS if options.study else 0))
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}; "
        f"limit {options.time_limit:g} s a solve, threads {options.threads}, {options.seeds} seeds"
    )
    if options.study:
        console.print(_study(options))
        return
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
    parser.add_argument("--start", type=start_mode, default=StartMode.NATIVE, help="native, none or both")
    parser.add_argument("--study", type=int, default=0, help="number of combinations, without drawn networks")
    parser.add_argument("--requests", type=int, default=10, help="most requests of a combination")
    parser.add_argument(
        "--after", type=lambda text: tuple(float(mark) for mark in text.split(",")), default=(1.0, 10.0)
    )
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--threads", type=int, default=1, help="of each solver")
    parser.add_argument("--keep", type=Path, default=None, metavar="FILE", help="of the runs of a study")
    return parser.parse_args()


def _sizes(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (part.split("x") for part in text.split(","))
    return tuple((int(requests), int(units)) for requests, units in pairs)


def _headed(options: argparse.Namespace, title: str, first: Sequence[str], *last: str) -> Table:
    table = Table(title=title, title_justify="left")
    marks = (f"{mark:g} s" for mark in options.after)
    middle = ("within 2 %", "optimum", "processor", "proved", *marks, "gap left")
    for column in (*first, "backend", *middle, *last):
        table.add_column(column, justify="left" if column in (*first[1:], "backend") else "right")
    return table


def _table(kind: str, options: argparse.Namespace) -> Table:
    table = _headed(options, kind, ("requests x units", "loads"))
    clocked = kind not in ("slicing", "ordering")
    for requests, units in options.sizes or SIZES[kind]:
        for balanced in (False, True) if clocked else (False,):
            for name, mode in _backends(options):
                if clocked and requests * units > LARGEST.get(name, 10**9):
                    continue
                problems = (
                    KINDS[kind](requests, units, seed, balanced=balanced) for seed in range(options.seeds)
                )
                runs = [_run(problem, name, mode, options) for problem in problems]
                loads = "balanced" if balanced else "mixed"
                cells = _cells(runs, options.after)
                table.add_row(f"{requests} x {units}", loads, label_of(name, mode), *cells)
    return table


def _study(options: argparse.Namespace) -> Table:
    """Return a table with a row for each combination and backend, and one for all of them."""
    table = _headed(options, f"joint, slowdown, {STUDY}", ("requests", "networks"), "plan", "bound")
    texts = [
        README,
        *(t for t in random_workloads(STUDY, options.study, 0) if _length(t) <= options.requests),
    ]
    every: dict[str, list[Run]] = {}
    kept = KeptRuns(options.keep)
    asked = (f"{options.time_limit:g} s", f"{options.threads} threads", f"after {options.after}")
    for text in texts:
        problem = shipped_workload(STUDY, text)
        requests = _length(text)
        for name, mode in _backends(options):
            if requests * len(problem.platform.units) > LARGEST.get(name, 10**9):
                continue
            label = label_of(name, mode)
            run = kept.get((text, label, *asked), partial(_run, problem, name, mode, options))
            run.requests = requests
            every.setdefault(label, []).append(run)
            found = (_sourced(run.plan_us, run.plan_source), _sourced(run.bound_us, run.source))
            row = (str(requests), text, label, *_cells([run], options.after), *found)
            print(*row, sep="  ", file=sys.stderr, flush=True)
            table.add_row(*row)
    for label, runs in every.items():
        for title, some in (
            ("all", runs),
            (f"up to {FEW} requests", [run for run in runs if run.requests <= FEW]),
        ):
            if some:
                cells = _cells(some, options.after)[:-1]
                table.add_row("", title, label, *cells, _mean([run.gap for run in some]))
    return table


def _sourced(time_us: int | None, source: Source | None) -> str:
    return "-" if time_us is None else f"{time_us / 1000:.2f} ms ({source})"


def _length(text: str) -> int:
    return len(workload_of(shipped_workload(STUDY, text)).requests)


def _backends(options: argparse.Namespace) -> list[tuple[str, StartMode]]:
    both = (StartMode.NATIVE, StartMode.NONE)
    modes = both if options.start is StartMode.BOTH else (options.start,)
    return [(name, mode) for name in options.backends for mode in (modes if name in BACKENDS else both[:1])]


def _run(problem: Problem, name: str, mode: StartMode, options: argparse.Namespace) -> Run:
    run, before_s, started_s = Run(), _children_s(), time.monotonic()

    def see(claim: Claim) -> None:
        if claim.values and claim.bound is not None:
            run.note(time.monotonic() - started_s, 1 - claim.bound / claim.values[0], options.after)

    asked = SolveOptions(time_limit_s=options.time_limit, start=mode, threads=options.threads, publish=see)
    try:
        result = solve(problem, get_backend(name), asked, explain=False)
    except BackendError as error:
        print(f"{name}: {error}")
        return run
    run.gap, run.source, run.cpu_s = result.gap, result.bound_source, _children_s() - before_s
    run.plan_us, run.bound_us, run.plan_source = result.objective, result.bound, result.plan_source
    if result.gap is not None:
        run.note(result.runtime_s, result.gap, options.after)
    if result.status is SolveStatus.OPTIMAL:
        run.optimum_s = result.runtime_s
    return run


def _mean(gaps: Sequence[float | None]) -> str:
    """Return the mean gap of those that have one, and how many have none."""
    known = [gap for gap in gaps if gap is not None]
    text = f"{100 * mean(known):.2f} %" if known else "-"
    return text if len(known) == len(gaps) else f"{text} ({len(gaps) - len(known)} none)"


def _children_s() -> float:
    """Return the seconds of the processor that child processes have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cells(runs: Sequence[Run], after: Sequence[float]) -> list[str]:
    proved = [run.optimum_s for run in runs if run.optimum_s is not None]
    close = [run.close_s for run in runs if run.close_s is not None]
    gaps = [f"{100 * run.gap:.2f} % ({run.source})" for run in runs if run.gap]
    return [
        f"{median(close):.2f} s ({len(close)})" if close else "-",
        f"{median(proved):.2f} s" if proved else "-",
        f"{median(run.cpu_s for run in runs):.1f} s",
        f"{len(proved)} of {len(runs)}",
        *(_mean([run.gaps.get(f"{mark:g}") for run in runs]) for mark in after),
        ", ".join(gaps) or "-",
    ]


if __name__ == "__main__":
    main()
