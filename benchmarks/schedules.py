"""How good and how quick the search for schedules is: `python -m benchmarks.schedules`.

    python -m benchmarks.schedules                          # 31 mixes after 25 ms, 0.1, 1 and 10 s
    python -m benchmarks.schedules --limits 1 --mixes 0,14  # some of them
    python -m benchmarks.schedules --large 100,300,1000 --limits 5
    python -m benchmarks.schedules --exact cpsat,pulp --limits 10,60 --mixes 14,7,12,15

Several requests on phones, any unit at any time, with slowdown. 14 mixes are the first random ones of the
study of Hetero2Pipe, 14 is the workload of the README, 15 to 20 are the first six where every unit runs every
layer, 21 to 30 were drawn when the search was finished. Seconds are the processor's, so that a busy machine
does not matter. Best known plans are of searches of a minute, or of this run where it found better ones.
With `--exact` solvers begin with nothing, and with the plan and bound of the native search; their limits are
seconds of the clock, and a column has those of the processor.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import mean

from rich.console import Console
from rich.table import Table

from benchmarks.passage import processor_s
from gapless.api.planning import compare_backends
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules
from gapless.profiler.platforms.workloads import phone_network_names, random_workloads, shipped_workload
from gapless.solvers.jobs.makespan import MakespanSearch
from gapless.solvers.protocol import Clock, Deadline, SolveOptions
from gapless.solvers.result import Milestone, SolveResult
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode

KIRIN, SNAPDRAGON = "kirin990", "snapdragon870"

BEST_US = (
    *(80049, 692057, 610857, 588557, 181461, 664608, 562528, 207780, 560361, 876550, 181060, 613717),
    *(289877, 486975, 559610, 527144, 1400589, 1098394, 787329, 539087, 1141301),
)
"""Best known makespans of the first mixes."""

SEED = 2026
"""Of the mixes that nobody tuned on."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What one search came to, and with what."""

    makespan_us: int
    bound_us: int
    steps: int


def mixes() -> tuple[tuple[str, str], ...]:
    """Return platform and text of each mix."""
    study = random_workloads(KIRIN, 14, 0)
    return (
        *((KIRIN, text) for text in study),
        (KIRIN, "yolov4,bert,mobilenetv2x3"),
        *((SNAPDRAGON, text) for text in study[:6]),
        *((KIRIN, text) for text in random_workloads(KIRIN, 10, SEED)),
    )


def searched(problem: Problem, limit_s: float, seed: int) -> Searched:
    """Search for `limit_s` seconds of the processor."""
    deadline = Deadline(limit_s, Clock(time.thread_time))
    search = MakespanSearch(problem, seed=seed)
    search.begin(deadline)
    search.bound(deadline)
    for _ in search.rounds(deadline):
        if search.pool.meets(search.least):
            break
    values = problem.formulation.numbers(problem, search.pool.codes[0]).values(("makespan",))
    return Searched(values[0], search.least or 0, search.steps)


def first_ms(problem: Problem) -> float:
    """Return after how long there is a plan where there is no time."""
    started = time.thread_time()
    MakespanSearch(problem, seed=0).begin(Deadline(0.0))
    return 1000 * (time.thread_time() - started)


def main() -> None:
    """Run the benchmark and print its tables."""
    options = _arguments()
    console = Console(width=190)
    if options.large:
        console.print(_large(options.large, options.limits[-1], options.seed))
        return
    if options.exact:
        console.print(_exact(options))
        return
    table, found = _table(options.limits), []
    for number, (platform, text) in enumerate(mixes()):
        if options.mixes and number not in options.mixes:
            continue
        row = _row(number, platform, text, options)
        found.append((number, row))
        table.add_row(*_cells(number, platform, text, row))
    console.print(table)
    for name, numbers in (("0 to 13", range(14)), ("15 to 20", range(15, 21)), ("21 to 30", range(21, 31))):
        own = [row for number, row in found if number in numbers]
        if own:
            places = range(len(options.limits))
            above = ", ".join(f"{mean(row.above(place) for row in own):.2f}" for place in places)
            gaps = ", ".join(f"{mean(row.gap(place) for row in own):.2f}" for place in places)
            console.print(f"mean of {name}: {above} % above the best known, {gaps} % above the bound")


@dataclass(frozen=True, slots=True)
class _Row:
    runs: tuple[Searched, ...]  # by limit
    first_ms: float
    ordered_us: int | None
    best_us: int

    @property
    def bound_us(self) -> int:
        return max(run.bound_us for run in self.runs)

    def above(self, place: int) -> float:
        """Return by how many percent a run is above the best known plan."""
        return 100 * (self.runs[place].makespan_us / self.best_us - 1)

    def gap(self, place: int) -> float:
        """Return by how many percent a run is above its bound."""
        return 100 * (self.runs[place].makespan_us / self.runs[place].bound_us - 1)


