"""Plans that come back to a unit, measured on this machine: `python -m benchmarks.passage_here`.

The units are two cores that are made unlike: core1 gets half of its time (`--emulate core1=50%`; another
share with `--percent`, 100 is full speed), and core0, which stands for an NPU, lacks some operators of each
network. Each network is profiled, planned and run:

any, once     the best plan with any number of chunks per unit, and with one
by copies     that with any number where hops are predicted by their copies only (`Profile.hops` left out)
fallback      each layer on core0 if it can run it, else on core1
one unit      everything on the best unit of these two
all threads   everything on both cores with two threads: at full speed and with all operators, which these
              units are not; it says what the machine itself can do

Outputs of all of them are compared with those of the uncut model. Then they are measured in turns, round
after round; the plan that comes back also with fewer requests in flight. Needs the permission to set quotas,
unless core1 runs at full speed. Options: `--rounds 5`, `--seconds 1` (for each visit), `--only squeezenet`,
`--percent 50`.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from rich.console import Console

import gapless
from benchmarks.printing import WIDTH, show, titled
from gapless.api.execution import models_for, profiled_problem
from gapless.executor.engines.registry import get_engine
from gapless.executor.measurement import Measurement
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget, Verification
from gapless.formulations.deployment import Deployment
from gapless.formulations.hardware import Platform, UnitKind
from gapless.formulations.judge import score
from gapless.formulations.operation import operation_of
from gapless.formulations.plan import Chunk, Plan, comes_back
from gapless.formulations.problem import Problem
from gapless.formulations.streams import Stream
from gapless.profiler.profile import Method, Profile, ProfileOptions

ENGINE = "onnxruntime"
NETWORKS: Mapping[str, tuple[str, ...]] = {
    "deit-tiny": ("Softmax", "LayerNormalization"),
    "squeezenet": ("Concat",),
    "mobilenetv2": ("Add",),
}
"""What core0 cannot run of each network."""

FEW = (1, 2, 4, 8)
"""Requests in flight with which the plan that comes back is measured besides the planned number."""

SHORT = ProfileOptions(
    min_repetitions=5, min_seconds_per_item=0.03, warm_up_repetitions=2, checks=0, retries=0, most_far=2.0
)
PLAN_LIMIT_S = 5.0
BOTH = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Something that is measured.

    `predicted_us`, `memory_bytes`: by the plan, of the emulated units; None: it is not a plan for them.
    `by_copies_us`: what is predicted where hops cost their copies only.
    """

    name: str
    deployment: Deployment
    predicted_us: int | None = None
    by_copies_us: int | None = None
    memory_bytes: int | None = None


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each network."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(NETWORKS))
    parser.add_argument("--percent", type=int, default=50)
    asked = parser.parse_args(arguments)
    console = Console(width=WIDTH)
    for name in asked.only.split(","):
        begins_s = time.monotonic()
        taken, problem, cases = planned(name, asked.percent)
        found = measured(problem, cases, rounds=asked.rounds, seconds=asked.seconds)
        table = titled(
            f"{name}, core0 without {', '.join(NETWORKS[name])}, core1 at {asked.percent} %; "
            f"{asked.rounds} rounds",
            "what",
            "chunks",
            "in flight",
            "predicted ms",
            "by copies ms",
            "period ms",
            "least - most",
            "over busiest unit",
            "latency ms",
            "planned MiB",
            "workers MiB",
            "error",
        )
        for case in cases:
            table.add_row(*_row(case, *found[case.name]))
        show(console, table)
        load = os.getloadavg()[0]
        console.print(_hops(taken))
        console.print(f"{time.monotonic() - begins_s:.0f} s; load at the end {load:.1f}")


def planned(name: str, percent: int) -> tuple[Profile, Problem, list[Case]]:
    """Profile a network on unlike cores, and return the profile, its problem and what is measured."""
    platform = unlike_cores(NETWORKS[name], percent)
    taken = gapless.profile(name, platform=platform, engine=ENGINE, methods=(Method.HEAVY,), options=SHORT)
    problem = gapless.with_passage(profiled_problem(taken, costs=Method.HEAVY))
    return taken, problem, list(_cases(problem, without_hops(problem, [taken])))


def without_hops(problem: Problem, profiles: Sequence[Profile]) -> Problem:
    """Return a problem of measured costs in which hops cost their copies only."""
    tables = []
    for costs, profile in zip(problem.costs.networks, profiles, strict=True):
        hops = {fit.unit: round(fit.hop_us) for fit in profile.fits}
        first, *inside, last = costs.transfer_in_us
        rows = [
            tuple(max(0, us - hops[unit]) for us, unit in zip(row, problem.costs.units, strict=True))
            for row in inside
        ]
        tables.append(replace(costs, transfer_in_us=(first, *rows, last)))
    return replace(problem, costs=replace(problem.costs, networks=tuple(tables)))


