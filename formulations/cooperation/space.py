"""Every well-formed plan of groups, and how many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import comb

from .plans import Parts
from .service import Part
from .tables import Groups


def all_parts(groups: Groups) -> Iterator[Parts]:
    """Yield every well-formed plan: consecutive chunks, each with a group of its own."""
    begin: defaultdict[int, list[Part]] = defaultdict(list)
    for part in groups.possible():
        begin[part[0]].append(part)

    def plans(at: int, used: frozenset[int]) -> Iterator[Parts]:
        if at == groups.chain.layer_count:
            yield ()
            return
        for part in begin[at]:
            if used.isdisjoint(part[2]):
                for rest in plans(part[1], used | set(part[2])):
                    yield part, *rest

    yield from plans(0, frozenset())


def count_parts(groups: Groups) -> int:
    """Return an upper bound on the number of well-formed plans.

    Exact when every group can serve every chunk: c chunks have C(N-1, c-1) cuts, and each device is in one of
    the c groups or in none, with no group empty.
    """
    pieces, devices = len(groups.chain.cuts) - 1, groups.device_count
    return sum(comb(pieces - 1, c - 1) * _onto(devices, c) for c in range(1, min(pieces, devices) + 1))


def _onto(devices: int, chunks: int) -> int:
    """Return in how many ways devices go into so many groups, none empty; devices may be left out."""
    return sum((-1) ** k * comb(chunks, k) * (chunks - k + 1) ** devices for k in range(chunks + 1))
