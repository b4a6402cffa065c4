"""Bytes of weights of some layers: what several of them share counts once.

The only place that says so. Chunks, parts, tasks, encodings and native searches all ask here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise

from .expr import BoolExpr, Expr, any_of, linear

Shared = tuple[int, tuple[int, ...]]
"""Bytes that several places share, and these places, ascending."""


@dataclass(frozen=True)
class Weights:
    """The weights of places: the layers of a network, or what became of them (pieces, blocks, tasks)."""

    prefix: tuple[int, ...]
    """Bytes that one place alone has, of the places before a boundary, by [boundary 0..n]."""
    shared: tuple[Shared, ...] = ()  # what several places share

    @cached_property
    def _known(self) -> dict[tuple[int, int], int]:
        return {}

    @cached_property
    def own(self) -> tuple[int, ...]:
        """Bytes that each place alone has."""
        return tuple(stop - start for start, stop in pairwise(self.prefix))

    @cached_property
    def whole(self) -> int:
        """Bytes of all places, each weight once: no plan needs less."""
        return self.prefix[-1] + sum(size for size, _ in self.shared)

    @cached_property
    def copied(self) -> int:
        """Bytes of all places, each with a copy of its own of what it shares: no plan needs more."""
        return self.prefix[-1] + sum(size * len(places) for size, places in self.shared)

    def between(self, start: int, stop: int) -> int:
        """Return the bytes of the places in [start, stop)."""
        if not self.shared:
            return self.prefix[stop] - self.prefix[start]
        if (start, stop) not in self._known:
            read = (size for size, places in self.shared if _meets(places, start, stop))
            self._known[start, stop] = self.prefix[stop] - self.prefix[start] + sum(read)
        return self._known[start, stop]

    def of(self, places: Iterable[int]) -> int:
        """Return the bytes of a set of places."""
        found = set(places)
        own = sum(self.own[place] for place in found)
        return own + sum(size for size, readers in self.shared if not found.isdisjoint(readers))

    def more(self, place: int, held: AbstractSet[int]) -> int:
        """Return the bytes that one more place adds to others."""
        new = (size for size, readers in self.shared if place in readers and held.isdisjoint(readers))
        return self.own[place] + sum(new)

    def grouped(self, of: Sequence[int], count: int) -> Weights:
        """Return the weights of groups of places, from the group of each place."""
        own, shared = [0] * count, dict[tuple[int, ...], int]()
        for place, size in enumerate(self.own):
            own[of[place]] += size
        for size, places in self.shared:
            groups = tuple(sorted({of[place] for place in places}))
            if len(groups) == 1:
                own[groups[0]] += size
            else:
                shared[groups] = shared.get(groups, 0) + size
        return Weights(tuple(accumulate(own, initial=0)), tuple((size, to) for to, size in shared.items()))

    def expr(self, number: Callable[[int], Expr], holds: Callable[[int], BoolExpr], *, step: int = 1) -> Expr:
        """Return the bytes of the places that are chosen, in units of `step` bytes, rounded down each.

        `number`, `holds`: whether a place is chosen, as a number and as a condition; `step`: bytes of a unit.
        """
        own = [(size // step, number(place)) for place, size in enumerate(self.own) if size >= step]
        both = [(size // step, any_of(map(holds, to))) for size, to in self.shared if size >= step]
        return linear([*own, *both])


def _meets(places: Sequence[int], start: int, stop: int) -> bool:
    at = bisect_left(places, start)
    return at < len(places) and places[at] < stop
