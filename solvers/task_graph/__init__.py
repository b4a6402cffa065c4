"""Native algorithms for layers side by side: list schedules, moves along the critical path, bounds."""

from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Usual
from ..protocol import BOUNDED

_TERMS = frozenset((T.LATENCY, T.WORK, T.UNITS))
"""What the native algorithms compute."""


def _search() -> Search:
    from .solving import solve_schedule, starts_of

    return Search(solve_schedule, starts_of)


def _instances() -> Instances:
    from .samples import random_tasks, samples

    return Instances(samples, random_tasks)


FAMILY = Family(
    support=replace(BOUNDED, terms=_TERMS),
    search=_search,
    instances=_instances,
    drawn=Drawn(sizes=("layers", "units")),
    usual=Usual(names=("native", "cpsat", "z3", "pulp"), time_limit_s=10.0),
)
