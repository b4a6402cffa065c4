"""What a static plan that adapts is worth: `python -m benchmarks.adaptive`.

    python -m benchmarks.adaptive                           # simulated: streams on phones, a unit that leaves
    python -m benchmarks.adaptive --here --seconds 18       # a served plan here, a core throttled meanwhile

Simulated: requests of one or two networks come at random times at a share of the rate at which the plan says
that the units are full; the NPU is away in the middle third, or not. Answers within the time, and how long
they took in the median.

`--here`: the best plan of a profiled network over two cores is served at a share of its rate, while one core
is held back by a quota in the middle third of the time. Each row serves it in another way, one after the
other: as it is, by a plan that adapts, and by `lst`. Latencies are medians and 99th percentiles before,
during and after; what the policy notices is said with its second. What was asked is answered, refused because
too many waited, or lost; more answers of units than of futures would be answers given twice. Needs the
permission to set quotas.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import replace
from statistics import median

from rich.console import Console
from rich.table import Table

import gapless
from gapless.api.coordination import given_setting
from gapless.api.coordinators import open_coordinator
from gapless.api.device import this_device
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.requests import Served
from gapless.executor.coordination.tally import Fate
from gapless.executor.machine.quota import CpuQuota
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.record import percentile
from gapless.formulations.coordination.scenario import (
    Application,
    Arrivals,
    Scenario,
    UnitChange,
    UnitEvent,
)
from gapless.formulations.deployment import Deployment
from gapless.formulations.errors import RefusedRequestError
from gapless.formulations.operation import operation_of
from gapless.formulations.problem import Problem
from gapless.solvers.coordination.adaptive import Adaptive
from gapless.solvers.coordination.policies import make_policy

POLICIES = ("lst", "sel", "adaptive")
STREAMS = (
    ("pixel4", "efficientdet-lite0"),
    ("pixel4", "fsrnet"),
    ("pixel4", "fsrnet,retinaface"),
    ("galaxy-s20", "retinaface"),
)
LOADS = (0.7, 0.9, 1.1)
SECONDS = 6


def main() -> None:
    """Print one of the two tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--load", type=float, default=0.8, help="of the rate that the plan predicts")
    parser.add_argument("--seconds", type=float, default=18.0, help="for each row")
    parser.add_argument(
        "--left", type=int, default=300, help="permille of the time of the core that is held back"
    )
    options = parser.parse_args()
    console = Console(width=150)
    if options.here:
        _here(console, options)
    else:
        console.print(_simulated())


def _simulated() -> Table:
    table = Table(title=f"Answers within {SECONDS} s, and their median latency in ms", title_justify="left")
    for name in ("phone", "networks", "NPU", "load", "requests", *POLICIES, "changes of the plan"):
        table.add_column(name, justify="left" if name in {"phone", "networks", "NPU"} else "right")
    away = (
        UnitEvent(at_us=SECONDS * 333_333, unit="npu", change=UnitChange.LOST),
        UnitEvent(at_us=SECONDS * 666_667, unit="npu", change=UnitChange.BACK),
    )
    for phone, networks in STREAMS:
        for load in LOADS:
            for said, events in (("there", ()), ("away", away)):
                table.add_row(phone, networks, said, f"{load:.0%}", *_cells(phone, networks, load, events))
    return table


def _cells(phone: str, networks: str, load: float, events: Sequence[UnitEvent]) -> Iterator[str]:
    names = networks.split(",")
    probe = Adaptive()
    burst = Application(name="burst", network=names[0], arrivals=Arrivals(at_us=(0, 100_000)))
    others = tuple(
        Application(name=name, network=name, arrivals=Arrivals(at_us=(0, 100_000))) for name in names[1:]
    )
    asked = Scenario(name="probe", duration_us=200_000, applications=(burst, *others))
    setting = given_setting(phone, asked)
    play(setting, asked, probe)
    rate = 1e6 / probe.changes[0].work_us * load / len(names)
    applications = tuple(
        Application(name=name, network=name, arrivals=Arrivals(rate_per_s=rate)) for name in names
    )
    scenario = Scenario(
        name="stream", duration_us=SECONDS * 10**6, applications=applications, events=tuple(events)
    )
    cells: list[str] = []
    changes = 0
    for name in POLICIES:
        policy = make_policy(name)
        record = play(setting, scenario, policy)
        ends = [(r.end_us - r.arrival_us, r.end_us) for r in record.requests if r.end_us is not None]
        answered = [latency for latency, end in ends if end <= SECONDS * 10**6]
        cells.append(f"{len(answered):,} / {median(answered) / 1000:,.0f}")
        changes = len(policy.changes) if isinstance(policy, Adaptive) else changes
    yield f"{len(record.requests):,}"
    yield from cells
    yield str(changes)


