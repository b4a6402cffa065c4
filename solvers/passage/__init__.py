"""Native algorithms for one network whose units may have several chunks: prices, labels and local search."""

from dataclasses import replace

from ...formulations.chunking.quantities import Term as T
from ..families import Drawn, Family, Usual
from ..protocol import EXACT

_TERMS = frozenset(T)
"""What the native algorithms compute of plans that are not finished (`outlook.py`)."""

FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    native="solving:solve_passage",
    starts="start:starts_of",
    backends={"fallback": "baselines:FallbackBackend", "one-unit": "baselines:OneUnitBackend"},
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_problem", sizes=("layers", "units")),
    usual=Usual(names=("native", "exhaustive", "cpsat", "pulp", "z3", "fallback", "one-unit")),
    package=__name__,
)
