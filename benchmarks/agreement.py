"""Check that all exact backends prove the same plans on the shipped tables, or on crowded workloads.

    python -m benchmarks.agreement
    python -m benchmarks.agreement --backends native,exhaustive,cpsat --objectives period
    python -m benchmarks.agreement --crowded 300 --backends exhaustive,native,cpsat
    python -m benchmarks.agreement --passage 1000 --seconds 600
    python -m benchmarks.agreement --schedules 1000 --seconds 600 --backends exhaustive,cpsat,pulp,z3
    python -m benchmarks.agreement --pipelines 300 --groups 300 --parts 300 --tasks 300

For every shipped problem, every co-run cost model that comes with gapless, and every objective, each
backend proves the 20 best plans; then optimum, bound and the whole list of scores are compared with the
first backend's.

`--crowded N` draws N small workloads in which company would take more than the most that a chunk can lose
(`benchmarks/workload_instances.py`), with at most `--plans` plans, from `--seed` on. Each backend begins with
nothing and has `--limit` seconds; what it has not proved by then is counted as open, and its plan and bound
must still not contradict the optimum of the first backend.

`--passage N` draws N networks of 3 to 8 layers on 2 to 4 units, which may have several chunks, and whatever
an instance can ask: layers that units cannot run, copies, memory, shared cores, forbidden cuts, limits, rules
and terms. Each backend lists the 5 best plans, beginning with nothing; values, bounds, plans and their order
are compared. `--seconds` ends it early. `--schedules N` draws as many schedules of 2 to 4 requests with all
passages (`benchmarks/schedule_instances.py`), most of them with slowdown, more than half by slice, of which
status, values and bound of the best plan are compared; and the bound that the native search begins with must
not be above the optimum. `--pipelines N`, `--groups N`, `--parts N` and `--tasks N` draw pipelines over
devices, groups of devices (and of units, which may take steps), convex parts, and layers side by side, with
limits, rules and terms; where nothing tells plans with equal terms apart, the terms of the list are compared.
The command ends with 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import count, islice
from multiprocessing import get_context
from random import Random
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.partition import small_graph
from benchmarks.schedule_instances import any_schedule
from benchmarks.workload_instances import crowded_workload
from gapless.api.problems import load_problem
from gapless.formulations.co_run import BUILT_IN_MODELS
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.passages import Passage
from gapless.formulations.problem import Problem
from gapless.formulations.rules import RuleFunction, named
from gapless.formulations.schedules import Jobs
from gapless.profiler.platforms.catalog import shipped_names
from gapless.solvers.exhaustive import count_plans
from gapless.solvers.jobs.bounds import bound_of
from gapless.solvers.protocol import SolveOptions, SolveStatus, StopReason
from gapless.solvers.registry import get_backend
from gapless.solvers.result import SolveResult
from gapless.solvers.session import reconcile, solve
from gapless.solvers.sources import StartMode
from tests import cooperation_instances, pipeline_instances
from tests.solvers.chunking.random_problems import random_problem
from tests.task_graph_instances import small_tasks

BACKENDS = ("exhaustive", "native", "cpsat", "z3", "pulp")
OBJECTIVES = ("period", "gapness", "period,gapness", "paper")


def main() -> int:
    """Compare, print a table, and return 1 when anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=BACKENDS)
    parser.add_argument("--objectives", type=lambda text: text.split("/"), default=OBJECTIVES)
    parser.add_argument("--top", type=int, help="how many plans; 20, of --passage 5")
    parser.add_argument("--crowded", type=int, default=0, help="how many workloads under the cap of slowdown")
    for family, (called, _) in DRAWN.items():
        parser.add_argument(f"--{family}", type=int, default=0, help=f"how many {called}")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="of each of these, for all together"
    )
    parser.add_argument("--plans", type=int, default=60, help="most plans of such a workload; 60")
    parser.add_argument("--seed", type=int, default=0, help="the first one that is drawn")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each of their proofs; 60")
    options = parser.parse_args()
    if options.crowded:
        return _crowded(options)
    asked = [family for family in DRAWN if getattr(options, family)]
    if asked:
        return max(_of_drawn(options, family) for family in asked)
    options.top = options.top or 20
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


def _crowded(options: argparse.Namespace) -> int:
    """Compare proofs of workloads in which the cap of slowdown is at work."""
    console, seeds = Console(width=110), list(islice(_drawn(options.seed, options.plans), options.crowded))
    found: dict[str, list[SolveResult]] = {}
    for backend in options.backends:  # one process each: solvers do not share one
        with ProcessPoolExecutor(1, get_context("spawn")) as worker:
            found[backend] = list(worker.map(partial(_cold, backend, options.limit), seeds))
    table = Table(title=f"{options.crowded} crowded workloads", title_justify="left")
    for column in ("backend", "proved", "open", "wrong", "seconds"):
        table.add_column(column, justify="right")
    wrong = 0
    for backend, results in found.items():
        proved = sum(result.status is SolveStatus.OPTIMAL for result in results)
        pairs = list(zip(seeds, results, found[options.backends[0]], strict=True))
        differ = [each for each in pairs if not _agrees(*each[1:])]
        for seed, result, reference in differ:
            console.print(f"seed {seed}: {backend} {_said(result)}; {_said(reference)} is right")
        seconds = sum(result.runtime_s for result in results)
        cells = (proved, len(results) - proved, len(differ))
        table.add_row(backend, *map(str, cells), f"{seconds:.1f}")
        wrong += len(differ)
    console.print(table)
    return int(wrong > 0)


