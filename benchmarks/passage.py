"""What plans gain that come back to a unit, and how soon solvers prove them: `python -m benchmarks.passage`.

Two tables over all shipped tables of one network, and the networks of the zoo on the phones:

gain
    Least period with one chunk per unit (`once`, proved), with any number (`any`, and its bound where that is
    not proved), of the fallback of an execution provider, and of the best unit alone; the gain of `any` over
    `once` where each border costs 0, 50, 100 and 200 us more; chunks of the plan; seconds until the plan was
    there, and until it was proved (all terms, those too that break ties).
course
    Period of native after 0.02, 0.1, 0.5 and 10 s, and by how much it may be above the least one: its
    distance from the best bound that any of these runs proved.

Two more, if asked for:

cycles
    Of the plans of `any` that come back to a unit: how many requests their cycles need in flight, how long a
    request is on its way, in periods: in the cycle, at least (a bound), and if it waited nowhere; seconds to
    find the cycle. 1,000 requests are played in it with that many in flight: the mean time between two
    results from the 200th to the 800th.

And of some of them:

exact
    Period and bound of native and of CP-SAT, HiGHS and Z3, which begin with nothing (cold) or with the plan
    and the bound that native finds in a tenth of the time (native); one solver at a time, with one thread.
    Limits are seconds of the machine, as these solvers know no others: the processor time they got is shown.

Seconds of the first two are those of the processor, so that a busy machine tells the same. Options:
`--only kirin990/bert` (how names begin, by commas), `--limits 0.02,0.1,0.5,10`, `--hops 0,50,100,200`,
`--exact-limits 10`, `--tables gain,course,cycles,exact`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from rich.console import Console

from benchmarks.printing import WIDTH, show, titled
from gapless.api.problems import load_problem
from gapless.formulations.chunking.tables import chain_of
from gapless.formulations.costs import NetworkCosts, TransferRows
from gapless.formulations.cycles import cycle_of, least_latency_us
from gapless.formulations.flight import Turns, served_in_turns
from gapless.formulations.passages import Passage
from gapless.formulations.plan import comes_back
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.catalog import shipped_names
from gapless.profiler.platforms.workloads import phone_names, phone_network_names, shipped_workload
from gapless.solvers.protocol import Claim, Clock, SolveOptions
from gapless.solvers.result import SolveResult
from gapless.solvers.session import solve
from gapless.solvers.sources import StartMode

LARGE = (
    "jetson-orin-nano/octree",
    "pixel7a/alexnet-sparse",
    "kirin990/bert",
    "kirin990/inceptionv4",
    "kirin990/vit",
    "kirin990/yolov4",
    "snapdragon870/vgg16",
)
"""What exact solvers are tried on unless `--only` says otherwise."""

EXACT = ("cpsat", "pulp", "z3")

PLAYED, STEADY = 1000, range(200, 800)
"""Requests that are played in a cycle, and those of them whose results are timed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--limits", default="0.02,0.1,0.5,10")
    parser.add_argument("--hops", default="0,50,100,200")
    parser.add_argument("--exact-limits", default="10")
    parser.add_argument("--tables", default="gain,course")
    asked = parser.parse_args(arguments)
    limits = [float(text) for text in asked.limits.split(",")]
    hops = [int(text) for text in asked.hops.split(",")]
    wanted = [name for name in asked.only.split(",") if name]
    console = Console(width=WIDTH)
    chosen = [(name, p) for name, p in problems() if not wanted or name.startswith(tuple(wanted))]
    if "gain" in asked.tables:
        gains = (f"gain +{us} us" for us in hops)
        table = titled(
            "Gain",
            "table",
            "layers",
            "once",
            "any",
            "bound",
            "fallback",
            "one unit",
            *gains,
            "chunks",
            "plan s",
            "proof s",
        )
        for name, problem in chosen:
            table.add_row(name, str(len(problem.network.layers)), *_gain(problem, hops, max(limits)))
        show(console, table)
    if "course" in asked.tables:
        table = titled("Course", "table", "layers", *(f"after {s:g} s" for s in limits), "bound")
        for name, problem in chosen:
            table.add_row(name, str(len(problem.network.layers)), *_course(problem, limits))
        show(console, table)
    if "cycles" in asked.tables:
        words = ("in flight", "latency", "at least", "no waits", "seconds", "played us")
        table = titled("Cycles, latencies in periods", "table", "chunks", "period us", *words)
        for name, problem in chosen:
            cells = _cycle(problem, max(limits))
            if cells:
                table.add_row(name, *cells)
        show(console, table)
    if "exact" in asked.tables:
        spans = [float(text) for text in asked.exact_limits.split(",")]
        after = (f"after {s:g} s" for s in spans)
        table = titled("Exact", "table", "layers", "solver", "start", *after, "bound", "processor s")
        for name, problem in chosen:
            if wanted or name in LARGE:
                for cells in _exact(problem, spans):
                    table.add_row(name, str(len(problem.network.layers)), *cells)
        show(console, table)


def problems() -> Iterator[tuple[str, Problem]]:
    """Yield the shipped problems of one network, the least period asked."""
    for name in shipped_names():
        problem = load_problem(name)
        if len(problem.networks) == 1 and problem.co_run_costs is None and problem.data is None:
            yield name, problem.with_objective("period")
    for platform in phone_names():
        for network in phone_network_names():
            workload = shipped_workload(platform, network)
            plain = Problem(platform=workload.platform, networks=workload.networks, costs=workload.costs)
            yield f"{platform}/{network}", plain.with_objective("period")


def dearer(problem: Problem, hop_us: int) -> Problem:
    """Return a problem in which each border between two chunks costs so much more, where a chunk begins."""
    units = len(problem.platform.units)
    networks = tuple(
        replace(costs, transfer_in_us=_dearer_rows(costs, units, hop_us)) for costs in problem.costs.networks
    )
    return replace(problem, costs=replace(problem.costs, networks=networks))


