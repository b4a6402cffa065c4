"""What the freedom of the order of layers is worth: planned with a bound each, and measured in turns.

    python -m benchmarks.layer_order                               # estimated phone, estimated cluster
    python -m benchmarks.layer_order --here                        # layers measured here, plans run here
    python -m benchmarks.layer_order --here googlenet --emulate core1=50%

fixed cuts the given order of the layers, best an order that is chosen (`with_layer_order`), free the graph
itself (convex parts). Of each plan both periods are shown: as chunks (copies of all that is alive at a
boundary) and as parts (copies of what a part touches); compare within a column. With --here the three plans
and replicas (the whole network on each core) run in turns; ratios are medians over the rounds against the
fixed order in the same round, with their range. Numbers are compared with those of the uncut model.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rich.console import Console
from rich.table import Table

import gapless
from benchmarks.arguments import parse_emulation
from gapless.answers.words import gap, millis
from gapless.api.branching import branching
from gapless.api.layer_orders import OrderResult, compare_layer_orders
from gapless.api.problems import with_pipelines
from gapless.executor.engines.registry import get_engine
from gapless.executor.model import Model
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment, replicas
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.profiler.profile import ProfileOptions
from gapless.solvers.protocol import SolveOptions

NETWORKS = ("squeezenet", "googlenet", "inceptionv3", "nasnet-single", "two-tower", "lstm-attention")


def main() -> int:
    """Print the tables; return 1 if numbers are wrong, or a plan is better than a bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--here", nargs="*", metavar="NETWORK", help="measure and run these; none: all")
    parser.add_argument("--platform", default="kirin990")
    parser.add_argument("--cluster", default="raspberry-pis")
    parser.add_argument("--engine", default="onnxruntime")
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--emulate", nargs="*", metavar="UNIT=SHARE")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of each solve")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each visit")
    options = parser.parse_args()
    console = Console(width=150)
    console.print(f"load {' '.join(f'{load:.2f}' for load in os.getloadavg())}")
    if options.here is None:
        problems = (*_phone(options.networks, options.platform), *_cluster(options.networks, options.cluster))
        return _planned(problems, options.limit, console)
    return max(_run(name, options, console) for name in options.here or options.networks)


def _phone(names: Sequence[str], platform: str) -> Iterator[tuple[str, Problem]]:
    for name in names:
        try:
            problem = gapless.load_workload(name, platform=platform, passage="ordered")
        except InvalidInputError as error:
            print(f"{name} is left out on {platform}: {error}")
            continue
        yield platform, replace(problem, data=None, objective=gapless.Objective(terms=("period",)))


def _cluster(names: Sequence[str], cluster: str) -> Iterator[tuple[str, Problem]]:
    for name in names:
        yield (
            cluster,
            with_pipelines(gapless.clusters.cluster_problem(name, cluster), "one", objective="period"),
        )


def _planned(problems: Sequence[tuple[str, Problem]], limit_s: float, console: Console) -> int:
    table = Table(
        title="Planned; ms; bound: no plan of that order is better, by the costs of that kind of plan"
    )
    numbers = ("layers", "width", "down-sets", "objective", "bound", "gap", "as chunks", "as parts")
    for column in ("platform", "network", "order", *numbers):
        table.add_column(column, justify="right" if column in numbers else "left")
    wrong = 0
    for platform, problem in problems:
        found = compare_layer_orders(problem, options=SolveOptions(time_limit_s=limit_s))
        wrong += _rows(table, platform, problem, found)
        table.add_section()
    console.print(table)
    return int(wrong > 0)


def _rows(table: Table, where: str, problem: Problem, found: Sequence[OrderResult]) -> int:
    """Add a row for each order; return how many periods are below a bound."""
    graph, wrong = branching(problem), 0
    sets = f"> {graph.counted_to:,}" if graph.down_sets is None else f"{graph.down_sets:,}"
    names = (where, problem.network.name)
    sizes = (str(len(problem.network.layers)), str(graph.width), sets)
    for one in found:
        if one.result is None or one.plan is None:
            table.add_row(*names, one.order, *sizes, one.failure or str(one.result and one.result.status))
            continue
        objective, bound = one.result.objective, one.result.bound
        wrong += objective is not None and bound is not None and objective < bound
        periods = (objective, bound, one.chunks_us, one.parts_us)
        shown = ["-" if us is None else millis(us) for us in periods]
        table.add_row(*names, one.order, *sizes, *shown[:2], gap(one.result.gap), *shown[2:])
    return wrong


@dataclass(frozen=True)
class Raced:
    """What was measured of one plan: a period for each round, and how far its numbers are off."""

    name: str
    deployment: Deployment
    foretold_us: int | None
    periods_us: tuple[float, ...]
    error: str
    right: bool


