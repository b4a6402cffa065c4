"""Which requests of a workload can run at the same time: the facts behind `solvers.company`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...formulations.flow_shop.memory import chunk_bytes
from ...formulations.flow_shop.tables import FlowShop
from ...formulations.workload import LoadPolicy
from ..company import Company, Runnable
from .arrays import Ints
from .kinds import Kind


def company_of(shop: FlowShop, kinds: Sequence[Kind]) -> Company:
    """Return the sets of requests of some kinds that can run at the same time."""
    chains = [kind.chain for kind in kinds]
    room = shop.chains[0].device_memory
    if room is not None and shop.workload.load_policy is LoadPolicy.RESIDENT:
        room -= sum(chain.weights.whole for chain in shop.chains)
    return Company(
        Runnable(
            counts=tuple(kind.count for kind in kinds),
            able=able_of(kinds, shop.unit_count),
            losses=np.array(shop.losses.least_permille, dtype=np.int64)[chains][:, :, chains],
            most_losses=np.array(shop.losses.most_permille, dtype=np.int64)[chains][:, :, chains],
            exclusive=shop.chains[0].exclusive,
            slots=shop.workload.task_slots,
            least_bytes=None if room is None else _least_bytes(shop, kinds),
            room=room,
        )
    )


def able_of(kinds: Sequence[Kind], units: int) -> NDArray[np.bool_]:
    """Return whether each unit can run some piece of each kind, shape (N, K)."""
    return np.array([[unit in kind.ways.units for unit in range(units)] for kind in kinds])


def arrivals_us(shop: FlowShop, kind: Kind) -> Ints:
    """Return when the requests of a kind come in."""
    requests = shop.workload.requests
    return np.array([requests[index].arrival_us for index in kind.requests], dtype=np.int64)


def _least_bytes(shop: FlowShop, kinds: Sequence[Kind]) -> Ints:
    """Return the least bytes of a chunk, shape (N, K)."""
    least = np.zeros((len(kinds), shop.unit_count), dtype=np.int64)
    for number, kind in enumerate(kinds):
        cuts, last = kind.ways.arrays.cuts.tolist(), kind.ways.arrays.last
        sizes = np.array([chunk_bytes(shop, kind.requests[0], *ends) for ends in pairwise(cuts)])
        for unit in kind.ways.units:
            least[number, unit] = sizes[last[unit][:-1] > np.arange(len(sizes))].min()
    return least
