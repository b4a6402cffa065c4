"""Is any backend behind a repaired heuristic or one unit under rules? `python -m benchmarks.schedule_rules`.

    python -m benchmarks.schedule_rules --limit 5 --exact cpsat,pulp
    python -m benchmarks.schedule_rules --rules gap,load --networks yolov4,bert,mobilenetv2

Six requests on the Kirin 990 under each of `RULES`. Who must not be ahead: every request whole on one unit,
in the best order that keeps the rule, and the heuristics for one order of all units, repaired where their
plans break the rule. `native` is asked in either class of plans, exact backends with free passage and
native's start. "-": no plan. The command ends with 1 if `native` or an exact backend has a worse plan than
one of those, or none where there is one, or `native` with free passage a worse one than with one order.
Limits are seconds of the processor; those of exact backends are the clock's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from itertools import permutations
from time import thread_time
from typing import Any

from rich.console import Console
from rich.table import Table

from gapless.formulations.jobs.tables import JobPlan, tables_of
from gapless.formulations.judge import examined
from gapless.formulations.problem import Problem
from gapless.formulations.schedules import as_schedules
from gapless.profiler.platforms.workloads import shipped_workload
from gapless.solvers.protocol import Clock, SolveOptions
from gapless.solvers.session import solve

PLATFORM, NETWORKS = "kirin990", "yolov4,bert,vit,vgg16,resnet50,mobilenetv2"

HEURISTICS = ("serial", "pipe-it", "band", "hungarian", "hetero2pipe", "annealing")

Rule = Callable[[Any], Any]

RULES: dict[str, tuple[str, Rule]] = {
    "none": ("", lambda view: view.makespan_us() >= 0),
    "gap": (
        "bert starts 200 ms after yolov4 ends",
        lambda view: view.start_us("bert") >= view.finish_us("yolov4") + 200_000,
    ),
    "load": (
        "cpu_big and gpu run 1,300 ms at most",
        lambda view: view.load_us("cpu_big") + view.load_us("gpu") <= 1_300_000,
    ),
    "first": (
        "bert ends before yolov4 starts",
        lambda view: view.finish_us("bert") <= view.start_us("yolov4"),
    ),
    "soon": ("mobilenetv2 ends after 10 ms", lambda view: view.finish_us("mobilenetv2") <= 10_000),
    "late": ("bert ends after 700 ms", lambda view: view.finish_us("bert") <= 700_000),
    "no npu": ("nothing on the npu", lambda view: view.load_us("npu") <= 0),
    "one cpu": (
        "bert on one of the cpus",
        lambda view: ~(view.uses("bert", "cpu_big") & view.uses("bert", "cpu_little")),
    ),
    "whole": ("bert and yolov4 whole", lambda view: view.chunks("bert") + view.chunks("yolov4") <= 2),
    "few": ("7 chunks of the heavy ones", lambda view: sum(map(view.chunks, ("bert", "yolov4", "vit"))) <= 7),
    "little": (
        "cpu_little runs as long as the gpu",
        lambda view: view.load_us("cpu_little") >= view.load_us("gpu"),
    ),
    "busy": ("cpu_big runs 300 ms at most", lambda view: view.load_us("cpu_big") <= 300_000),
}
"""Rules by name, with what they say."""


def main() -> int:
    """Compare, print a table, and return 1 if a backend is behind."""
    options = _arguments()
    table = Table(
        title=f"makespan, ms; {options.networks} on {PLATFORM}; {options.limit:g} s", title_justify="left"
    )
    ours = ("native", *options.exact)
    for name in ("rule", "whole on one unit", "heuristic", "native, ordered", *ours):
        table.add_column(name, justify="left" if name == "rule" else "right")
    behind = []
    for name in options.rules:
        words, rule = RULES[name]
        in_order = shipped_workload(PLATFORM, options.networks).with_rules(rule)
        free = as_schedules(shipped_workload(PLATFORM, options.networks)).with_rules(rule)
        whole, heuristic = _whole(free), _best(in_order, HEURISTICS, options.limit)
        ordered = _asked(in_order, "native", options.limit)
        own = {backend: _asked(free, backend, options.limit) for backend in ours}
        behind += [f"{name}: native, ordered"] if _is_behind(ordered, (whole[0], heuristic[0])) else []
        for backend, span in own.items():
            others = (whole[0], heuristic[0], *((ordered,) if backend == "native" else ()))
            behind += [f"{name}: {backend}"] if _is_behind(span, others) else []
        shown = (f"{_ms(span)} {who}".strip() for span, who in (whole, heuristic))
        table.add_row(words or name, *shown, *map(_ms, (ordered, *own.values())))
    Console(width=170).print(table)
    print(f"behind: {', '.join(behind) or 'none'}")
    return int(bool(behind))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rules", type=lambda text: text.split(","), default=list(RULES))
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--limit", type=float, default=2.0, help="seconds for each backend")
    parser.add_argument("--exact", type=lambda text: text.split(","), default=[], help="e.g. cpsat,pulp")
    return parser.parse_args()


def _whole(problem: Problem) -> tuple[int | None, str]:
    """Return the least makespan of all requests whole on one unit, and the unit."""
    tables, found = tables_of(problem), []
    requests = range(tables.request_count)
    for unit, name in enumerate(problem.platform.unit_names):
        chains = map(tables.chain, requests)
        if not all(chain.runs(0, chain.layer_count, unit) for chain in chains):
            continue
        parts = tuple(((0, tables.section_count(request), unit),) for request in requests)
        for order in permutations(requests):
            numbers, wrong = examined(problem, JobPlan(order, parts))
            if not wrong:
                found.append((numbers.term("makespan"), name))
    return min(found, default=(None, ""))


def _best(problem: Problem, backends: Sequence[str], limit_s: float) -> tuple[int | None, str]:
    """Return the least makespan of some backends, and whose it is."""
    found = [(span, name) for name in backends if (span := _asked(problem, name, limit_s)) is not None]
    return min(found, default=(None, ""))


def _asked(problem: Problem, backend: str, limit_s: float) -> int | None:
    options = SolveOptions(time_limit_s=limit_s, clock=Clock(thread_time))
    return solve(problem, backend, options, explain=False).objective


def _is_behind(span: int | None, others: Sequence[int | None]) -> bool:
    """Return whether others have a better plan, or the only ones."""
    known = [other for other in others if other is not None]
    return bool(known) and (span is None or span > min(known))


def _ms(span: int | None) -> str:
    return "-" if span is None else f"{span / 1000:,.1f}"


if __name__ == "__main__":
    sys.exit(main())
