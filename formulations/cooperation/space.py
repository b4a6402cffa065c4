"""Every well-formed plan of groups, and how many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
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


def near_parts(groups: Groups, parts: Parts) -> Iterator[Parts]:
    """Yield plans with a device more or less in a group, or two chunks cut otherwise or joined."""
    busy = {device for _, _, group in parts for device in group}
    free = [device for device in range(groups.device_count) if device not in busy]
    for place, (start, stop, group) in enumerate(parts):
        head, tail = parts[:place], parts[place + 1 :]
        fewer = [tuple(other for other in group if other != device) for device in group if len(group) > 1]
        more = [tuple(sorted((*group, device))) for device in free]
        yield from _served(groups, ((*head, (start, stop, own), *tail) for own in (*fewer, *more)))
        for _, end, following in tail[:1]:
            rest = tail[1:]
            joined = ((*head, (start, end, own), *rest) for own in (group, following))
            cuts = (cut for cut in groups.chain.cuts if start < cut < end and cut != stop)
            moved = ((*head, (start, cut, group), (cut, end, following), *rest) for cut in cuts)
            yield from _served(groups, (*joined, *moved))


def _served(groups: Groups, plans: Iterable[Parts]) -> Iterator[Parts]:
    """Yield the plans whose groups can serve their chunks."""
    for parts in plans:
        able = (groups.chain.runs(start, stop, d) for start, stop, group in parts for d in group)
        if all(able) and all(groups.service(part) is not None for part in parts):
            yield parts


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
