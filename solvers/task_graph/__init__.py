"""Native algorithms for layers side by side: list schedules, moves along the critical path, bounds."""

from ...formulations.task_graph.quantities import ScheduleTerm as T
from ..families import Drawn, Family, Usual
from ..protocol import Guarantee, RuleHandling, Support

_TERMS = frozenset((T.LATENCY, T.WORK, T.UNITS))
"""What the native algorithms compute."""

FAMILY = Family(
    support=Support(
        guarantee=Guarantee.BOUNDED,
        rules=RuleHandling.CHECKED,
        opaque_rules=RuleHandling.CHECKED,
        gives_bound=True,
        terms=_TERMS,
    ),
    native="solving:solve_schedule",
    starts="start:starts_of",
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_tasks", sizes=("layers", "units")),
    usual=Usual(names=("native", "cpsat", "z3", "pulp"), time_limit_s=10.0),
    package=__name__,
)
