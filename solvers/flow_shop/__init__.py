"""Native algorithms for workloads: bounds, slicing, ordering, alignment and joint local search."""

from ...formulations.flow_shop.quantities import FlowTerm as T
from ..families import Drawn, Family, Usual
from ..protocol import Guarantee, RuleHandling, Support

_TERMS = frozenset(
    (
        T.PERIOD,
        T.GAPNESS,
        T.LATENCY,
        T.BUBBLES,
        T.PEAK_MEMORY,
        T.IDLE,
        T.MAKESPAN,
        T.BOTTLENECK,
        T.WORK,
        T.CONTENTION,
        T.DISPLACEMENT,
        T.ENERGY,
        T.UNITS,
    )
)
"""What the native algorithms compute."""

FAMILY = Family(
    support=Support(
        guarantee=Guarantee.BOUNDED,
        rules=RuleHandling.CHECKED,
        opaque_rules=RuleHandling.CHECKED,
        gives_bound=True,
        terms=_TERMS,
    ),
    native="solving:solve_flow_shop",
    starts="start:starts_of",
    backends={
        "hetero2pipe": "hetero2pipe:Hetero2PipeBackend",
        "hetero2pipe-noct": "hetero2pipe:NoContentionNoTailBackend",
        "hetero2pipe-noc": "hetero2pipe:NoContentionBackend",
        "hetero2pipe-not": "hetero2pipe:NoTailBackend",
        "hungarian": "hetero2pipe:HungarianBackend",
        "annealing": "annealing:AnnealingBackend",
        "serial": "baselines:SerialBackend",
        "pipe-it": "hetero2pipe:PipeItBackend",
        "band": "baselines:BandBackend",
    },
    samples="samples:samples",
    drawn=Drawn(home="drawn:random_workload", sizes=("requests", "units"), switches=("slowdown", "balanced")),
    usual=Usual(
        names=("native", "cpsat", "pulp", "hetero2pipe", "annealing", "band", "pipe-it", "serial"),
        time_limit_s=10.0,
    ),
    package=__name__,
)
