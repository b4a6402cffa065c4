"""Native algorithms for one network: exact dynamic programming and best-first search."""

from collections.abc import Iterable
from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Drawn, Family, Instances, Search, Usual
from ..protocol import EXACT, Backend

_TERMS = frozenset(
    (
        T.PERIOD,
        T.GAPNESS,
        T.PAPER_GAPNESS,
        T.LATENCY,
        T.BUBBLES,
        T.PEAK_MEMORY,
        T.IDLE,
        T.ENERGY,
        T.UNITS,
        T.HOPS,
        T.STREAM_LATENCY,
        T.IN_FLIGHT,
    )
)
"""What the native algorithms compute of plans that are not finished (`ranking.py`)."""


def _search() -> Search:
    from .solving import cheap_bounds, solve_chunking, starts_of

    return Search(solve_chunking, starts_of, set_bounds=cheap_bounds)


def _classes() -> Iterable[type[Backend]]:
    from .z3_paper import Z3PaperBackend

    return (Z3PaperBackend,)


def _instances() -> Instances:
    from .samples import random_problem, samples

    return Instances(samples, random_problem)


FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    search=_search,
    backends=("z3-paper",),
    classes=_classes,
    instances=_instances,
    drawn=Drawn(sizes=("layers", "units")),
    usual=Usual(names=("native", "exhaustive", "cpsat", "z3", "pulp")),
)
