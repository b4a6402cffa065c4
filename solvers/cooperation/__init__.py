"""Native algorithms for groups of devices that serve chunks of a network together."""

from dataclasses import replace

from ...formulations.cooperation.quantities import GroupTerm as T
from ..families import Family, Usual
from ..protocol import EXACT

_TERMS = frozenset((T.PERIOD, T.LATENCY, T.ENERGY, T.REDUNDANCY, T.DEVICES, T.PEAK_MEMORY))
"""What the native algorithms compute."""

FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    native="solving:solve_groups",
    starts="start:starts_of",
    over_graph="over_graph:solve_over_graph",
    backends={"pico": "pico:PicoBackend", "pico-literal": "pico:LiteralPicoBackend"},
    samples="samples:samples",
    usual=Usual(names=("native", "cpsat", "pulp", "pico", "pico-literal"), time_limit_s=10.0),
    package=__name__,
)
