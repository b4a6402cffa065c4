"""How far bounds on the makespan of several networks are from good plans.

For the README's workload and random ones of 5 to 1,000 requests: the plan of the native search, how far the
price bound (which knows no slowdown) and the contention bound are below it, and how long both bounds took.

    python -m benchmarks.flow_bound
    python -m benchmarks.flow_bound --platforms kirin990,snapdragon870 --limit 5
    python -m benchmarks.flow_bound --agree 5000

`--agree N` enumerates all plans of N small random workloads with slowdown, memory, arrivals, deadlines,
rules, task slots, shared cores, both orders and both executions, and compares the least makespan, sum of
latencies and period with the bounds, and with what branch and price says where it applies: no bound may be
above, no proof wrong, and the command ends with 1 if one is.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from dataclasses import replace
from statistics import mean
from time import perf_counter

from rich.console import Console
from rich.table import Table

from benchmarks.workload_instances import small_workload
from gapless.formulations.flow_shop.space import all_schedules
from gapless.formulations.flow_shop.tables import shop_of
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.profiler.platforms.workloads import phone_network_names, shipped_workload
from gapless.solvers.flow_shop.search import JointSearch, Proof, objective_bound
from gapless.solvers.protocol import Deadline

README = "yolov4,bert,mobilenetv2x3"
SIZES = (5, 6, 8, 10, 20, 50, 100, 300, 1000)
TERMS = ("makespan", "latency", "period")


def main() -> int:
    """Print the table, or compare with all plans of small workloads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--platforms", type=lambda text: tuple(text.split(",")), default=("kirin990",))
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES)
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for the native search")
    parser.add_argument("--agree", type=int, default=0, help="how many small workloads to enumerate")
    options = parser.parse_args()
    console = Console(width=118)
    if options.agree:
        return _agree(console, options.agree)
    console.print(f"load {os.getloadavg()[0]:.1f}, limit {options.limit:g} s for the search")
    for platform in options.platforms:
        table = Table(title=platform, title_justify="left")
        for name in (
            "requests",
            "plan us",
            "price bound",
            "took s",
            "contention bound",
            "took s",
            "gap left",
        ):
            table.add_column(name, justify="right")
        for text in (README, *(_drawn(size) for size in options.sizes)):
            table.add_row(*_row(shipped_workload(platform, text), options.limit))
        console.print(table)
    return 0


def _drawn(size: int) -> str:
    """Return a workload of a given number of requests, each of any network."""
    return ",".join(random.Random(size).choices(phone_network_names(), k=size))


def _row(problem: Problem, limit_s: float) -> list[str]:
    alone = replace(problem, interference=None)
    started = perf_counter()
    price_us = objective_bound(alone.with_objective("period"))
    priced_s = perf_counter() - started
    bound_us = objective_bound(problem)
    took_s = perf_counter() - started - priced_s
    search = JointSearch(problem, deadline=Deadline(limit_s))
    search.run()
    best = search.kept.best
    assert best is not None
    gaps = [f"{100 * (1 - bound / best[1]):.1f} %" for bound in (price_us, bound_us)]
    left = f"{100 * (1 - max(search.bounds[0], bound_us) / best[1]):.1f} %"
    requests = str(shop_of(problem).request_count)
    return [requests, f"{best[1]:,}", gaps[0], f"{priced_s:.2f}", gaps[1], f"{took_s:.2f}", left]


def _agree(console: Console, count: int) -> int:
    """Compare the bounds of small workloads with their optima; return 1 if one is above."""
    wrong, tight, gaps, solved, proved = 0, 0, [], 0, 0
    for seed in range(count):
        problem = small_workload(seed)
        least = optima(problem, TERMS)
        solved += least is not None
        for term, value in zip(TERMS, least or (), strict=False):
            bound = objective_bound(problem.with_objective(term))
            if bound > value:
                wrong += 1
                console.print(f"seed {seed}: {term} is {value}, the bound says {bound}")
            if term == "makespan":
                gaps.append(1 - bound / value)
                tight += bound == value
        search = JointSearch(problem.with_objective("makespan"), proof=Proof.PRICED)
        if search.contexts and search.provable:
            done, best = search.prove(), search.kept.best
            proved += done
            if (done and (best and best[1]) != (least and least[0])) or (
                least and search.bounds[0] > least[0]
            ):
                wrong += 1
                console.print(
                    f"seed {seed}: makespan is {least}, branch and price says {best}, {search.bounds}"
                )
    console.print(
        f"{count} workloads, {solved} with plans: {wrong} bounds above the optimum; makespan: {tight} bounds "
        f"equal to it, mean gap {100 * mean(gaps):.1f} %, largest {100 * max(gaps):.1f} %; {proved} optima "
        "proved by branch and price alone"
    )
    return int(wrong > 0)


def optima(problem: Problem, terms: tuple[str, ...]) -> tuple[int, ...] | None:
    """Return the least value of each term alone over all valid plans; None if there are none."""
    found: tuple[int, ...] | None = None
    for schedule in all_schedules(shop_of(problem)):
        numbers, wrong = examined(problem, schedule)
        if not wrong:
            own = tuple(numbers.term(name) for name in terms)
            found = own if found is None else tuple(map(min, found, own))
    return found


if __name__ == "__main__":
    sys.exit(main())