def _cold(backend: str, limit_s: float, seed: int) -> SolveResult:
    """Return what a backend proves in this process, beginning with nothing."""
    return _proved(crowded_workload(seed), backend, limit_s, 1)


def _proved(problem: Problem, backend: str, limit_s: float, top: int) -> SolveResult:
    worker, started = get_backend(backend), perf_counter()
    claim = worker.solve(problem, SolveOptions(top=top, time_limit_s=limit_s, start=StartMode.NONE))
    return reconcile(problem, worker, claim, top, perf_counter() - started)


def _of_drawn(options: argparse.Namespace, family: str) -> int:
    """Compare lists of plans of problems that are drawn."""
    (called, draw), number = DRAWN[family], getattr(options, family)
    console, started = Console(width=110), perf_counter()
    top = 1 if draw is any_schedule else options.top or 5
    with ExitStack() as stack:  # one process each: solvers do not share one
        workers = {
            backend: stack.enter_context(ProcessPoolExecutor(1, get_context("spawn")))
            for backend in options.backends
        }
        tallies = {backend: Counter[str]() for backend in options.backends}
        kinds = Counter[str]()
        for seed in range(options.seed, options.seed + number):
            if perf_counter() - started > options.seconds:
                break
            found = {
                backend: worker.submit(_listed, backend, options.limit, top, draw, seed).result()
                for backend, worker in workers.items()
            }
            reference = found[options.backends[0]]
            problem = draw(seed)
            kinds.update(("instances", *_kinds(problem), f"status {reference.status}"))
            if draw is any_schedule and reference.values is not None:
                kinds["bounds above the optimum"] += bound_of(problem) > reference.values[0]
            for backend, result in found.items():
                tally = tallies[backend]
                verdict = _compared(problem, result, reference)
                tally[verdict] += 1
                tally["ms"] += int(1000 * result.runtime_s)
                if verdict == "differ":
                    console.print(f"seed {seed}: {backend} {_said(result)}; {_said(reference)} is right")
    title = f"{kinds['instances']} {called}, top {top}"
    table = Table(title=title, title_justify="left")
    for column in ("backend", "equal", "open", "differ", "seconds"):
        table.add_column(column, justify="right")
    for backend, tally in tallies.items():
        cells = [str(tally[verdict]) for verdict in ("equal", "open", "differ")]
        table.add_row(backend, *cells, f"{tally['ms'] / 1000:.1f}")
    console.print(table)
    console.print(", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items())))
    differ = any(tally["differ"] for tally in tallies.values())
    return int(differ or kinds["bounds above the optimum"] > 0)


def any_groups(seed: int) -> Problem:
    """Return a network over groups of devices, or over groups of units, which may take steps."""
    draw = cooperation_instances.stepping_problem if seed % 3 else cooperation_instances.restricted_problem
    return draw(seed)


def any_parts(seed: int) -> Problem:
    """Return a small graph to divide into convex parts, with limits, rules and terms."""
    draw, problem = Random(f"parts {seed}"), small_graph(seed)
    layers = [layer.name for layer in problem.network.layers]
    (one, other), unit, most = (
        draw.sample(layers, 2),
        draw.choice(problem.platform.unit_names),
        draw.randint(20, 200),
    )
    rules: list[RuleFunction] = [
        lambda view: view.on(one, unit) | view.together(one, other),
        lambda view: ~view.together(one, other),
        lambda view: view.busy_us(unit) <= most,
        lambda view: view.uses(unit) & (view.transfers_us() <= most),
        lambda view: view.memory_bytes(unit) >= most // 8,
    ]
    limits = {
        "max_period_us": most,
        "min_units": draw.randint(1, 3),
        "max_units": draw.randint(1, 3),
        "max_unit_memory_bytes": draw.randint(20, 90),
        "max_memory_bytes": draw.randint(30, 120),
    }
    if draw.random() < 0.3:
        shared = [
            replace(unit, cores=(0,)) if place < 2 else unit
            for place, unit in enumerate(problem.platform.units)
        ]
        problem = replace(problem, platform=replace(problem.platform, units=tuple(shared)))
    return (
        problem.with_objective(
            draw.choice(("period", "period,transfers", "transfers,period", "work", "units,work"))
        )
        .with_limits(**{name: value for name, value in limits.items() if draw.random() < 0.15})
        .with_rules(
            *(named(f"rule {at}", "", rules[at]) for at in draw.sample(range(5), draw.choice((0, 0, 1, 2))))
        )
    )


def passage_problem(seed: int) -> Problem:
    """Return a network whose units may have several chunks, with a random choice of everything.

    It has at most some thousand plans, and some hundred where each needs a cycle to be judged.
    """
    draw = Random(f"passage {seed}")
    layers, units = draw.randint(3, 8), draw.randint(2, 4)
    while True:
        problem = random_problem(seed, layers=layers, units=units).with_data(Passage())
        costly = any(problem.formulation.terms[term].costly for term in problem.ranking)
        most = 600 if costly or _waits(problem) else 10_000
        if count_plans(problem) <= most:
            return problem
        layers, units = (layers, units - 1) if units > 2 else (layers - 1, units)


DRAWN: dict[str, tuple[str, Callable[[int], Problem]]] = {
    "passage": ("networks whose units come again", passage_problem),
    "schedules": ("schedules of several requests", any_schedule),
    "pipelines": ("pipelines over devices", pipeline_instances.restricted_problem),
    "groups": ("networks over groups of devices or units", any_groups),
    "parts": ("graphs in convex parts", any_parts),
    "tasks": ("networks whose layers run side by side", small_tasks),
}
"""What can be drawn: what it is called, and the problem of a seed."""


def _waits(problem: Problem) -> bool:
    """Return whether limits or rules are about what requests wait."""
    return bool(problem.opaque_demands - {rule.name for rule in problem.opaque_rules})


def _listed(backend: str, limit_s: float, top: int, draw: Callable[[int], Problem], seed: int) -> SolveResult:
    return _proved(draw(seed), backend, limit_s, top)


def _kinds(problem: Problem) -> Iterator[str]:
    """Yield what an instance asks, and how large it is."""
    yield from (str(feature) for feature in problem.features)
    if isinstance(problem.data, Jobs):
        yield from (f"passage {problem.data.passage.partition(':')[0]}", f"cuts {problem.data.cuts}")
        yield f"{len(problem.data.requests)} requests"
        yield "cap of slowdown" if problem.tables.losses.capped else "no cap of slowdown"
        if any(problem.tables.losses.sliced):
            yield "slowdown by slice"
    else:
        yield f"{len(problem.network.layers)} layers"
    yield f"{len(problem.platform.units)} units"
    if _waits(problem):
        yield "limits or rules of waits"
    if any(problem.formulation.terms[term].costly for term in problem.ranking):
        yield "terms of waits"


def _compared(problem: Problem, result: SolveResult, reference: SolveResult) -> str:
    """Return "equal", "open" for one that had no time to prove its list, or "differ"."""
    whole = reference.stop is StopReason.COMPLETE
    plans, known = (_lists(problem, each) for each in (result, reference))
    if result.stop is StopReason.COMPLETE and whole:
        same = (result.status, result.values, result.bound) == (
            reference.status,
            reference.values,
            reference.bound,
        )
        # Whoever finds no plan and says no more than that contradicts nobody who proves that there is none.
        none = {result.status, reference.status} == {SolveStatus.NO_SOLUTION, SolveStatus.INFEASIBLE}
        return "equal" if same and plans == known else "open" if none else "differ"
    agrees = _agrees(result, reference) and plans[: result.proven] == known[: result.proven]
    return "open" if agrees or not whole else "differ"


def _drawn(seed: int, plans: int) -> Iterator[int]:
    """Yield the seeds of crowded workloads with few plans."""
    for each in count(seed):
        problem = crowded_workload(each)
        if shop_of(problem).losses.capped and count_plans(problem) <= plans:
            yield each


def _agrees(result: SolveResult, reference: SolveResult) -> bool:
    """Return whether a proof says what that of the reference says, and what is none does not deny it."""
    if reference.status is not SolveStatus.OPTIMAL or reference.values is None:
        return True
    if result.status is SolveStatus.OPTIMAL:
        return (result.values, result.bound) == (reference.values, reference.values[0])
    late = result.values is None or result.values >= reference.values
    below = result.bound is None or result.bound <= reference.values[0]
    return result.status is not SolveStatus.INFEASIBLE and late and below


def _said(result: SolveResult) -> str:
    return f"{result.status}, {result.values}, bound {result.bound}"


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
    """Return the proven plans with their terms; where nothing tells equal ones apart, the terms of all plans.

    Of the last plans with equal terms it is not proved there that they are those which come first.
    """
    if problem.data is None or isinstance(problem.data, Passage):
        return [(c.plan, c.score.values(problem.ranking)) for c in result.candidates[: result.proven]]
    return [c.score.values(problem.ranking) for c in result.candidates]


if __name__ == "__main__":
    sys.exit(main())