def planned_here(model: str) -> tuple[Problem, Deployment, float]:
    """Return the best plan of a network over two cores of this machine, and its rate in requests/s."""
    device = this_device()
    chosen = tuple(unit for unit in device.units if unit.name in {"core0", "core1"})
    units = replace(device, units=chosen)
    profile = gapless.profile(model, platform=units, engine="mnn", methods=("isolated",))
    problem = gapless.profiled_problem(profile, costs="isolated")
    found = gapless.plan(problem)
    assert found.plan is not None
    plan = operation_of(problem).deploy(problem, found.plan)
    assert found.objective is not None  # the period
    return problem, plan, 1e6 / found.objective


def _here(console: Console, options: argparse.Namespace) -> None:
    problem, plan, full = planned_here(options.model)
    rate = options.load * full
    console.print(f"{options.model}: {rate:.0f} requests/s for {options.seconds:g} s each")
    table = Table(title="Latency in ms: median / 99th percentile", title_justify="left")
    for name in ("served", "before", "during", "after", "asked", "answered", "refused", "lost", "twice"):
        table.add_column(name, justify="left" if name == "served" else "right")
    for said, policy, held in (
        ("the plan as it is", "lst", plan),
        ("a plan that adapts", "adaptive", plan),
        ("lst", "lst", None),
    ):
        with open_coordinator(
            [options.model], problem=problem, plan=held, policy=policy, check=False
        ) as coordinator:
            begun_us, served, asked = stream(
                coordinator, options.model, rate, options.seconds, left=options.left
            )
            thirds: list[list[float]] = [[], [], []]
            for answer in served:
                place = int(3 * (answer.arrival_ns / 1000 - begun_us) / 1e6 / options.seconds)
                thirds[min(2, place)].append(answer.latency_us)
            cells = [
                f"{median(t) / 1000:.1f} / {(percentile(sorted(t), 990) or 0) / 1000:.1f}" for t in thirds
            ]
            counted = coordinator.statistics()
            given = counted.total(Fate.ANSWERED) + counted.total(Fate.LATE)
            refused = counted.total(Fate.REFUSED)
            counts = (asked, len(served), refused, asked - refused - len(served), given - len(served))
            table.add_row(said, *cells, *(f"{count:,}" for count in counts))
            if isinstance(coordinator.policy, Adaptive):
                for change in coordinator.policy.changes:
                    console.print(f"  {(change.at_us - begun_us) / 1e6:6.2f} s: {change}")
    console.print(table)
    third = options.seconds / 3
    console.print(f"core1 had {options.left / 10:g} % of its time from {third:g} to {2 * third:g} s")


def stream(
    coordinator: Coordinator, name: str, rate: float, seconds: float, *, left: int | None = None
) -> tuple[int, list[Served], int]:
    """Send requests at random times; hold core1 back in the middle third, to `left` permille.

    Returns when that began, in microseconds, the answers, and how many requests there were.
    """
    draw, inputs = random.Random(0), coordinator.registered[name].held.model.sample_inputs(0)
    answers: list[Future[Served]] = []
    worker = coordinator.pids["core1"]
    begun, due, asked = time.monotonic(), 0.0, 0
    with ExitStack() as quotas:
        held: list[int] = []
        while due < seconds:
            due += draw.expovariate(rate)
            time.sleep(max(0.0, begun + due - time.monotonic()))
            phase = int(3 * due / seconds)
            if left is not None and phase != len(held) and phase < 3:
                permille = left if phase == 1 else 1000
                quota = CpuQuota.create(permille, cores=1)
                quotas.callback(quota.close)
                quota.add(worker)
                held.append(permille)
            asked += 1
            with suppress(RefusedRequestError):
                answers.append(coordinator.submit(name, inputs))
        served = [answer.result() for answer in answers]
        coordinator.close()  # a group can only be removed when its worker has ended
    return int(begun * 1e6), served, asked


if __name__ == "__main__":
    main()
