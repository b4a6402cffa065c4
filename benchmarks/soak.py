"""Whether memory stays flat: plans are run and problems are planned again and again, for minutes.

    python -m benchmarks.soak --minutes 20
    python -m benchmarks.soak --minutes 20 --model mobilenetv2 --backends native,cpsat

Each turn measures a pipeline that stays open, opens and closes one of the same plan, and plans the problem
anew with every backend. Printed are the resident memory of this process and of the workers that stay, and the
numbers of open files and of child processes, after the first turns (caches are full then) and at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.pipeline.pipeline import Pipeline
from gapless.executor.runner import Budget
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem

from .processes import descendants, resident_bytes

WARM_UP_TURNS = 3
_MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What this process and its workers hold after some turns."""

    seconds: float
    turns: int
    own_bytes: int
    workers_bytes: int
    files: int
    children: int


def main() -> None:
    """Run turns for as long as is asked, and print what is held on the way and at the end."""
    options = _arguments()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}; {options.model}, {options.minutes:g} "
        f"minutes; planned with {', '.join(options.backends)}"
    )
    states = _soak(options)
    table = Table(title="what is held", title_justify="left")
    for column in ("minutes", "turns", "this process, MiB", "its workers, MiB", "open files", "children"):
        table.add_column(column, justify="right")
    for state in states:
        table.add_row(
            f"{state.seconds / 60:.1f}",
            str(state.turns),
            f"{state.own_bytes / _MIB:.1f}",
            f"{state.workers_bytes / _MIB:.1f}",
            str(state.files),
            str(state.children),
        )
    console.print(table)
    first, last = states[0], states[-1]
    for what, grown in (
        ("this process", last.own_bytes - first.own_bytes),
        ("its workers", last.workers_bytes - first.workers_bytes),
    ):
        console.print(f"{what}: {grown / _MIB:+.1f} MiB in {last.turns - first.turns} turns")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each measurement")
    parser.add_argument("--every", type=float, default=120.0, help="seconds between two rows")
    parser.add_argument("--model", default="squeezenet", help="what is run and planned")
    parser.add_argument("--backends", type=lambda text: text.split(","), default=["native", "cpsat"])
    return parser.parse_args()


def _soak(options: argparse.Namespace) -> list[State]:
    # A noisy machine is no reason to give up: what is found out is how much memory is held.
    taken = gapless.profile(options.model, options=gapless.costs.ProfileOptions(most_far=2.0))
    problem = gapless.profiled_problem(taken)
    plan = gapless.plan(problem).plan
    assert plan is not None
    model = gapless.open_model(options.model)
    begin_s = time.monotonic()
    states: list[State] = []
    turns, shown_s = 0, 0.0
    with gapless.open_pipeline(problem, plan, model=model) as pipeline:
        while (passed_s := time.monotonic() - begin_s) < 60 * options.minutes:
            if turns >= WARM_UP_TURNS and passed_s >= shown_s:
                states.append(_state(passed_s, turns))
                shown_s = passed_s + options.every
            _turn(pipeline, problem, plan, options)
            turns += 1
        states.append(_state(passed_s, turns))
    return states


def _turn(pipeline: Pipeline, problem: Problem, plan: Plan, options: argparse.Namespace) -> None:
    budget = Budget(seconds=options.seconds)
    pipeline.measure(budget)
    with gapless.open_pipeline(problem, plan, model=gapless.open_model(options.model)) as other:
        other.measure(budget)
    gapless.compare(problem, backends=options.backends, top=5)


def _state(seconds: float, turns: int) -> State:
    children = descendants(os.getpid())
    return State(
        seconds=seconds,
        turns=turns,
        own_bytes=resident_bytes(os.getpid()),
        workers_bytes=sum(map(resident_bytes, children)),
        files=len(os.listdir("/proc/self/fd")),
        children=len(children),
    )


if __name__ == "__main__":
    main()
