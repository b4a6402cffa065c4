"""Native algorithms for one network: exact dynamic programming and best-first search."""

from dataclasses import replace

from ...formulations.chunking.quantities import Term as T
from ..families import Drawn, Family, Usual
from ..protocol import EXACT

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

FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    native="solving:solve_chunking",
    set_bounds="cheap_bounds:cheap_bounds",
    starts="start:starts_of",
    backends={"z3-paper": "z3_paper:Z3PaperBackend"},
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_problem", sizes=("layers", "units")),
    usual=Usual(names=("native", "exhaustive", "cpsat", "z3", "pulp")),
    package=__name__,
)