def _row(number: int, platform: str, text: str, options: argparse.Namespace) -> _Row:
    workload = shipped_workload(platform, text)
    problem = as_schedules(workload)
    searched(problem, 0.01, 0)  # tables and caches
    runs = tuple(searched(problem, limit_s, options.seed) for limit_s in options.limits)
    known = BEST_US[number : number + 1]
    ordered_us = None
    if options.ordered:
        ordered_us = solve(workload, "native", SolveOptions(time_limit_s=options.ordered)).objective
    return _Row(runs, first_ms(problem), ordered_us, min((*known, *(run.makespan_us for run in runs))))


def _table(limits: Sequence[float]) -> Table:
    table = Table(title="above the best known plan (and above the bound) in %, by seconds of search")
    for name in ("#", "platform", "requests", "bound us", "best known us", "first plan ms"):
        table.add_column(name, justify="left" if name == "requests" else "right", overflow="fold")
    for limit in limits:
        table.add_column(f"{limit:g} s", justify="right", no_wrap=True)
    table.add_column("in order us", justify="right")
    table.add_column("gain", justify="right")
    return table


def _cells(number: int, platform: str, text: str, row: _Row) -> Iterator[str]:
    yield from (str(number), platform, text, f"{row.bound_us:,}", f"{row.best_us:,}")
    yield f"{row.first_ms:.0f}"
    for place in range(len(row.runs)):
        yield f"{row.above(place):.2f} ({row.gap(place):.2f})"
    yield "" if row.ordered_us is None else f"{row.ordered_us:,}"
    yield "" if row.ordered_us is None else f"{row.ordered_us / row.runs[-1].makespan_us:.2f}"


def _large(sizes: Sequence[int], limit_s: float, seed: int) -> Table:
    table = Table(title=f"many requests on {KIRIN} with any amount of memory after {limit_s:g} s")
    for name in ("requests", "bound us", "plan us", "gap %", "changes", "peak MB"):
        table.add_column(name, justify="right")
    for size in sizes:
        text = ",".join(random.Random(SEED).choices(phone_network_names(), k=size))
        workload = shipped_workload(KIRIN, text)
        roomy = replace(workload, platform=replace(workload.platform, memory_bytes=None))
        found = searched(as_schedules(roomy), limit_s, seed)
        gap = 100 * (found.makespan_us / found.bound_us - 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        times = (f"{found.bound_us:,}", f"{found.makespan_us:,}")
        table.add_row(str(size), *times, f"{gap:.2f}", f"{found.steps:,}", f"{peak:.0f}")
    return table


def _exact(options: argparse.Namespace) -> Table:
    table = Table(title="plan us (above the best known in %); above its own bound in %")
    for name in ("#", "requests", "backend", "start"):
        table.add_column(name)
    for limit_s in options.limits:
        table.add_column(f"{limit_s:g} s", justify="right")
    table.add_column("of the processor, s", justify="right")
    chosen = options.mixes or (14,)
    for number, (platform, text) in enumerate(mixes()):
        if number not in chosen:
            continue
        problem = as_schedules(shipped_workload(platform, text))
        for backend in options.exact:
            for start in (StartMode.NONE, StartMode.NATIVE):
                before_s = processor_s()
                asked = SolveOptions(time_limit_s=max(options.limits), start=start)
                (found,) = compare_backends(problem, asked, backends=[backend]).results
                spent_s = processor_s() - before_s
                cells = (_held(found, limit_s, BEST_US[number]) for limit_s in options.limits)
                table.add_row(str(number), text, backend, str(start), *cells, f"{spent_s:.0f}")
    return table


def _held(found: SolveResult, limit_s: float, best_us: int) -> str:
    """Return what a solver held after some seconds of its search."""
    held = [each for each in found.course if each.at_s <= limit_s] or [Milestone(at_s=0.0)]
    value, bound = held[-1].value, held[-1].bound
    if value is None:
        return "no plan" if bound is None else f"no plan, bound {bound:,}"
    gap = "no bound" if not bound else f"{100 * (value / bound - 1):.2f}" if value > bound else "proved"
    return f"{value:,} ({100 * (value / best_us - 1):+.2f}); {gap}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    limits = (0.025, 0.1, 1.0, 10.0)
    parser.add_argument("--limits", type=_seconds, default=limits, help="seconds, e.g. 0.1,1")
    parser.add_argument("--mixes", type=_numbers, default=(), help="numbers of some mixes, e.g. 0,14")
    parser.add_argument("--large", type=_numbers, default=(), help="numbers of requests, e.g. 100,1000")
    parser.add_argument("--exact", type=lambda text: text.split(","), default=(), help="e.g. cpsat,pulp")
    parser.add_argument("--ordered", type=float, default=1.0, help="seconds for plans in order; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _seconds(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


if __name__ == "__main__":
    main()
