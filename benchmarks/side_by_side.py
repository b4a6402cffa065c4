"""Layers side by side: predicted latency of one request against single units, and how soon it is proved.

    python -m benchmarks.side_by_side                                  # estimated tables of a phone
    python -m benchmarks.side_by_side --segments branches --backends native cpsat z3 pulp
    python -m benchmarks.side_by_side --here inceptionv3 two-tower     # layers measured, and plans run, here
    python -m benchmarks.side_by_side --agree 200                      # small graphs against brute force

Of this machine: its cores one by one, and all of them with all threads as one more unit, which takes turns
with the cores. Layers are measured alone; what two of them slow each other down is not in the prediction, nor
is what a runtime takes to hand tensors over. The best schedules run then, also those of two units at least,
beside all threads on one unit, single cores, and chunks one after the other, in turns; numbers are compared
with those of the uncut model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from statistics import median
from time import perf_counter

from rich.console import Console
from rich.table import Table

import gapless
from gapless.api.engines import engines_of
from gapless.api.execution import models_for
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.executor.tuning.candidates import (
    TuningCandidate,
    baselines,
    plan_candidates,
    predicted,
    without_duplicates,
)
from gapless.formulations.jobs.reach import Reach
from gapless.formulations.jobs.tasks import tables_of
from gapless.formulations.judge import check, score
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.profiler.profile import ProfileOptions
from gapless.solvers.protocol import SolveOptions
from gapless.solvers.session import solve
from tests.task_graph_instances import least_latency, small_tasks

NETWORKS = ("squeezenet", "googlenet", "resnet50", "inceptionv4")
TOWERS = ("googlenet", "bert")


def main() -> int:
    """Print the table; return 1 if two proofs contradict each other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", default="kirin990")
    parser.add_argument("--here", nargs="+", metavar="NETWORK", help="measure these on this machine instead")
    parser.add_argument("--segments", nargs="+", default=["branches", "layers"])
    parser.add_argument("--backends", nargs="+", default=["native", "cpsat"])
    parser.add_argument("--seconds", type=float, default=10.0, help="time limit of each solve")
    parser.add_argument("--agree", type=int, metavar="N", help="compare N random small graphs instead")
    parser.add_argument("--engine", default="mnn", help="who runs the layers on this machine")
    parser.add_argument("--rounds", type=int, default=5, help="turns in which plans run on this machine")
    parser.add_argument("--turn", type=float, default=1.0, help="seconds of each turn")
    options = parser.parse_args()
    if options.agree is not None:
        return _agree(options.agree, options.backends)
    if options.here:
        return _run_here(options)
    table = Table(title="Latency in ms; * proved, with the seconds of the whole call")
    left = ("network", "tasks are", "alone")
    for column in (*left, "tasks", "longest path", *options.backends, "gain"):
        table.add_column(column, justify="left" if column in left else "right")
    wrong = 0
    for name, problem in _estimated(options.platform):
        for segments in options.segments:
            found = gapless.graphs.with_side_by_side(problem, segments=segments)
            wrong += _row(table, (name, segments), found, options.backends, options.seconds)
    Console(width=150).print(table)
    return int(wrong > 0)


def _row(table: Table, names: tuple[str, str], problem: Problem, backends: list[str], seconds: float) -> bool:
    """Add the row of a problem; return whether proofs contradict each other."""
    tables = tables_of(problem)
    order = range(tables.task_count)
    alone = {
        tables.units[unit]: score(problem, problem.formulation.plan(problem, code)).value("latency")
        for unit in range(tables.unit_count)
        if all(unit in own for own in tables.allowed)
        for code in [tables.scheduled([unit] * tables.task_count, order)]
    }
    answers, proved, best = [], set(), min(alone.values())
    for backend in backends:
        began = perf_counter()
        result = solve(problem, backend, SolveOptions(time_limit_s=seconds), explain=False)
        took = perf_counter() - began
        done = result.objective is not None and result.objective == result.bound
        proved |= {result.objective} if done else set()
        best = min(best, result.objective or best)
        gap = "*" if done else f" >= {_ms(result.bound or 0)}"
        answers.append(f"{_ms(result.objective or 0)}{gap} {took:.1f} s")
    least = min(alone.values())
    shown = ", ".join(f"{unit} {_ms(us)}" for unit, us in alone.items())
    longest = _ms(Reach(tables=tables).longest_us)
    gain = f"{100 * (1 - best / least):.1f} %"
    table.add_row(*names, shown, str(tables.task_count), longest, *answers, gain)
    return len(proved) > 1


def _ms(us: int) -> str:
    return f"{us / 1000:.2f}"


def _estimated(platform: str) -> Iterator[tuple[str, Problem]]:
    """Yield networks on the estimated units of a phone, and two of them that a last layer joins."""
    found = {name: _of_phone(name, platform) for name in dict.fromkeys((*NETWORKS, *TOWERS))}
    for name in NETWORKS:
        yield name, found[name]
    yield "two towers: " + " and ".join(TOWERS), _joined(*(found[name] for name in TOWERS))


def _of_phone(name: str, platform: str) -> Problem:
    problem = gapless.load_workload(name, platform=platform, passage="ordered")
    return replace(problem, data=None, objective=gapless.Objective(terms=("period",)))


