"""Native algorithms for single requests: list schedules, annealing, and a bound by prices."""

from collections.abc import Iterable
from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Usual
from ..protocol import BOUNDED, Backend

_TERMS = frozenset((T.MAKESPAN, T.LATE, T.LATENESS, T.LATENCY, T.WORK))
"""What the native algorithms compute."""


def _search() -> Search:
    from .solving import solve_jobs, starts_of

    return Search(solve_jobs, starts_of)


def _classes() -> Iterable[type[Backend]]:
    from . import dispatching as policies

    return (
        policies.LeastSlackBackend,
        policies.LongestFirstBackend,
        policies.ShortestFirstBackend,
        policies.EarliestFinishBackend,
        policies.EarliestDeadlineBackend,
    )


def _instances() -> Instances:
    from .samples import random_jobs, samples

    return Instances(samples, random_jobs)


FAMILY = Family(
    support=replace(BOUNDED, terms=_TERMS),
    search=_search,
    backends=("lst", "sel", "shortest", "heft", "edf"),
    classes=_classes,
    instances=_instances,
    drawn=Drawn(sizes=("requests", "units")),
    usual=Usual(names=("native", "cpsat", "pulp", "z3", "sel", "lst", "heft"), time_limit_s=10.0),
)
