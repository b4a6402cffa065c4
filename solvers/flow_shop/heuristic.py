"""What the heuristics for workloads have in common: networks on some units, and their slices."""

from __future__ import annotations

from collections.abc import Sequence

from ...formulations.flow_shop.formulation import FORMULATION
from ...formulations.flow_shop.tables import FlowShop
from ..proposing import proposing
from ..protocol import Capabilities
from .arrays import ChainArrays, Ints, build_arrays
from .slicing import least_bottleneck
from .units import confine


def workload_capabilities(summary: str) -> Capabilities:
    """Return what a heuristic for workloads can do: plans that break rules are repaired or dropped."""
    return proposing(summary, FORMULATION.name)


def network_arrays(shop: FlowShop) -> list[ChainArrays]:
    """Return the networks of a workload (not its requests)."""
    return [build_arrays(chain) for chain in shop.chains]


def confined(networks: Sequence[ChainArrays], units: frozenset[int]) -> list[ChainArrays]:
    """Return networks that run on some units only."""
    return [confine(network, units) for network in networks]


def slice_requests(shop: FlowShop, networks: Sequence[ChainArrays]) -> list[Ints] | None:
    """Return the cuts with the least bottleneck (P1) of each request, as places; None if one cannot run."""
    slices = [least_bottleneck(network) for network in networks]
    places = [found[1] for found in slices if found is not None]
    return [places[index] for index in shop.chain_of] if len(places) == len(slices) else None
