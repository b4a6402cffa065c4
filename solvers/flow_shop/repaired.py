"""What heuristics for workloads propose, repaired where it breaks rules: schedules that a search starts from."""

from __future__ import annotations

from ...formulations.flow_shop.tables import Schedule
from ...formulations.judge import examined
from ...formulations.problem import Problem
from ..protocol import Deadline, SolveOptions
from ..repairing import repair
from .baselines import BandBackend
from .hetero2pipe import Hetero2PipeBackend, HungarianBackend


def repaired_schedules(problem: Problem, deadline: Deadline) -> list[Schedule]:
    """Return schedules of quick heuristics, repaired where they break something, for as long as there is time."""
    options = SolveOptions()
    made: list[Schedule] = []
    broken: list[Schedule] = []
    for planner in (BandBackend(), Hetero2PipeBackend(), HungarianBackend()):
        for schedule in planner.propose(problem, options, deadline):
            (broken if examined(problem, schedule)[1] else made).append(schedule)
    repair(problem, broken, deadline, made.append)
    return made
