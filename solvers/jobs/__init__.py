"""Native algorithms for single requests: list schedules, annealing, and a bound by prices."""

from ...formulations.jobs.quantities import JobTerm as T
from ..families import Drawn, Family, Usual
from ..protocol import Guarantee, RuleHandling, Support

_TERMS = frozenset((T.MAKESPAN, T.LATE, T.LATENESS, T.LATENCY, T.WORK))
"""What the native algorithms compute."""

FAMILY = Family(
    support=Support(
        guarantee=Guarantee.BOUNDED,
        rules=RuleHandling.CHECKED,
        opaque_rules=RuleHandling.CHECKED,
        gives_bound=True,
        terms=_TERMS,
    ),
    native="solving:solve_jobs",
    starts="start:starts_of",
    backends={
        "lst": "dispatching:LeastSlackBackend",
        "sel": "dispatching:LongestFirstBackend",
        "shortest": "dispatching:ShortestFirstBackend",
        "heft": "dispatching:EarliestFinishBackend",
        "edf": "dispatching:EarliestDeadlineBackend",
    },
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_jobs", sizes=("requests", "units")),
    usual=Usual(names=("native", "cpsat", "pulp", "z3", "sel", "lst", "heft"), time_limit_s=10.0),
    package=__name__,
)
