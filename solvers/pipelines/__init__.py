"""Native algorithms for pipelines over devices: programs over sets of devices, and an exact search."""

from ..families import Family, Usual
from ..protocol import EXACT

FAMILY = Family(
    support=EXACT,
    native="solving:solve_pipelines",
    starts="start:starts_of",
    samples="samples:samples",
    usual=Usual(names=("native", "cpsat", "pulp", "z3", "exhaustive")),
    package=__name__,
)
