"""Requests that can take each other's place, with everything that waits for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from .play import Part
from .tables import JobTables


class Alike:
    """Groups of equal requests: nobody would notice if two of a group, and what waits for them, swapped.

    Two requests are equal if network, release, deadline, weight and what they wait for are, and if the
    requests that wait for them are equal, each of which waits for nothing else; or are the same ones.
    """

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        kinds: dict[object, int] = {}
        self._kind = [0] * tables.request_count
        """What a request is with all that waits for it, whatever it waits for itself."""
        for request in reversed(range(tables.request_count)):
            own = tables.jobs.requests[request]
            followers = tables.followers[request]
            alone = all(len(tables.after[each]) == 1 for each in followers)
            behind = sorted(self._kind[each] for each in followers) if alone else ["same", *followers]
            what = (
                own.network,
                own.release_us,
                own.deadline_us,
                own.weight,
                tuple(behind),
            )
            self._kind[request] = kinds.setdefault(what, len(kinds))

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Requests that are equal, in the order of their indices; groups of one are left out."""
        found: dict[object, list[int]] = defaultdict(list)
        for request, kind in enumerate(self._kind):
            found[kind, *sorted(self._tables.after[request])].append(request)
        return tuple(tuple(group) for group in found.values() if len(group) > 1)

    def settled(
        self, finish_us: Sequence[int], parts: Sequence[tuple[Part, ...]], order: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[tuple[Part, ...], ...]]:
        """Return an equally good plan in which equal requests finish in the order of their indices.

        Order and chunks.
        """
        stands_for = list(range(len(parts)))
        # Those behind come first: whole requests swap together with what waits for them.
        for group in sorted(self.groups, key=lambda group: -group[0]):
            ranked = sorted(group, key=lambda request: (finish_us[stands_for[request]], request))
            before = stands_for.copy()
            for place, source in zip(group, ranked, strict=True):
                for own, other in zip(self._tree(place), self._tree(source), strict=True):
                    stands_for[own] = before[other]
        place_of = {source: request for request, source in enumerate(stands_for)}
        return tuple(place_of[each] for each in order), tuple(parts[source] for source in stands_for)

    def _tree(self, request: int) -> list[int]:
        """Return a request and those that wait for it, equal ones in the order of their indices."""
        found = [request]
        followers = self._tables.followers[request]
        if all(len(self._tables.after[each]) == 1 for each in followers):
            for each in sorted(followers, key=lambda each: (self._kind[each], each)):
                found += self._tree(each)
        return found
