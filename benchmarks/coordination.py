"""Coordination: how long decisions take, what losses of units do, and simulations beside this machine.

    python -m benchmarks.coordination
    python -m benchmarks.coordination --parts decisions,faults --losses 1000
    python -m benchmarks.coordination --parts here --scenario small-apps --seconds 20 --rounds 3

`decisions`: one decision of each policy with 1, 10 and 100 requests in the queue, on a phone that is busy but
for one unit. `faults`: units of a phone leave and return at random times while requests of random scenarios
come; every request must be answered once, and none before what it waits for. `here`: a scenario served by MNN
on this machine, and simulated by the times that each network took alone before; rounds in turns.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from statistics import median
from time import perf_counter_ns

from rich.console import Console
from rich.table import Table

import gapless
from gapless.api.coordinators import coordinate_here
from gapless.formulations.coordination.play import play
from gapless.formulations.coordination.policy import Conduct, UnitState, Waiting
from gapless.formulations.coordination.record import Record, percentile
from gapless.formulations.coordination.scenario import Scenario, UnitChange, UnitEvent
from gapless.formulations.coordination.setting import Setting
from gapless.formulations.coordination.times import Times
from gapless.profiler.coordination.catalog import scenario_names, shipped_scenario, shipped_setting
from gapless.solvers.coordination.policies import make_policy, policy_names

PARTS = ("decisions", "faults", "here")
_QUEUES = (1, 10, 100)
_FASTER = "replan"  # plans for milliseconds: the others are compared


def decisions(console: Console, phone: str) -> None:
    """Print the median and the 99th percentile of the time of a decision, microseconds."""
    scenario = shipped_scenario("four-apps")
    setting = shipped_setting(phone, scenario.networks)
    table = Table(title=f"four-apps on {phone}: one decision, us, median (99 %)")
    table.add_column("policy")
    for count in _QUEUES:
        table.add_column(f"{count} waiting", justify="right")
    for name in policy_names():
        cells = []
        for count in _QUEUES if name != _FASTER else ():
            took = sorted(_decision_ns(setting, name, count, Random(number)) for number in range(300))
            middle, most = percentile(took, 500), percentile(took, 990)
            cells.append(f"{(middle or 0) / 1000:.1f} ({(most or 0) / 1000:.1f})")
        table.add_row(name, *cells)
    console.print(table)


def _decision_ns(setting: Setting, name: str, count: int, random: Random) -> int:
    policy = make_policy(name)
    times = Times(setting.platform.unit_names, setting.network_times(policy))
    policy.begin(times, [1.0] * times.network_count)
    idle = random.randrange(len(setting.platform.units))
    units = [
        UnitState(running=0 if unit == idle else 1, wait_us=0 if unit == idle else random.randint(1, 30_000))
        for unit in range(len(setting.platform.units))
    ]
    queue = [
        Waiting(
            number=number,
            network=random.randrange(times.network_count),
            application=0,
            arrival_us=random.randint(0, 100_000),
            deadline_us=random.randint(100_000, 300_000),
        )
        for number in range(count)
    ]
    before_ns = perf_counter_ns()
    policy.next(100_000, queue, units, times)
    return perf_counter_ns() - before_ns


def faults(console: Console, phone: str, losses: int) -> int:
    """Lose units at random in simulations; return how many requests were lost or answered twice."""
    lost, answered, cut, wrong, seed = 0, 0, 0, 0, 0
    names = [name for name in policy_names() if name != _FASTER]
    used: Counter[str] = Counter()
    while lost < losses:
        random = Random(seed)
        scenario = shipped_scenario(random.choice([n for n in scenario_names() if n != "small-apps"]))
        scenario = replace(scenario, duration_us=1_000_000, seed=seed)
        setting = shipped_setting(phone, scenario.networks)
        events = tuple(_events(random, setting))
        policy = names[seed % len(names)]
        record = play(setting, replace(scenario, events=events), make_policy(policy))
        lost += sum(event.change is UnitChange.LOST for event in events)
        answered += len(record.requests)
        cut += sum(ran.cut_off for ran in record.ran)
        used[policy] += 1
        wrong += _wrong(record, setting, policy)
        seed += 1
    words = f"{lost} losses of units in {seed} scenarios under {len(used)} policies: {answered:,} requests, "
    console.print(
        f"{words}{cut:,} chunks cut off and run again; {wrong} requests lost, answered twice or early"
    )
    return wrong


def _events(random: Random, setting: Setting) -> Iterator[UnitEvent]:
    """Yield units that leave and return; the first CPU stays, so that everything can be served."""
    found = []
    for unit in setting.platform.unit_names[1:]:
        at_us = random.randint(1, 200_000)
        while at_us < 1_000_000:
            back_us = at_us + random.randint(1, 150_000)
            found.append(UnitEvent(at_us=at_us, unit=unit, change=UnitChange.LOST))
            found.append(UnitEvent(at_us=back_us, unit=unit, change=UnitChange.BACK))
            at_us = back_us + random.randint(1, 200_000)
    yield from sorted(found, key=lambda event: event.at_us)


def _wrong(record: Record, setting: Setting, policy: str) -> int:
    """Return how many requests were not answered, or by other sections than each once."""
    ends = {request.number: request.end_us for request in record.requests}
    whole = make_policy(policy).conduct is not Conduct.CHUNKS
    ran: dict[int, Counter[int]] = {number: Counter() for number in ends}
    starts: dict[int, float] = {}
    for each in record.ran:
        starts[each.request] = min(starts.get(each.request, each.start_us), each.start_us)
        if not each.cut_off:
            ran[each.request].update(range(each.first, each.last))
    wrong = 0
    for request in record.requests:
        counts = ran[request.number]
        sections = len(setting.sections[request.network])
        # A network that is placed whole begins anew when its unit is lost.
        once = all(counts[s] >= 1 if whole else counts[s] == 1 for s in range(sections))
        early = any((ends[n] or 0.0) > starts.get(request.number, 0.0) + 1e-6 for n in request.after)
        wrong += request.end_us is None or not once or early
    return wrong


def here(console: Console, scenario: Scenario, rounds: int) -> None:
    """Print what policies reach on this machine beside the simulation by the times measured before."""
    table = Table(
        title=f"{scenario.name} on this machine, {rounds} rounds of {scenario.duration_us / 1e6:g} s"
    )
    for title in ("policy", "", "in time", "median, ms", "90 %", "99 %", "decision, us"):
        table.add_column(title, justify="left" if title in ("policy", "") else "right")
    found: dict[tuple[str, str], list[Record]] = {}
    for number in range(rounds):
        asked = replace(scenario, seed=scenario.seed + number)
        measured, simulated = coordinate_here(asked, ["lst", "sel", "edf"])
        for how, served in (("measured", measured), ("simulated", simulated)):
            for record in served.records:
                found.setdefault((record.policy, how), []).append(record)
    for (policy, how), records in sorted(found.items()):
        shares = [record.share_in_time() for record in records]
        share = median(each for each in shares if each is not None) if any(shares) else None
        cells = [
            f"{median(percentile(r.latencies_us(), permille) or 0.0 for r in records) / 1000:.2f}"
            for permille in (500, 900, 990)
        ]
        took = median(percentile(sorted(r.decisions_ns), 500) or 0.0 for r in records)
        words = "-" if share is None else f"{100 * share:.1f} %"
        table.add_row(policy, how, words, *cells, f"{took / 1000:.1f}")
    console.print(table)


def main() -> int:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS), help="which of them, between commas")
    parser.add_argument("--platform", default="pixel4", help="a shipped phone")
    parser.add_argument("--losses", type=int, default=1000, help="of units, in simulations")
    parser.add_argument("--scenario", default="small-apps", help="what is served on this machine")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long its requests come")
    parser.add_argument("--rounds", type=int, default=3, help="how often")
    asked = parser.parse_args()
    console = Console()
    console.print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}, gapless {gapless.__version__}"
    )
    parts = asked.parts.split(",")
    if "decisions" in parts:
        decisions(console, asked.platform)
    wrong = faults(console, asked.platform, asked.losses) if "faults" in parts else 0
    if "here" in parts:
        scenario = gapless.coordination.shipped_scenario(asked.scenario)
        here(console, replace(scenario, duration_us=round(1e6 * asked.seconds)), asked.rounds)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