def _dearer_rows(costs: NetworkCosts, units: int, hop_us: int) -> TransferRows:
    count = len(costs.layer_us)
    rows: TransferRows = costs.transfer_in_us or ((0,) * units,) * (count + 1)
    return tuple(row if at in (0, count) else tuple(us + hop_us for us in row) for at, row in enumerate(rows))


@dataclass
class _Watch:
    """When the best plan was there, by the clock of the processor."""

    began_s: float
    best: int | None = None
    at_s: float = 0.0

    def see(self, claim: Claim) -> None:
        """Note a better plan."""
        if claim.values is not None and (self.best is None or claim.values[0] < self.best):
            self.best, self.at_s = claim.values[0], time.thread_time() - self.began_s


def _any(problem: Problem, limit_s: float) -> tuple[SolveResult, float, float]:
    """Return the answer of native with any number of chunks, seconds until its plan and until its end."""
    watch = _Watch(began_s=time.thread_time())
    options = SolveOptions(time_limit_s=limit_s, clock=Clock(time.thread_time), publish=watch.see)
    found = solve(replace(problem, data=Passage()), "native", options, explain=False)
    spent_s = time.thread_time() - watch.began_s
    return found, watch.at_s if watch.best == found.objective else spent_s, spent_s


def _gain(problem: Problem, hops: Sequence[int], limit_s: float) -> list[str]:
    """Return the cells of a row."""
    whole = replace(problem, data=Passage())
    others = [
        solve(whole, name, SolveOptions(), explain=False).objective for name in ("fallback", "one-unit")
    ]
    gains, first = [], None
    for hop_us in hops:
        priced = dearer(problem, hop_us)
        once = solve(priced, "native", SolveOptions(), explain=False).objective
        found, plan_s, spent_s = _any(priced, limit_s)
        first = first or (once, found, plan_s, spent_s)
        ratio = None if once is None or not found.objective else once / found.objective
        gains.append("-" if ratio is None else f"{ratio:.2f}")
    assert first is not None
    once, found, plan_s, spent_s = first
    proved = found.proven > 0
    chunks = "-" if found.plan is None else str(len(found.plan.chunks))
    numbers = [once, found.objective, found.bound, *others]
    return [*map(_number, numbers), *gains, chunks, f"{plan_s:.2f}", f"{spent_s:.2f}" if proved else "not"]


def _course(problem: Problem, limits: Sequence[float]) -> list[str]:
    """Return the cells of a row."""
    found = [_any(problem, limit_s)[0] for limit_s in limits]
    bound = max((answer.bound for answer in found if answer.bound is not None), default=0)
    cells = []
    for answer in found:
        if answer.objective is None:
            cells.append("no plan")
        else:
            above = 100 * (answer.objective - bound) / answer.objective
            own = "" if answer.gap is None else f", own gap {100 * answer.gap:.2f} %"
            sure = "proved" if answer.proven else f"{above:.2f} %{own}"
            cells.append(f"{answer.objective:,} ({sure})")
    return [*cells, _number(bound)]


def _cycle(problem: Problem, limit_s: float) -> list[str]:
    """Return the cells of a row; empty: the plan does not come back to a unit."""
    plan = _any(problem, limit_s)[0].plan
    if plan is None or not comes_back(plan.chunks, problem.platform):
        return []
    chain, platform = chain_of(problem), problem.platform
    times_us = [chain.busy_us(one.start, one.stop, platform.index_of(one.unit)) for one in plan.chunks]
    units = platform.turns(chunk.unit for chunk in plan.chunks)
    began_s = time.thread_time()
    cycle = cycle_of(times_us, units)
    spent_s = time.thread_time() - began_s
    visits = served_in_turns(times_us, [0] * PLAYED, cycle.in_flight, Turns(units=units, cycle=cycle))
    ends_us = [visit.end_us for visit in visits if visit.station == len(times_us) - 1]
    played_us = (ends_us[STEADY.stop] - ends_us[STEADY.start]) / len(STEADY)
    latencies_us = (cycle.latency_us, least_latency_us(times_us, units), sum(times_us))
    return [
        str(len(plan.chunks)),
        _number(cycle.period_us),
        str(cycle.in_flight),
        *(f"{latency_us / cycle.period_us:.3f}" for latency_us in latencies_us),
        f"{spent_s:.2f}",
        f"{played_us:,.3f}",
    ]


def _exact(problem: Problem, limits: Sequence[float]) -> Iterator[list[str]]:
    """Yield the cells of the rows of all solvers."""
    whole = replace(problem, data=Passage())
    modes = [("native", StartMode.NONE), *product(EXACT, (StartMode.NONE, StartMode.NATIVE))]
    for backend, mode in modes:
        before_s = processor_s()
        found = [
            solve(whole, backend, SolveOptions(time_limit_s=limit_s, start=mode), explain=False)
            for limit_s in limits
        ]
        spent_s = processor_s() - before_s
        bound = max((one.bound for one in found if one.bound is not None), default=None)
        yield [
            backend,
            "-" if backend == "native" else "cold" if mode is StartMode.NONE else "native",
            *map(_period, found),
            _number(bound),
            f"{spent_s:.1f}",
        ]


def _period(found: SolveResult) -> str:
    """Return the period that was found, and whether it is proved to be the least."""
    if found.objective is None:
        return "no plan"
    return f"{found.objective:,}{', proved' if found.bound == found.objective else ''}"


def processor_s() -> float:
    """Return the time that this process and its children, all of which have to end, had of the processor."""
    for child in multiprocessing.active_children():
        child.join()
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


if __name__ == "__main__":
    main()