def _run(name: str, options: argparse.Namespace, console: Console) -> int:
    model = gapless.open_model(name)
    emulate = parse_emulation(options.emulate)
    device = gapless.this_device(units=options.units.split(","), emulate=emulate, engine=options.engine)
    profile = gapless.profile(
        model, platform=device, engine=options.engine, options=ProfileOptions(most_far=2.0)
    )
    problem = gapless.profiled_problem(profile)
    problem = replace(problem, objective=gapless.Objective(terms=("period",)))
    limit = SolveOptions(time_limit_s=options.limit)
    found = compare_layer_orders(problem, options=limit)
    table = Table(title=f"{name} planned on {options.units}, {options.engine}; ms")
    numbers = ("layers", "width", "down-sets", "objective", "bound", "gap", "as chunks", "as parts")
    for column in ("units", "network", "order", *numbers):
        table.add_column(column, justify="right" if column in numbers else "left")
    wrong = _rows(table, options.units, problem, found)
    console.print(table)
    raced = _raced(model, problem, found, options)
    console.print(_measured_table(name, raced))
    console.print(_words(raced), style="bold")
    return int(wrong > 0 or not all(one.right for one in raced))


def _raced(
    model: Model, problem: Problem, found: Sequence[OrderResult], options: argparse.Namespace
) -> list[Raced]:
    """Run the plans and replicas in turns; a plan that is the same as another one is that one."""
    plans: dict[str, tuple[list[str], Deployment, int | None]] = {}
    for one in found:
        if one.problem is not None and one.plan is not None:
            deployment = _in_file_order(one.problem, operation_of(one.problem).deploy(one.problem, one.plan))
            entry = plans.setdefault(
                deployment.deployment_id, ([], deployment, one.result.objective if one.result else None)
            )
            entry[0].append(one.order)
    whole = replicas(problem.network.name, len(problem.network.layers), problem.platform.unit_names)
    plans.setdefault(whole.deployment_id, (["replicas"], whole, None))
    engine, budget = get_engine(options.engine), Budget(seconds=options.seconds)
    periods: dict[str, list[float]] = {key: [] for key in plans}
    with PipelineRunner(
        {problem.network.name: model}, problem.platform, engine, max_open=len(plans)
    ) as runner:
        checked = {key: runner.verify(deployment) for key, (_, deployment, _) in plans.items()}
        for round_ in range(options.rounds):
            keys = list(plans) if round_ % 2 == 0 else list(plans)[::-1]
            for key in keys:
                periods[key].append(runner.measure(plans[key][1], budget).period_us)
    return [
        Raced(
            name=" = ".join(names),
            deployment=deployment,
            foretold_us=foretold,
            periods_us=tuple(periods[key]),
            error="-" if checked[key] is None else f"{checked[key].largest_error:.1e}",
            right=checked[key] is not None and checked[key].largest_error <= checked[key].tolerance,
        )
        for key, (names, deployment, foretold) in plans.items()
    ]


def _in_file_order(problem: Problem, deployment: Deployment) -> Deployment:
    """Return a deployment of a network in another order as one of the model as it lies in its file."""
    order = problem.network.order
    return replace(deployment, streams=tuple(replace(s, order=s.order or order) for s in deployment.streams))


def _measured_table(name: str, raced: Sequence[Raced]) -> Table:
    fixed = raced[0].periods_us
    table = Table(title=f"{name} measured, {len(fixed)} rounds in turns")
    for column in ("plan", "period ms", "against fixed", "from", "to", "predicted ms", "largest error"):
        table.add_column(column, justify="left" if column == "plan" else "right")
    table.add_column("layers by their numbers in the file")
    for one in raced:
        ratios = [own / base for own, base in zip(one.periods_us, fixed, strict=True)]
        table.add_row(
            one.name,
            f"{median(one.periods_us) / 1000:.2f}",
            *(f"{ratio:.3f}" for ratio in (median(ratios), min(ratios), max(ratios))),
            "-" if one.foretold_us is None else millis(one.foretold_us),
            one.error,
            str(one.deployment),
        )
    return table


def _words(raced: Sequence[Raced]) -> str:
    """Say honestly what freedom is worth here."""
    fixed, others = raced[0], [one for one in raced[1:] if one.name != "replicas"]
    if not others:
        return "Every order has the same best plan: the freedom of the order is worth nothing here."
    words = []
    for one in others:
        ratios = [own / base for own, base in zip(one.periods_us, fixed.periods_us, strict=True)]
        sure = max(ratios) < 1 or min(ratios) > 1
        change = 100 * (median(ratios) - 1)
        shown = f"{abs(change):.1f} % {'shorter' if change < 0 else 'longer'}"
        words.append(f"{one.name}: {shown if sure else 'no difference beyond noise'}")
    return "Against the fixed order, measured: " + "; ".join(words) + "."


if __name__ == "__main__":
    sys.exit(main())
