"""Task streams: plan several networks that run one after the other on the same devices, and play them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..formulations.errors import InvalidInputError
from ..formulations.problem import Problem
from ..formulations.task_stream import PlanningTime, PlayedStream, Task, play_stream
from ..solvers.protocol import SolveOptions
from ..solvers.result import SolveResult
from ..solvers.session import solve
from .planning import default_backend
from .problems import given_problem

Solve = Callable[[Problem], SolveResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStream:
    """Tasks one after the other, planned and played.

    Attributes
    ----------
    tasks
        What ran, with the plan of each.
    results
        How the plan of each task was found; tasks of one problem share one.
    ahead
        The tasks at work when all plans are known ahead.
    waiting
        The same when each network is measured and planned when its turn comes; None: not asked for.
    planning
        What that takes.
    """

    tasks: tuple[Task, ...]
    results: tuple[SolveResult, ...]
    ahead: PlayedStream
    waiting: PlayedStream | None = None
    planning: PlanningTime | None = None


def task_stream(
    tasks: Sequence[tuple[Problem | str | Path, int]],
    *,
    backend: str | None = None,
    time_limit_s: float | None = None,
    planning: PlanningTime | None = None,
) -> TaskStream:
    """Plan networks that run one after the other on the same devices, and play them (EPipe 2.1 and 4.2.1).

    Parameters
    ----------
    tasks
        Problems, by name or as files, too, each with its number of items; an item is one run of the plan.
    backend
        Which backend plans; None: the usual one of each problem.
    time_limit_s
        For each plan.
    planning
        What it would take to measure and plan each network when its turn comes, to compare with; None: no
        comparison.

    Raises
    ------
    InvalidInputError
        A problem has no valid plan, or as for `play_stream`.
    """
    options = SolveOptions(time_limit_s=time_limit_s)
    found = [(given_problem(problem), items) for problem, items in tasks]
    return played(
        found, lambda problem: solve(problem, backend or default_backend(problem), options), planning
    )


def played(
    tasks: Sequence[tuple[Problem, int]], solved: Solve, planning: PlanningTime | None = None
) -> TaskStream:
    """Return what `task_stream` does, with somebody who solves each problem once."""
    results: dict[str, SolveResult] = {}
    planned = []
    for problem, items in tasks:
        if problem.fingerprint not in results:
            results[problem.fingerprint] = solved(problem)
        plan = results[problem.fingerprint].plan
        if plan is None:
            raise InvalidInputError(
                f"no plan was found for {problem.network.name} on {problem.platform.name} among "
                f"{problem.plan_class}; `gapless plan` says why"
            )
        planned.append(Task(problem=problem, plan=plan, items=items))
    return TaskStream(
        tasks=tuple(planned),
        results=tuple(results[task.problem.fingerprint] for task in planned),
        ahead=play_stream(planned),
        waiting=None if planning is None else play_stream(planned, planning),
        planning=planning,
    )
