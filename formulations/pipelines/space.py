"""Every well-formed plan of pipelines, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb, factorial

from .plans import Pipe, Pipes
from .tables import Cluster


def all_pipes(cluster: Cluster) -> Iterator[Pipes]:
    """Yield every well-formed plan: pipelines on disjoint devices, at most as many as are allowed."""
    yield from _sets(cluster, tuple(range(cluster.device_count)), cluster.most_pipelines, ())


def _sets(cluster: Cluster, free: tuple[int, ...], most: int, pipes: Pipes) -> Iterator[Pipes]:
    """Yield plans with these pipelines and others on free devices, ordered by their first device."""
    if pipes:
        yield pipes
    if most == 0:
        return
    for place, first in enumerate(free):
        later = free[place + 1 :]
        for size in range(len(later) + 1):
            for others in combinations(later, size):
                rest = tuple(device for device in later if device not in others)
                for pipe in _pipes(cluster, frozenset((first, *others)), 0, ()):
                    yield from _sets(cluster, rest, most - 1, (*pipes, pipe))


def _pipes(cluster: Cluster, left: frozenset[int], at: int, pipe: Pipe) -> Iterator[Pipe]:
    """Yield the pipelines that use exactly the devices that are left."""
    if not left:
        if at == cluster.chain.layer_count:
            yield pipe
        return
    for device in sorted(left):
        for stop in cluster.chain.cuts:
            if stop > at and cluster.runs(at, stop, device):
                yield from _pipes(cluster, left - {device}, stop, (*pipe, (at, stop, device)))


def count_pipes(cluster: Cluster) -> int:
    """Return an upper bound on the number of well-formed plans.

    Exact when every device can run every layer: with W(d) = C(N-1, d-1) d! pipelines on d given devices,
    A(m, p), the plans with p pipelines on m devices, is the sum over the devices of that which has the first.
    """
    pieces = len(cluster.chain.cuts) - 1
    most = cluster.most_pipelines
    ways = [[1] + [0] * most]
    for devices in range(1, cluster.device_count + 1):
        row = list(ways[devices - 1])  # the first device is not used
        for size in range(1, min(devices, pieces) + 1):
            own = comb(devices - 1, size - 1) * comb(pieces - 1, size - 1) * factorial(size)
            for count in range(1, most + 1):
                row[count] += own * ways[devices - size][count - 1]
        ways.append(row)
    return sum(ways[-1][1:])
