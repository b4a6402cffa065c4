"""Devices that are pipelines themselves: a chunk takes what the best inner pipeline takes."""

from __future__ import annotations

from ..chain import Chain, build_chain
from ..cluster import InnerDevice
from ..network import Network

Intervals = tuple[tuple[int, ...], ...]
"""Microseconds by [start][stop]; -1: cannot run."""

_NEVER = 2**62


def interval_us(device: InnerDevice, network: Network) -> Intervals:
    """Return the least period of an inner pipeline for each chunk.

    The units of the device take the layers of the chunk in runs, each unit at most one, and units that share
    cores exclude each other. For each start the program goes over sets of units, as EPipe's over sets of
    devices (Eq. 5).

    `network`: the network; its legal cuts hold inside of the device, too.
    """
    chain = build_chain(device.platform, network, device.costs)
    # By [unit][index of the stop][index of the start], over the legal cuts: what is read in one go.
    busy = [[_until(chain, unit, stop) for stop in chain.cuts] for unit in range(chain.unit_count)]
    found = [[-1] * (chain.layer_count + 1) for _ in range(chain.layer_count + 1)]
    for index, start in enumerate(chain.cuts[:-1]):
        for stop, time_us in zip(chain.cuts[index:], _least_us(chain, busy, index), strict=True):
            if time_us < _NEVER:
                found[start][stop] = time_us
    return tuple(map(tuple, found))


def _until(chain: Chain, unit: int, stop: int) -> list[int]:
    """Return the busy time of each chunk of a unit that ends at a boundary, by its start."""
    return [
        chain.busy_us(start, stop, unit)
        if start < stop and chain.runs(start, stop, unit) and chain.fits(start, stop, unit)
        else _NEVER
        for start in chain.cuts
    ]


def _least_us(chain: Chain, busy: list[list[list[int]]], first: int) -> list[int]:
    """Return the least period from a cut to itself and every later one, over all sets of units."""
    count = len(chain.cuts) - first
    excluded = [sum(1 << other for other in chain.exclusive[unit]) for unit in range(chain.unit_count)]
    reached = {0: [0] + [_NEVER] * (count - 1)}
    best = [_NEVER] * count
    for used in range(1, 1 << chain.unit_count):
        own = [_NEVER] * count
        for unit, row in enumerate(busy):
            before = reached.get(used & ~(1 << unit)) if used >> unit & 1 else None
            if before is None or used & excluded[unit]:
                continue
            for stop in range(1, count):
                through = min(map(max, before[:stop], row[first + stop][first:]))
                own[stop] = min(own[stop], through)
        if min(own) < _NEVER:
            reached[used] = own
            best = list(map(min, best, own))
    best[0] = _NEVER
    return best
