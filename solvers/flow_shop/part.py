"""A part of all plans: what has been decided about the cuts, the units, the order and the times of requests.

Where all requests are there from the start, the first unit has no gap: a chunk on it waits for nothing but
the chunks before it. So each plan has two phases, while the first unit runs and after it. When the second
one begins, each request is somewhere on its way: before unit k (2 k), on it (2 k + 1), or after the last one
(2 K). So in the first phase it is on units up to there, and in the second from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .arrays import without
from .kinds import Kind
from .ways import Ways

Pairs = NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """Plans in which each request is cut in certain ways, and some are served before others."""

    ways: tuple[Ways, ...]  # the ways to cut each request; requests of equal ways share them
    before: Pairs  # whether one request is served before another, shape (M, M), transitive
    group: tuple[int, ...]  # a number for each request; those of the same number could trade places at first
    first: int | None  # the first unit, if plans have two phases
    spans: tuple[tuple[int, int], ...]  # from where to where on its way each request may be then

    def kinds(self, chain_of: Sequence[int]) -> tuple[Kind, ...]:
        """Return each request as a kind of its own."""
        numbered = enumerate(zip(self.ways, chain_of, strict=True))
        return tuple(Kind(ways=ways, chain=chain, requests=(i,)) for i, (ways, chain) in numbered)

    def alike(self, request: int) -> list[int]:
        """Return the requests that nothing tells apart from one, with itself."""
        own, before = self.group[request], self.before
        return [
            i
            for i, ways in enumerate(self.ways)
            if self.group[i] == own
            and ways is self.ways[request]
            and self.spans[i] == self.spans[request]
            and (before[i] == before[request]).all()
            and (before[:, i] == before[:, request]).all()
        ]

    @cached_property
    def sure(self) -> Pairs:
        """Whether each request runs a chunk on each unit in any case, shape (M, K)."""
        found = np.zeros((len(self.ways), self.ways[0].arrays.unit_count), dtype=np.bool_)
        for request, ways in enumerate(self.ways):
            found[request, list(ways.sure_units)] = True
        return found

    def apart(self) -> Pairs:
        """Return which pairs (unit, request) never run at the same time, shape (K M + 1, K M + 1).

        The last row and column stand for the first unit that does not run.

        Let i be served before j, and a be a unit before b. While i is on a, j is not on b if it has to wait
        for i: j has a chunk on a, i has one on b, or both have one on some unit between.
        """
        size, units = self.sure.shape
        found = np.zeros((units, size, units, size), dtype=np.bool_)
        for b in range(units):
            for a in range(b):
                waits = self.sure[None, :, a] | self.sure[:, None, b]
                for c in range(a + 1, b):
                    waits = waits | (self.sure[:, None, c] & self.sure[None, :, c])
                found[a, :, b] = self.before & waits
                found[b, :, a] = found[a, :, b].T
        return self._with_phases(found.reshape(units * size, units * size))

    def _with_phases(self, apart: Pairs) -> Pairs:
        """Return the same with what runs in one phase only."""
        (size, units), found = self.sure.shape, np.pad(apart, (0, 1))
        if self.first is None:
            return found
        running = slice(self.first * size, (self.first + 1) * size)
        for request, (least, most) in enumerate(self._settled_spans()):
            for unit in range(self.first + 1, units):
                pair = unit * size + request
                if 2 * unit + 1 > most:
                    found[running, pair] = found[pair, running] = True
                if 2 * unit + 1 < least:
                    found[-1, pair] = found[pair, -1] = True
        return found

    def _settled_spans(self) -> list[tuple[int, int]]:
        """Return the spans, given that who is served later on a unit starts when the others are done."""
        spans = list(self.spans)
        pairs = np.argwhere(self.before).tolist()
        while True:
            known = list(spans)
            for i, j in pairs:
                for unit in np.flatnonzero(self.sure[i] & self.sure[j]).tolist():
                    on = 2 * unit + 1
                    if spans[i][1] <= on:
                        spans[j] = spans[j][0], min(spans[j][1], on - 1)
                    if spans[j][0] >= on:
                        spans[i] = max(spans[i][0], on + 1), spans[i][1]
            if spans == known:
                return spans

    def on_its_way(self, requests: Sequence[int], place: int, *, later: bool) -> Part:
        """Return the part in which the second phase finds requests up to a place on their way, or later."""
        spans = list(self.spans)
        for request in requests:
            least, most = spans[request]
            spans[request] = (max(least, place + 1), most) if later else (least, min(most, place))
        return replace(self, spans=tuple(spans))

    def settled(self) -> Pairs:
        """Return `before`, and the first before the next of requests that nothing tells apart."""
        found = self.before.copy()
        for request in range(len(self.ways)):
            for other in self.alike(request):
                found[request, other] |= request < other
        return found

    def ordered(self, first: int, then: int) -> Part:
        """Return the part in which one request is served before another; their order is open."""
        earlier = self.before[:, first].copy()
        later = self.before[then].copy()
        earlier[first] = later[then] = True
        return replace(self, before=self.before | (earlier[:, None] & later))

    def cut(self, requests: Sequence[int], unit: int, place: int, *, above: bool) -> Part | None:
        """Return the part in which alike requests leave the units before one above a place, or up to it."""
        arrays = self.ways[requests[0]].arrays
        if above:
            last = without(arrays.last, slice(unit, None), 0, place + 1)
        else:
            last = without(arrays.last, slice(unit), place, arrays.size)
        return self._with(requests, Ways(replace(arrays, last=last), self.ways[requests[0]].required))

    def using(self, requests: Sequence[int], unit: int, *, used: bool) -> Part | None:
        """Return the part in which alike requests have a chunk on a unit, or none."""
        ways = self.ways[requests[0]]
        if used:
            return self._with(requests, Ways(ways.arrays, ways.required | {unit}))
        last = without(ways.arrays.last, slice(unit, unit + 1), 0, ways.size)
        return self._with(requests, Ways(replace(ways.arrays, last=last), ways.required))

    def _with(self, requests: Sequence[int], ways: Ways) -> Part | None:
        if not ways.runs:
            return None
        changed = tuple(ways if i in requests else own for i, own in enumerate(self.ways))
        return replace(self, ways=changed)
