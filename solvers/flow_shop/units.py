"""Which units a heuristic for workloads may use, and networks confined to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, islice

import numpy as np

from ...formulations.flow_shop.tables import Cuts, FlowShop
from ...formulations.hardware import Platform, UnitKind, free_sets
from .arrays import ChainArrays, Ints

MOST_SETS = 32
"""Most sets of compatible units that are tried."""


def processor_units(platform: Platform) -> tuple[int, ...]:
    """Return the CPU units; on a platform that names no CPU, the units of unnamed kind."""
    for kind in (UnitKind.CPU, UnitKind.OTHER):
        found = tuple(index for index, unit in enumerate(platform.units) if unit.kind is kind)
        if found:
            return found
    return ()


def unit_sets(shop: FlowShop) -> tuple[frozenset[int], ...]:
    """Return the largest sets of units that share no cores, at most `MOST_SETS`; all units where none do."""
    return tuple(islice(free_sets(shop.chains[0].exclusive), MOST_SETS))


def subsets(sets: Iterable[frozenset[int]]) -> tuple[frozenset[int], ...]:
    """Return all sets that are part of one of these, largest first: the combinations of units."""
    found = {
        frozenset(chosen)
        for each in sets
        for count in range(1, len(each) + 1)
        for chosen in combinations(sorted(each), count)
    }
    return tuple(sorted(found, key=lambda each: (-len(each), sorted(each))))


def whole_cuts(shop: FlowShop, request: int, unit: int) -> Cuts:
    """Return the cuts that lay a request on one unit."""
    return (0,) * (unit + 1) + (shop.chain(request).layer_count,) * (shop.unit_count - unit)


def confine(arrays: ChainArrays, units: frozenset[int]) -> ChainArrays:
    """Return a network that only these units can run."""
    open_ = np.array([unit in units for unit in range(arrays.unit_count)])
    nowhere = np.arange(arrays.size + 1)
    return replace(arrays, last=np.where(open_[:, None], arrays.last, nowhere))


def runs_whole(arrays: ChainArrays) -> Ints:
    """Return the units that can run the whole network."""
    return np.flatnonzero(arrays.last[:, 0] == arrays.size)
