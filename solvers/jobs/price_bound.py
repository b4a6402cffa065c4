"""A lower bound on the makespan of requests with any passage, by prices of units (`solvers.contention`).

It holds for all start times and orders, so also where chunks start as early as they can, and for passages
that are restricted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..company import Ints
from ..contention import PRICE_SCALE, Program, Way
from ..protocol import NEVER, Deadline
from ..simplex import Floats
from .instance import Instance
from .passages import Passage, Passages


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBound:
    """A lower bound, and what it says about good plans."""

    bound_us: int
    prices: Floats  # what a microsecond of a network on a unit costs the whole, at most 1; shape (N, K)
    passages: tuple[tuple[Passage, ...], ...]  # those that were looked at, by network
    shares: tuple[Floats, ...]  # which share of the requests of a network takes each of them


def price_bound(instance: Instance, deadline: Deadline = NEVER) -> PriceBound | None:
    """Return the bound with the best prices that are found in time; None: some network cannot run."""
    kinds = [_Free(network, count) for network, count in zip(instance.networks, instance.counts, strict=True)]
    if any(kind.network.alone is None for kind in kinds):
        return None
    program = Program(instance.company(), kinds, instance.unit_count)
    program.improve(deadline)
    found = program.result()
    return PriceBound(
        bound_us=max(instance.longest_us, -(-found.total // PRICE_SCALE)),
        prices=found.prices / PRICE_SCALE,
        passages=found.ways,
        shares=found.shares,
    )


@dataclass(frozen=True, slots=True)
class _Free:
    """Requests of a network, each with any passage."""

    network: Passages
    count: int

    def cheapest(self, prices: Ints, discounts: Ints) -> tuple[int, Way]:
        found = self.network.cheapest(prices.tolist(), discounts.tolist())
        assert found is not None
        return int(found[0]), found[1]

    def times_us(self, way: Way) -> Ints:
        return np.array(self.network.times_us(way), dtype=np.int64)

    def allows(self, way: Way) -> bool:
        return bool(way)
