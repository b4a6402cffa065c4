"""Native algorithms for groups of devices that serve chunks of a network together."""

from collections.abc import Iterable
from dataclasses import replace

from ...formulations.terms import Term as T
from ..families import Family, Instances, Search, Usual
from ..protocol import EXACT, Backend

_TERMS = frozenset((T.PERIOD, T.LATENCY, T.ENERGY, T.REDUNDANCY, T.DEVICES, T.PEAK_MEMORY))
"""What the native algorithms compute."""


def _search() -> Search:
    from .over_graph import solve_over_graph
    from .solving import solve_groups, starts_of

    return Search(solve_groups, starts_of, over_graph=solve_over_graph)


def _classes() -> Iterable[type[Backend]]:
    from .pico import LiteralPicoBackend, PicoBackend

    return PicoBackend, LiteralPicoBackend


def _instances() -> Instances:
    from .samples import samples

    return Instances(samples)


FAMILY = Family(
    support=replace(EXACT, terms=_TERMS),
    search=_search,
    backends=("pico", "pico-literal"),
    classes=_classes,
    instances=_instances,
    usual=Usual(names=("native", "cpsat", "pulp", "pico", "pico-literal"), time_limit_s=10.0),
)
