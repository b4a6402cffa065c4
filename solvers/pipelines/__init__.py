"""Native algorithms for pipelines over devices: programs over sets of devices, and an exact search."""

from dataclasses import replace

from ...formulations.pipelines.quantities import PipelineTerm as T
from ..families import Drawn, Family, Usual
from ..protocol import EXACT

_TERMS = frozenset(
    (T.THROUGHPUT, T.PERIOD, T.LATENCY, T.GAPNESS, T.DEVICES, T.ENERGY, T.TRAFFIC, T.PEAK_MEMORY)
)
"""What the native algorithms compute."""

FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    native="solving:solve_pipelines",
    starts="start:starts_of",
    backends={
        "epipe-ga": "genetic:GeneticBackend",
        "epipe-ga-repair": "genetic:RepairingGeneticBackend",
        "epipe-ga-repair-unseeded": "genetic:UnseededRepairingBackend",
        "epipe-ga-unseeded": "genetic:UnseededGeneticBackend",
        "random-search": "genetic:RandomSearchBackend",
        "pipeedge": "baselines:PipeEdgeBackend",
        "pipedream": "baselines:PipeDreamBackend",
        "pico-costs": "baselines:PicoCostsBackend",
        "greedy": "baselines:GreedyBackend",
    },
    samples="samples:samples",
    drawn=Drawn(home="drawn:drawn_cluster", sizes=("layers", "devices", "types")),
    usual=Usual(
        names=("native", "cpsat", "pulp", "pipeedge", "epipe-ga", "pico-costs", "pipedream", "greedy"),
        time_limit_s=10.0,
    ),
    package=__name__,
)
