"""EPipe's comparisons on its four device groups: `python -m benchmarks.epipe` (a minute).

Every planner plans on its own cost model and is judged on one table. Costs are *estimated* from operations
and bytes (`gapless list problems` says how): the devices were not there. So only ratios can be compared with
what the paper prints, and the paper's numbers stand beside ours, marked as such.

1. Single tasks (Fig. 7): items a second of each planner, as a share of the proven optimum.
2. One pipeline against several (Table 3, "EPipe" over "& TDC").
3. A task stream of 3000 items of each network (Fig. 6, Table 3): planned ahead, or profiled and planned when
   its turn comes, with the times that section 2.1 prints for ViT-Large (375.0 s and 18.1 s) for each.

Networks are cut between their Transformer layers, which are the layers that the paper counts; `--cuts all`
cuts behind every operator, where one pipeline can be balanced better.

Options: `--cases 1,2,3,4`, `--cuts blocks`, `--seed 1`, `--time-limit 10` (seconds for each planner).
"""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

import gapless
from gapless.api.clusters import cluster_problem
from gapless.formulations.errors import GaplessError
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.formulations.task_stream import PlanningTime, Task, play_stream
from gapless.solvers.families import family_of
from gapless.solvers.protocol import SolveOptions, SolveStatus
from gapless.solvers.session import solve

BATCHES = {"vit-large": 64, "bert-large": 48, "vit-huge": 64}
"""Networks in the order of the paper's stream, with the items of a batch (4.1)."""

ITEMS = 3000

PLANNING = PlanningTime(profile_us=375_000_000, idle_us=18_100_000)

PROFILING = ("pipeedge", "pipedream")
"""Planners that plan from measured times."""

PRINTED = {1: (1.92, 1.13, 2.71), 2: (1.76, 1.03, 2.08), 3: (2.57, 1.02, 2.90), 4: (2.41, 1.13, 3.22)}
"""Table 3 as printed: speed of "& TDC", "& MPP" and "EPipe" over the baseline, by case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a planner found for one network on one group of devices."""

    plan: Plan | None
    rate: float
    proven: bool
    why: str = ""


def answer(problem: Problem, backend: str, options: SolveOptions) -> Answer:
    """Let a backend plan; items a second are those of the judge."""
    try:
        result = solve(problem, backend, options)
    except GaplessError as error:
        return Answer(plan=None, rate=0.0, proven=False, why=str(error).splitlines()[0])
    if result.plan is None:
        return Answer(plan=None, rate=0.0, proven=False, why=str(result.status))
    score = result.candidates[0].score
    assert score.throughput is not None
    rate = score.throughput * problem.costs.batch
    return Answer(plan=result.plan, rate=rate, proven=result.status is SolveStatus.OPTIMAL)


def between_blocks(problem: Problem) -> Problem:
    """Return the problem with cuts between Transformer layers only."""
    network = problem.network
    block = [name.split(".")[0] for name in network.layer_names]
    inside = tuple(cut for cut in range(1, len(block)) if block[cut - 1] == block[cut])
    return replace(problem, networks=(replace(network, forbidden_cuts=inside),))


def planners(problem: Problem) -> Iterator[tuple[str, Problem, str]]:
    """Yield the name, the problem and the backend of each planner."""
    yield "several pipelines (native)", problem, "native"
    yield "one pipeline (native)", replace(problem, data=replace(problem.data, most=1)), "native"
    for name in family_of(problem.formulation.name).backends:
        yield name, problem, name


def single_tasks(found: dict[str, dict[str, Answer]], case: int) -> Table:
    """Return items a second of each planner, and its share of the optimum."""
    table = Table(title=f"case {case}: items/s, share of the optimum", title_justify="left")
    table.add_column("planner")
    for network in found:
        table.add_column(network, justify="right")
    for name in next(iter(found.values())):
        cells = []
        for answers in found.values():
            best, own = answers["several pipelines (native)"], answers[name]
            share = f"{100 * own.rate / best.rate:.1f} %" if best.proven else "not proven"
            cells.append(f"{own.rate:.3f}  {share}" if own.plan is not None else own.why[:40])
        table.add_row(name, *cells)
    return table


