"""Several requests on any unit at any time, measured on this machine: `python -m benchmarks.schedules_here`.

The units are two cores that are made unlike: core1 gets half of its time, and core0, which stands for an NPU,
lacks Softmax and LayerNormalization. Three networks are profiled on both; their requests are planned and run:

any        requests may come back to units
once       each unit at most once for a request, each unit with an order of its own
ordered    Hetero2Pipe's class: each unit once, in the order of the platform, all requests in one order
sel, lst   what Band's policies decide
core1      everything on core1, one request after the other: the only unit that runs all layers

Outputs of all of them are compared with those of the uncut models. Then they are measured in turns, round
after round. Needs the permission to set quotas. Options: `--rounds 5`, `--seconds 1` (for each visit),
`--requests deit-tiny,squeezenet,mobilenetv2`, `--limit 5` (seconds to plan).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from rich.console import Console

import gapless
from benchmarks.passage_here import ENGINE, SHORT, Case, measured, unlike_cores
from benchmarks.printing import WIDTH, show, titled
from gapless.executor.measurement import Measurement
from gapless.executor.runner import Verification
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Plan, comes_back
from gapless.formulations.problem import Problem
from gapless.formulations.workload import requests_of
from gapless.profiler.zoo.catalog import zoo_names

LACKS = "Softmax", "LayerNormalization"
"""What core0 cannot run."""

REQUESTS = "deit-tiny,squeezenet,mobilenetv2"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--requests", default=REQUESTS)
    parser.add_argument("--limit", type=float, default=5.0)
    asked = parser.parse_args(arguments)
    begins_s = time.monotonic()
    problem = profiled(asked.requests)
    cases = list(_cases(problem, asked.limit))
    found = measured(problem, cases, rounds=asked.rounds, seconds=asked.seconds)
    table = titled(
        f"{asked.requests}; core0 without {', '.join(LACKS)}; {asked.rounds} rounds",
        "what",
        "chunks",
        "predicted ms",
        "makespan ms",
        "least - most",
        "measured / predicted",
        "workers MiB",
        "error",
    )
    for case in cases:
        table.add_row(*_row(case, *found[case.name]))
    console = Console(width=WIDTH)
    show(console, table)
    console.print(f"{time.monotonic() - begins_s:.0f} s; load at the end {os.getloadavg()[0]:.1f}")


def profiled(text: str) -> Problem:
    """Profile the networks of a workload on unlike cores, and return its problem."""
    requests = requests_of(text, zoo_names())
    taken = gapless.profile_together(
        list(dict.fromkeys(request.network for request in requests)),
        platform=unlike_cores(LACKS),
        engine=ENGINE,
        options=SHORT,
    )
    return gapless.with_workload(taken.problem, text)


def _cases(problem: Problem, limit_s: float) -> Iterator[Case]:
    for passage in ("any", "once"):
        schedules = gapless.with_passage(problem, passage)
        yield from _case(passage, schedules, gapless.plan(schedules, time_limit_s=limit_s).plan)
    yield from _case("ordered", problem, gapless.plan(problem, time_limit_s=limit_s).plan)
    schedules = gapless.with_passage(problem)
    for policy in ("sel", "lst"):
        yield from _case(policy, schedules, gapless.plan(schedules, backend=policy).plan)
    for name, deployment in operation_of(problem).baselines(problem, [("core1",)]):
        plan = deployment.plan
        assert plan is not None
        yield replace(next(_case(name, problem, plan)), name="core1")


def _case(name: str, problem: Problem, plan: Plan | None) -> Iterator[Case]:
    if plan is not None:
        predicted_us = score(problem, plan).makespan_us
        deployment = operation_of(problem).deploy(problem, plan)
        yield Case(name=name, deployment=deployment, predicted_us=predicted_us)


def _row(case: Case, verification: Verification, taken: Sequence[Measurement]) -> list[str]:
    """Return the cells of a case."""
    makespans = [one.makespan_us.median / 1000 for one in taken if one.makespan_us is not None]
    streams = case.deployment.streams
    back = sum(comes_back(stream.chunks) for stream in streams)
    assert case.predicted_us is not None
    return [
        case.name,
        f"{sum(len(stream.chunks) for stream in streams)}{f', {back} back' if back else ''}",
        f"{case.predicted_us / 1000:.2f}",
        f"{median(makespans):.2f}",
        f"{min(makespans):.2f} - {max(makespans):.2f}",
        f"{1000 * median(makespans) / case.predicted_us:.3f}",
        f"{max(sum(unit.rss_bytes for unit in one.units) for one in taken) / 2**20:.0f}",
        "-" if verification.worst_error is None else f"{verification.worst_error:.0e}",
    ]


if __name__ == "__main__":
    main()
