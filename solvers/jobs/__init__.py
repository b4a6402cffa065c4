"""Native algorithms for single requests: list schedules, annealing, and a bound by prices."""

from ..families import Drawn, Family, Usual
from ..protocol import Guarantee, RuleHandling, Support

FAMILY = Family(
    support=Support(
        guarantee=Guarantee.BOUNDED,
        rules=RuleHandling.CHECKED,
        opaque_rules=RuleHandling.CHECKED,
        gives_bound=True,
    ),
    native="solving:solve_jobs",
    starts="start:starts_of",
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_jobs", sizes=("requests", "units")),
    usual=Usual(names=("native", "cpsat", "pulp", "z3"), time_limit_s=10.0),
    package=__name__,
)
