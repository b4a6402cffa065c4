"""Every well-formed plan of pipelines, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb, factorial

from .plans import Pipe, Pipes, ordered
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


def near_pipes(cluster: Cluster, pipes: Pipes) -> Iterator[Pipes]:
    """Yield plans with one pipeline less, a chunk elsewhere, or two chunks cut otherwise or joined."""
    busy = {device for pipe in pipes for _, _, device in pipe}
    free = [device for device in range(cluster.device_count) if device not in busy]
    for place, pipe in enumerate(pipes):
        others = pipes[:place] + pipes[place + 1 :]
        if others:
            yield ordered(others)
        for changed in _changed(cluster, pipe, free):
            if all(cluster.runs(*part) for part in changed):
                yield ordered((*others, changed))


def _changed(cluster: Cluster, pipe: Pipe, free: Sequence[int]) -> Iterator[Pipe]:
    for place, (start, stop, device) in enumerate(pipe):
        for other in free:
            yield (*pipe[:place], (start, stop, other), *pipe[place + 1 :])
        if place + 1 < len(pipe):
            _, end, following = pipe[place + 1]
            head, tail = pipe[:place], pipe[place + 2 :]
            yield from ((*head, (start, end, one), *tail) for one in (device, following))
            cuts = (cut for cut in cluster.chain.cuts if start < cut < end and cut != stop)
            yield from ((*head, (start, cut, device), (cut, end, following), *tail) for cut in cuts)


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
