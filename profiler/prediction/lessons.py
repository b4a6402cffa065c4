"""What executed plans teach about a co-run cost model, and the problem with the costs that follow."""

from __future__ import annotations

from dataclasses import dataclass

from ...formulations.co_run import LEARNED
from ...formulations.problem import Problem
from .corrections import Corrections, fit_corrections
from .executions import Executions
from .learned import Lessons, learn
from .session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """What was learned, for people, and the problem with the costs that follow from it."""

    learned: Corrections | Lessons
    problem: Problem


def lessons_of(executions: Executions, costs: str) -> Taught:
    """Learn from all executed plans.

    `costs`: `learned`, or the co-run cost model that is corrected.
    Raises InvalidInputError: there is no such model, or no table that it needs.
    """
    if costs == LEARNED:
        found = learn(Session.of(executions))
        return Taught(learned=found.lessons(), problem=found.problem())
    problem = executions.problem(costs)
    corrections = fit_corrections(problem, executions.executed)
    return Taught(learned=corrections, problem=corrections.applied(problem))
