"""Several requests on any unit at any time, measured on this machine: `python -m benchmarks.schedules_here`.

The units are two cores that are made unlike: core1 gets half of its time, and core0, which stands for an NPU,
lacks Softmax and LayerNormalization. Three networks are profiled on both; their requests are planned and run:

any        requests may come back to units
by copies  the same where hops are predicted by their copies only (`Profile.hops` left out)
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
from benchmarks.passage_here import ENGINE, SHORT, Case, measured, unlike_cores, without_hops
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
    problem, by_copies = profiled(asked.requests)
    cases = list(_cases(problem, by_copies, asked.limit))
    found = measured(problem, cases, rounds=asked.rounds, seconds=asked.seconds)
    table = titled(
        f"{asked.requests}; core0 without {', '.join(LACKS)}; {asked.rounds} rounds",
        "what",
        "chunks",
        "predicted ms",
        "by copies ms",
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


def profiled(text: str) -> tuple[Problem, Problem]:
    """Profile the networks of a workload on unlike cores; return its problem, and the same without hops."""
    requests = requests_of(text, zoo_names())
    taken = gapless.costs.profile_together(
        list(dict.fromkeys(request.network for request in requests)),
        platform=unlike_cores(LACKS),
        engine=ENGINE,
        options=SHORT,
    )
    cheap = without_hops(taken.problem, taken.profiles)
    return gapless.with_workload(taken.problem, text), gapless.with_workload(cheap, text)


def _cases(problem: Problem, by_copies: Problem, limit_s: float) -> Iterator[Case]:
    schedules, cheap = gapless.with_passage(problem), gapless.with_passage(by_copies)
    once = gapless.with_passage(problem, "once")
    searched = {"any": schedules, "by copies": cheap, "once": once, "ordered": problem}
    for name, asked in searched.items():
        judged = schedules if name == "by copies" else asked
        yield from _case(name, judged, gapless.plan(asked, time_limit_s=limit_s).plan, cheap)
    for policy in ("sel", "lst"):
        yield from _case(policy, schedules, gapless.plan(schedules, backend=policy).plan, cheap)
    for _, deployment in operation_of(problem).baselines(problem, [("core1",)]):
        plan = deployment.plan
        assert plan is not None
        yield from _case("core1", problem, plan, by_copies)


def _case(name: str, problem: Problem, plan: Plan | None, by_copies: Problem) -> Iterator[Case]:
    if plan is not None:
        yield Case(
            name=name,
            deployment=operation_of(problem).deploy(problem, plan),
            predicted_us=score(problem, plan).makespan_us,
            by_copies_us=score(replace(problem, costs=by_copies.costs), plan).makespan_us,
        )


def _row(case: Case, verification: Verification, taken: Sequence[Measurement]) -> list[str]:
    """Return the cells of a case."""
    makespans = [one.makespan_us.median / 1000 for one in taken if one.makespan_us is not None]
    streams = case.deployment.streams
    back = sum(comes_back(stream.chunks) for stream in streams)
    assert case.predicted_us is not None
    assert case.by_copies_us is not None
    return [
        case.name,
        f"{sum(len(stream.chunks) for stream in streams)}{f', {back} back' if back else ''}",
        f"{case.predicted_us / 1000:.2f}",
        f"{case.by_copies_us / 1000:.2f}",
        f"{median(makespans):.2f}",
        f"{min(makespans):.2f} - {max(makespans):.2f}",
        f"{1000 * median(makespans) / case.predicted_us:.3f}",
        f"{max(sum(unit.rss_bytes for unit in one.units) for one in taken) / 2**20:.0f}",
        "-" if verification.worst_error is None else f"{verification.worst_error:.0e}",
    ]


if __name__ == "__main__":
    main()