def _hops(profile: Profile) -> str:
    costs = {fit.unit: f"{fit.hop_us:.0f} us to {fit.unit}" for fit in profile.fits}
    pairs = (
        f"{hop.source} to {hop.target}: {hop.hand_over_us:.0f} handed over, {hop.beyond_us:.0f} beyond"
        for hop in profile.hops
    )
    return f"a hop costs {', '.join(costs.values())} ({'; '.join(pairs)})"


def unlike_cores(lacks: tuple[str, ...], percent: int = 50) -> Platform:
    """Return core0, which lacks some operators, and core1 with a share of its time."""
    slow = {"core1": 10 * percent} if percent < 100 else {}
    units = gapless.this_device(engine=ENGINE, units=("core0", "core1"), emulate=slow)
    first, *others = units.units
    return replace(units, units=(replace(first, unsupported=lacks), *others))


def _cases(problem: Problem, by_copies: Problem) -> Iterator[Case]:
    once = gapless.with_passage(problem, "once")
    for name, kind, asked in (
        ("any", problem, problem),
        ("by copies", problem, by_copies),
        ("once", once, once),
    ):
        plan = gapless.plan(asked, time_limit_s=PLAN_LIMIT_S).plan
        assert plan is not None
        yield _case(name, kind, plan, by_copies)
        if name == "any":
            for slots in FEW:
                deployment = operation_of(kind).deploy(kind, plan, task_slots=slots)
                yield Case(name=f"any, {slots} in flight", deployment=deployment)
    units = problem.platform.units
    npu = replace(problem.platform, units=(replace(units[0], kind=UnitKind.NPU), *units[1:]))
    for backend in ("fallback", "one-unit"):
        plan = gapless.plan(replace(problem, platform=npu), backend=backend).plan
        if plan is not None:
            yield _case(backend.replace("-", " "), problem, plan, by_copies)
    chunk = Chunk(network=problem.network.name, start=0, stop=len(problem.network.layers), unit=BOTH)
    yield Case(
        name="all threads",
        deployment=Deployment(streams=(Stream(name=chunk.network, chunks=(chunk,)),)),
    )


def _case(name: str, problem: Problem, plan: Plan, by_copies: Problem) -> Case:
    judged = score(problem, plan)
    return Case(
        name=name,
        deployment=operation_of(problem).deploy(problem, plan),
        predicted_us=judged.period_us,
        by_copies_us=score(by_copies, plan).period_us,
        memory_bytes=judged.peak_bytes,
    )


def measured(
    problem: Problem, cases: Sequence[Case], *, rounds: int, seconds: float
) -> dict[str, tuple[Verification, list[Measurement]]]:
    """Compare the numbers of all cases, then measure them in turns."""
    whole = gapless.this_device(engine=ENGINE, units=(BOTH,))
    platform = replace(problem.platform, units=(*problem.platform.units, *whole.units))
    found: dict[str, tuple[Verification, list[Measurement]]] = {}
    with PipelineRunner(models_for(problem), platform, get_engine(ENGINE), max_open=len(cases)) as runner:
        for case in cases:
            found[case.name] = runner.verify(case.deployment), []
        for round_ in range(rounds):
            for case in cases if round_ % 2 == 0 else reversed(cases):
                warm_up = 2 * case.deployment.streams[0].slots
                budget = Budget(seconds=seconds, warm_up_requests=warm_up)
                found[case.name][1].append(runner.measure(case.deployment, budget))
    return found


def _row(case: Case, verification: Verification, taken: Sequence[Measurement]) -> list[str]:
    """Return the cells of a case."""
    periods = [one.period_us / 1000 for one in taken]
    ratios = [one.period_us / max(unit.busy_us for unit in one.units) for one in taken]
    latencies = [one.streams[0].latency_us.median / 1000 for one in taken]
    stream = case.deployment.streams[0]
    return [
        case.name,
        f"{len(stream.chunks)}{' back' if comes_back(stream.chunks) else ''}",
        str(stream.slots),
        *("-" if us is None else f"{us / 1000:.2f}" for us in (case.predicted_us, case.by_copies_us)),
        f"{median(periods):.2f}",
        f"{min(periods):.2f} - {max(periods):.2f}",
        f"{median(ratios):.3f}",
        f"{median(latencies):.1f}",
        "-" if case.memory_bytes is None else f"{case.memory_bytes / 2**20:.1f}",
        f"{max(sum(unit.rss_bytes for unit in one.units) for one in taken) / 2**20:.0f}",
        "-" if verification.worst_error is None else f"{verification.worst_error:.0e}",
    ]


if __name__ == "__main__":
    main()
