"""Native algorithms for convex parts: programs over linear orders, local search, and chains of down-sets."""

from ...formulations.partition.quantities import PartTerm as T
from ..families import Drawn, Family, Usual
from ..protocol import Guarantee, RuleHandling, Support

_TERMS = frozenset((T.PERIOD, T.TRANSFERS, T.WORK, T.UNITS))
"""What the native algorithms compute."""

FAMILY = Family(
    support=Support(
        guarantee=Guarantee.BOUNDED,
        rules=RuleHandling.CHECKED,
        opaque_rules=RuleHandling.CHECKED,
        gives_bound=True,
        terms=_TERMS,
    ),
    native="solving:solve_partition",
    starts="start:starts_of",
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_graph", sizes=("layers", "units"), switches=("training",)),
    usual=Usual(names=("native", "cpsat", "z3", "pulp"), time_limit_s=10.0),
    package=__name__,
)
