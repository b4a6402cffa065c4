"""Devices that are pipelines themselves: a chunk takes what the best inner pipeline takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..chain import Chain, build_chain
from ..cluster import InnerDevice
from ..network import Network

_NEVER = np.iinfo(np.int64).max // 4


def interval_us(device: InnerDevice, network: Network) -> npt.NDArray[np.int64]:
    """Return the least period of an inner pipeline for each chunk, by [start][stop]; -1: cannot run.

    The inner problem is that of one board: each unit runs at most one chunk, and units that share cores
    exclude each other. For each start the program goes over sets of units, as EPipe's over sets of devices
    (Eq. 5).

    Parameters
    ----------
    device
        Its units, and what layers take on them.
    network
        The network; its legal cuts hold inside of the device, too.
    """
    chain = build_chain(device.platform, network, device.costs)
    busy = np.stack([_busy_us(chain, unit) for unit in range(chain.unit_count)])
    size = chain.layer_count + 1
    found = np.full((size, size), _NEVER, np.int64)
    cuts = np.asarray(chain.cuts)
    for start in chain.cuts[:-1]:
        found[start] = _least_us(chain, busy, start, cuts[cuts > start])
    found[found >= _NEVER] = -1
    return found


def _busy_us(chain: Chain, unit: int) -> npt.NDArray[np.int64]:
    """Return the busy time of every chunk on one unit by [start][stop]."""
    prefix, blocked = (np.asarray(rows[unit], np.int64) for rows in (chain.prefix_us, chain.blocked))
    copy_in, copy_out = (
        np.asarray([row[unit] for row in rows], np.int64)
        for rows in (chain.transfer_in_us, chain.transfer_out_us)
    )
    times = prefix[None, :] - prefix[:, None] + copy_in[:, None] + copy_out[None, :]
    times[blocked[None, :] != blocked[:, None]] = _NEVER
    capacity = chain.unit_memory[unit]
    for start in range(chain.layer_count if capacity is not None else 0):
        for stop in range(start + 1, chain.layer_count + 1):
            if not chain.fits(start, stop, unit):
                times[start, stop] = _NEVER
    times[np.tril_indices(len(times))] = _NEVER
    return times


def _least_us(
    chain: Chain, busy: npt.NDArray[np.int64], start: int, stops: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the least period from a start to every boundary, over all sets of units."""
    units = range(chain.unit_count)
    excluded = [sum(1 << other for other in chain.exclusive[unit]) for unit in units]
    first = np.full(busy.shape[1], _NEVER, np.int64)
    first[start] = 0
    best = np.full(busy.shape[1], _NEVER, np.int64)
    reached = {0: first}
    for units_used in range(1, 1 << chain.unit_count):
        own = np.full(busy.shape[1], _NEVER, np.int64)
        for unit in units:
            rest = units_used & ~(1 << unit)
            if rest == units_used or rest & excluded[unit] or rest not in reached:
                continue
            through = np.maximum(reached[rest][:, None], busy[unit])
            own[stops] = np.minimum(own[stops], through[:, stops].min(axis=0))
        if (own < _NEVER).any():
            reached[units_used] = own
            np.minimum(best, own, out=best)
    return best