def _joined(one: Problem, other: Problem) -> Problem:
    """Return both networks as one; a layer that costs what the last of them costs joins them."""
    networks = one.network, other.network
    counts = [len(network.layers) for network in networks]
    last = sum(counts)
    layers = [
        replace(layer, name=f"{prefix}.{layer.name}")
        for prefix, network in zip("ab", networks, strict=True)
        for layer in network.layers
    ]
    tensors = [
        replace(
            tensor,
            name=f"{prefix}.{tensor.name}",
            source=tensor.source if tensor.source < 0 else tensor.source + shift,
            targets=tuple(last if target == count else target + shift for target in tensor.targets),
        )
        for prefix, network, shift, count in zip("ab", networks, (0, counts[0]), counts, strict=True)
        for tensor in network.tensors
    ]
    costs = [problem.costs.of(problem.network.name) for problem in (one, other)]
    copies = {
        field: (*first[:-1], *second[:-1], second[-1], second[-1]) if first else ()
        for field in ("transfer_in_us", "transfer_out_us")
        for first, second in [(getattr(costs[0], field), getattr(costs[1], field))]
    }
    times = (*costs[0].layer_us, *costs[1].layer_us, costs[1].layer_us[-1])
    network = replace(
        networks[0], name="towers", layers=(*layers, replace(layers[-1], name="join")), tensors=tuple(tensors)
    )
    table = replace(one.costs, networks=(replace(costs[0], network="towers", layer_us=times, **copies),))
    return replace(one, networks=(network,), costs=table)


def _run_here(options: argparse.Namespace) -> int:
    """Measure the layers of networks here, run the best schedules and what they have to beat, in turns."""
    for name in options.here:
        profile = gapless.profile(
            name, engine=options.engine, methods=("isolated",), options=ProfileOptions(most_far=2.0)
        )
        chain = gapless.profiled_problem(profile, costs="isolated")
        _print_runs(name, gapless.graphs.with_side_by_side(chain), options)
    return 0


def _print_runs(name: str, problem: Problem, options: argparse.Namespace) -> None:
    """Print what the best schedules and their rivals are predicted to take, and what they take, in turns."""
    contest = _contest(problem, options)
    with ExitStack() as stack:
        models = models_for(problem)
        found, platform = engines_of(problem, options.engine, *models.values())
        runner = stack.enter_context(PipelineRunner(models, platform, found, max_open=len(contest)))
        errors = [runner.verify(one.deployment).largest_error for one in contest]
        turns: list[list[float]] = [[] for _ in contest]
        shares = []
        for _ in range(options.rounds):
            for own, one in zip(turns, contest, strict=True):
                run = runner.measure(one.deployment, Budget(seconds=options.turn, warm_up_requests=3))
                own.append(run.streams[0].latency_us.median)
                shares.append(run.machine.others if run.machine is not None else None)
    known = [share for share in shares if share is not None]
    load = f"; others kept {100 * median(known):.0f} % of the cores busy" if known else ""
    table = Table(title=f"{name}: latency in ms, median of {options.rounds} turns (least to most){load}")
    for column in ("what runs", "pieces", "predicted", "measured", "turns", "error"):
        table.add_column(column, justify="left" if column == "what runs" else "right")
    for one, own, error in zip(contest, turns, errors, strict=True):
        spread = f"{min(own) / 1000:.2f} to {max(own) / 1000:.2f}"
        pieces = str(len(one.deployment.streams[0].chunks))
        predicted = _ms(round(one.expected_us))
        table.add_row(one.label, pieces, predicted, f"{median(own) / 1000:.2f}", spread, f"{error:.1g}")
    Console(width=150).print(table)


def _contest(problem: Problem, options: argparse.Namespace) -> tuple[TuningCandidate, ...]:
    """Return single units, and the best plan of each backend for the problem and for each of its rivals."""
    tables = {"isolated": problem}
    found = [predicted(one, tables) for one in baselines(problem)]
    shapes = ("best schedule", "layers on two units", "branches on two units", "chunks in a row")
    rivals = (problem, *operation_of(problem).rivals(problem))
    for shape, rival in zip(
        shapes if len(rivals) == len(shapes) else [*shapes[:2], shapes[3]], rivals, strict=True
    ):
        limits = SolveOptions(time_limit_s=options.seconds)
        results = [solve(rival, backend, limits, explain=False) for backend in options.backends]
        plans = [(result.objective or 0, result.plan) for result in results if result.plan is not None]
        best = min(plans, key=lambda pair: pair[0])[1]
        (one,) = plan_candidates([best], tables=tables, planned=None if rival is problem else rival)
        found.append(replace(one, labels=(shape,)))
    return without_duplicates(found)


def _agree(count: int, backends: list[str]) -> int:
    """Compare backends with brute force on random small graphs."""
    differences = 0
    for seed in range(count):
        problem = small_tasks(seed)
        best = least_latency(problem)
        for backend in backends:
            result = solve(problem, backend, SolveOptions(), explain=False)
            bad = result.plan is not None and bool(check(problem, result.plan))
            if bad or result.objective != best:
                differences += 1
                print(f"seed {seed}: {backend} says {result.objective} ({result.status}), not {best}")
    print(f"{count} graphs, backends {', '.join(backends)}: {differences} differences")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