def stream_rate(
    problems: Sequence[Problem], plans: Sequence[Plan | None], planning: PlanningTime | None
) -> float:
    """Return items a second of the whole stream."""
    tasks = [
        Task(problem=problem, plan=plan, items=-(-ITEMS // problem.costs.batch))
        for problem, plan in zip(problems, plans, strict=True)
        if plan is not None
    ]
    return ITEMS * len(tasks) * 1e6 / play_stream(tasks, planning).makespan_us


def durations(problems: Sequence[Problem], found: dict[str, dict[str, Answer]]) -> dict[str, float | None]:
    """Return how long the stream takes with each planner, seconds (Fig. 6); None: a network has no plan.

    Who plans from measured times (PipeEdge, PipeDream) measures when a network's turn comes.
    """
    seconds: dict[str, float | None] = {}
    for name in next(iter(found.values())):
        plans = [answers[name].plan for answers in found.values()]
        planning = PLANNING if name in PROFILING else None
        rate = None if None in plans else stream_rate(problems, plans, planning)
        seconds[name] = None if rate is None else ITEMS * len(plans) / rate
    return seconds


def streams(problems: Sequence[Problem], found: dict[str, dict[str, Answer]], case: int) -> list[str]:
    """Return a row of the table like Table 3."""
    one, many = (
        [each[name].plan for each in found.values()]
        for name in ("one pipeline (native)", "several pipelines (native)")
    )
    if None in one or None in many:
        return [str(case), "a network has no plan"]
    rates = [
        stream_rate(problems, plans, planning)
        for plans, planning in ((one, PLANNING), (one, None), (many, PLANNING), (many, None))
    ]
    ratios = [rate / rates[0] for rate in rates[1:]]
    beside = zip(ratios, PRINTED[case], strict=True)
    gain = f"{rates[3] / rates[1]:.2f} / {PRINTED[case][2] / PRINTED[case][0]:.2f}"
    return [str(case), f"{rates[0]:.2f}", *(f"{ours:.2f} / {theirs:.2f}" for ours, theirs in beside), gain]


def main() -> None:
    """Plan, judge, play, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--cases", default="1,2,3,4")
    parser.add_argument("--cuts", choices=("blocks", "all"), default="blocks")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=10.0)
    asked = parser.parse_args()
    console = Console(width=150)
    options = SolveOptions(seed=asked.seed, time_limit_s=asked.time_limit)
    console.print(
        f"{platform.machine()}, Python {platform.python_version()}, gapless {gapless.__version__}; "
        "costs estimated"
    )
    ours = Table(
        title="task streams: items/s, then speed over the baseline, ours / the paper's", title_justify="left"
    )
    heads = ("case", "one pipeline, profiled", "planned ahead (& TDC)", "several, profiled (& MPP)")
    for head in (*heads, "several, ahead (EPipe)", "several over one, ahead"):
        ours.add_column(head, justify="right")
    lasting: dict[int, dict[str, float | None]] = {}
    for case in map(int, asked.cases.split(",")):
        named = (
            cluster_problem(network, f"epipe-case-{case}", batch=batch) for network, batch in BATCHES.items()
        )
        problems = [between_blocks(problem) if asked.cuts == "blocks" else problem for problem in named]
        found = {
            problem.network.name: {
                name: answer(own, backend, options) for name, own, backend in planners(problem)
            }
            for problem in problems
        }
        console.print(single_tasks(found, case))
        lasting[case] = durations(problems, found)
        ours.add_row(*streams(problems, found, case))
    whole = Table(title="task streams: seconds for 3000 items of each network (Fig. 6)", title_justify="left")
    whole.add_column("planner")
    for case in lasting:
        whole.add_column(f"case {case}", justify="right")
    for name in next(iter(lasting.values())):
        label = f"{name}, profiled in its turn" if name in PROFILING else name
        cells = (lasting[case][name] for case in lasting)
        whole.add_row(label, *("no plan" if each is None else f"{each:,.0f}" for each in cells))
    console.print(whole)
    console.print(ours)


if __name__ == "__main__":
    main()
