"""Native algorithms for convex parts: programs over linear orders, local search, and chains of down-sets."""

from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Usual
from ..protocol import BOUNDED

_TERMS = frozenset((T.PERIOD, T.TRANSFERS, T.WORK, T.UNITS))
"""What the native algorithms compute."""


def _search() -> Search:
    from .solving import solve_partition, starts_of

    return Search(solve_partition, starts_of)


def _instances() -> Instances:
    from .samples import random_graph, samples

    return Instances(samples, random_graph)


FAMILY = Family(
    support=replace(BOUNDED, terms=_TERMS),
    search=_search,
    instances=_instances,
    drawn=Drawn(sizes=("layers", "units"), switches=("training",)),
    usual=Usual(names=("native", "cpsat", "z3", "pulp"), time_limit_s=10.0),
)
