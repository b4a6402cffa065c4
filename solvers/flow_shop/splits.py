"""How branch and price splits a part of all plans in two: at what its linear program mixes most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import ClassVar, Protocol

import numpy as np

from ..contention import PRICE_SCALE
from ..simplex import Floats
from .arrays import Ints
from .contention_bound import ContentionBound
from .part import Part

_LEAST = 1e-6
"""Shares and microseconds below this are rounding."""

_ONE_SIDED = 1e-3
"""What a microsecond counts for a pair of which only one is ahead: one of the halves is no worse then."""


class Split(Protocol):
    """A decision, and about how many microseconds each half is worse for it."""

    @property
    def score(self) -> float:
        """An estimate in the units that scores of one sort share."""

    is_cut: ClassVar[bool]
    """Whether it is about cuts, not about what comes first."""

    def halves(self, part: Part) -> Iterator[Part | None]:
        """Yield both halves of a part; None for one without plans, none for one that the other stands for."""


@dataclass(frozen=True, slots=True)
class CutSplit:
    """Whether one request leaves the units before one up to a place, or all that are alike above it."""

    is_cut: ClassVar[bool] = True
    score: float
    request: int
    unit: int
    place: int

    def halves(self, part: Part) -> Iterator[Part | None]:
        """Yield the part with an early cut, and that with late ones."""
        yield part.cut([self.request], self.unit, self.place, above=False)
        yield part.cut(part.alike(self.request), self.unit, self.place, above=True)


@dataclass(frozen=True, slots=True)
class OrderSplit:
    """Which of two requests is served first; requests that are alike trade places."""

    is_cut: ClassVar[bool] = False
    score: float
    first: int
    then: int

    def halves(self, part: Part) -> Iterator[Part | None]:
        """Yield the parts with either order."""
        yield part.ordered(self.first, self.then)
        if self.then not in part.alike(self.first):
            yield part.ordered(self.then, self.first)


@dataclass(frozen=True, slots=True)
class UseSplit:
    """Whether one request has a chunk on a unit, or none that are alike have."""

    is_cut: ClassVar[bool] = False
    score: float
    request: int
    unit: int

    def halves(self, part: Part) -> Iterator[Part | None]:
        """Yield the part with the chunk, and the one without."""
        yield part.using([self.request], self.unit, used=True)
        yield part.using(part.alike(self.request), self.unit, used=False)


@dataclass(frozen=True, slots=True)
class PhaseSplit:
    """Whether the second phase finds one request up to a place on its way, or all that are alike later."""

    is_cut: ClassVar[bool] = False
    score: float
    request: int
    place: int

    def halves(self, part: Part) -> Iterator[Part | None]:
        """Yield the part in which it is found early in its way, and that in which all are late."""
        yield part.on_its_way([self.request], self.place, later=False)
        yield part.on_its_way(part.alike(self.request), self.place, later=True)


class Splits:
    """Chooses splits, and learns what a score of each sort has been worth."""

    def __init__(self) -> None:
        self._gained, self._tried = [1.0, 1.0], [1, 1]

    def best(self, part: Part, program: ContentionBound) -> Split | None:
        """Return the split that promises most, or None if the program mixes nothing."""
        every = [*_cuts(program), *_orders(part, program), *_uses(part, program), *_phases(part, program)]
        some = (split for split in every if split.score > _LEAST)
        return max(some, default=None, key=self._promise)

    def _promise(self, split: Split) -> float:
        return split.score * self._gained[split.is_cut] / self._tried[split.is_cut]

    def learn(self, split: Split, gained_us: int) -> None:
        """Note by how much both halves together are worse than the whole."""
        if split.score >= 1.0:
            self._gained[split.is_cut] += gained_us / split.score
            self._tried[split.is_cut] += 1


def ahead_us(program: ContentionBound) -> Floats:
    """Return how long one request is on a later unit than another at the same time, shape (M, M)."""
    size, units = program.prices.shape
    found = np.zeros((size, size))
    for earlier, later in combinations(range(units), 2):
        behind, ahead = program.sets[:, earlier], program.sets[:, later]
        both = (behind >= 0) & (ahead >= 0)
        np.add.at(found, (ahead[both], behind[both]), program.times_us[both])
    return found


def _used(program: ContentionBound) -> Floats:
    """Return in which share of its cuts each request has a chunk on each unit, shape (M, K)."""
    pairs = zip(program.cuts, program.shares, strict=True)
    return np.array([shares @ (cuts[:, 1:] > cuts[:, :-1]) for cuts, shares in pairs])


def _cuts(program: ContentionBound) -> Iterator[Split]:
    """Yield a split for each two neighbouring cuts of which a request takes both, by shares."""
    rows = zip(program.kinds, program.prices, program.cuts, program.shares, strict=True)
    for request, (kind, prices, cuts, shares) in enumerate(rows):
        taken = shares > _LEAST
        if taken.sum() < 2:
            continue
        places, share = cuts[taken], shares[taken] / shares[taken].sum()
        paid = kind.ways.arrays.times_us(places) * prices / PRICE_SCALE
        for unit in range(1, places.shape[1] - 1):
            for low, high in pairwise(np.unique(places[:, unit]).tolist()):
                below = places[:, unit] <= low
                own = float(share[below].sum())
                means = share[below] @ paid[below] / own, share[~below] @ paid[~below] / (1 - own)
                score = min(own, 1 - own) * float(np.abs(means[0] - means[1]).sum())
                yield CutSplit(score, request, unit, min(int(own * low + (1 - own) * high), high - 1))


def _orders(part: Part, program: ContentionBound) -> Iterator[Split]:
    """Yield a split for each two requests with common units of which each is ahead at times, or one is."""
    ahead, used = ahead_us(program), _used(program)
    score = np.minimum(ahead, ahead.T) + _ONE_SIDED * np.maximum(ahead, ahead.T)
    score *= np.minimum(used @ used.T, 1.0)
    score[np.tril(np.ones_like(part.before)) | part.before | part.before.T] = 0.0
    for one, other in np.argwhere(score > _LEAST).tolist():
        first, then = (one, other) if ahead[one, other] >= ahead[other, one] else (other, one)
        yield OrderSplit(float(score[one, other]), first, then)


def _uses(part: Part, program: ContentionBound) -> Iterator[Split]:
    """Yield a split for each chunk that decides whether a request that is ahead had to wait."""
    (size, units), used = program.prices.shape, _used(program)
    used[part.sure] = 0.0
    score = np.zeros((size, units))
    for members, time_us in zip(program.sets.tolist(), program.times_us.tolist(), strict=True):
        for a, b in combinations(range(units), 2):
            i, j = members[a], members[b]
            if i >= 0 and j >= 0 and part.before[i, j]:
                chunks = [(j, a), (i, b), *((r, c) for r in (i, j) for c in range(a + 1, b))]
                chunk = max(chunks, key=used.__getitem__)
                score[chunk] += used[chunk] * time_us
    for request, unit in np.argwhere(score > _LEAST).tolist():
        yield UseSplit(float(score[request, unit]), request, unit)


def _phases(part: Part, program: ContentionBound) -> Iterator[Split]:
    """Yield a split for each request that is on a unit in the second phase, too late for something.

    In the first phase it is on a later unit, or another one is on this unit that is served after it.
    """
    if part.first is None:
        return
    size, units = program.prices.shape
    times = np.zeros((2, size, units + 1))
    running = (program.sets[:, part.first] >= 0).astype(int)
    for unit in range(part.first + 1, units):
        on = np.flatnonzero(program.sets[:, unit] >= 0)
        np.add.at(times[:, :, unit], (running[on], program.sets[on, unit]), program.times_us[on])
    second, first = times
    ahead = first[:, ::-1].cumsum(axis=1)[:, ::-1]
    alone = np.minimum(second.cumsum(axis=1)[:, :-1], ahead[:, 1:])
    for request, unit in np.argwhere(alone > _LEAST).tolist():
        yield PhaseSplit(float(alone[request, unit]), request, 2 * unit + 1)
    for request, then in np.argwhere(part.before).tolist():
        both = np.minimum(second[request], first[then])
        for unit in np.flatnonzero(both > _LEAST).tolist():
            unsure = [i for i in (request, then) if not part.sure[i, unit]]
            if unsure:
                yield UseSplit(float(both[unit]), unsure[0], unit)
            else:
                yield PhaseSplit(float(both[unit]), request, 2 * unit + 1)


def even_split(part: Part, near: dict[int, Ints] | None) -> Split | None:
    """Return a split of a part whose program mixes nothing, or None if there is but one plan in it.

    `near`: the cuts that better plans can have, by request, as places; None: not known.
    """
    if near is not None:
        request = max(near, key=lambda i: len(near[i]))
        places = near[request]
        unit = int(np.ptp(places, axis=0).argmax())
        own = np.sort(places[:, unit])
        if own[0] < own[-1]:
            middle = min(int(own[len(own) // 2]), int(own[-1]) - 1)
            return CutSplit(0.0, request, unit, middle)
    return next(_possible(part), None)


def _possible(part: Part) -> Iterator[Split]:
    """Yield splits into halves that both have plans."""
    for one, other in np.argwhere(np.triu(~(part.before | part.before.T), 1)).tolist():
        yield OrderSplit(0.0, one, other)
    for request, ways in enumerate(part.ways):
        for unit in range(1, ways.arrays.unit_count):
            for place in range(ways.size):
                split = CutSplit(0.0, request, unit, place)
                if None not in list(split.halves(part)):
                    yield split
