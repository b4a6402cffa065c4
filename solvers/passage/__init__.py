"""Native algorithms for one network whose units may have several chunks: prices, labels and local search."""

from collections.abc import Iterable
from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Usual
from ..protocol import EXACT, Backend

_TERMS = frozenset(T)
"""What the native algorithms compute of plans that are not finished (`outlook.py`)."""


def _search() -> Search:
    from .solving import solve_passage, starts_of

    return Search(solve_passage, starts_of)


def _classes() -> Iterable[type[Backend]]:
    from .baselines import FallbackBackend, OneUnitBackend

    return FallbackBackend, OneUnitBackend


def _instances() -> Instances:
    from .samples import random_problem, samples

    return Instances(samples, random_problem)


FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    search=_search,
    backends=("fallback", "one-unit"),
    classes=_classes,
    instances=_instances,
    drawn=Drawn(sizes=("layers", "units")),
    usual=Usual(names=("native", "exhaustive", "cpsat", "pulp", "z3", "fallback", "one-unit")),
)
