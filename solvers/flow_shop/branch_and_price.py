"""Branch and price for workloads: the contention bound, with more and more decided.

A part of all plans: what has been decided about the cuts, the units, the order and the times of requests.
Where all requests are there from the start, the first unit has no gap: a chunk on it waits for nothing but
the chunks before it. So each plan has two phases, while the first unit runs and after it. When the second one
begins, each request is somewhere on its way: before unit k (2 k), on it (2 k + 1), or after the last one
(2 K). So in the first phase it is on units up to there, and in the second from there on.

Branch and price for workloads: the contention bound (`contention_bound`), with more and more decided. The
linear program behind the bound mixes cuts of one request, and lets requests run together that cannot: who is
served later may be ahead, or wait for company. So a part of all plans is split in two, at what its program
mixes most, and the program of each half starts from the sets and cuts of the whole. The part with
the least bound is split first, so its bound holds for all plans. Each program suggests a plan: the cuts with
the largest shares, in the order in which requests are ahead. Parts without a better plan are dropped, and
those in which few plans can be better are walked (`branching`): so the search ends with a proof.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, pairwise
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...formulations.deployment import Mode
from ...formulations.flow_shop.tables import FlowShop
from ..contention import PRICE_SCALE, Company, Floats, are_few
from ..protocol import NEVER, Deadline
from .arrays import FORBIDDEN, Ints, without
from .bounds import TermBounds
from .branching import Branching
from .contention_bound import ContentionBound, Kind, able_of, company_of, contention_bound
from .draft import Draft, DraftContext
from .measure import KeptSchedules, Measure
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


_FEW_PLANS, _FEW_ORDERS = 5_000, 200_000
"""Parts of this number of plans, and this number of orders of requests whose cuts are known, are walked."""

_WALK = 10
"""As how many linear programs one walk counts."""


class BranchAndPrice:
    """The search for a better plan in one context, or for the proof that there is none.

    `measure`, `kept`: how plans compare, and the best ones so far; better ones are added.
    """

    def __init__(
        self,
        context: DraftContext,
        bounds: TermBounds,
        groups: Sequence[Sequence[int]],
        measure: Measure,
        kept: KeptSchedules,
    ) -> None:
        self._context, self._bounds, self._groups = context, bounds, groups
        self._shop, self._measure, self._kept = context.shop, measure, kept
        self._deadline = NEVER
        self._splits = Splits()
        self._open: list[tuple[int, int, Part, ContentionBound]] = []
        """Parts that may hold a better plan, by bound and number, and the programs behind them."""
        self._programs = 0

    @staticmethod
    def applies(shop: FlowShop) -> bool:
        """Return whether requests are served once, and who can run together are few enough to be listed."""
        return shop.workload.mode is Mode.BATCH and are_few(shop.request_count, shop.unit_count)

    @cached_property
    def _whole(self) -> Part:
        """The part that all plans are in."""
        count = self._shop.request_count
        ways = {request: kind.ways for kind in self._bounds.contention.kinds for request in kind.requests}
        group = {request: own[0] for own in self._groups for request in own}
        before = np.triu(np.ones((count, count), dtype=np.bool_), 1)
        workload, units = self._shop.workload, {unit for own in ways.values() for unit in own.units}
        phased = workload.task_slots is None and len({own.arrival_us for own in workload.requests}) == 1
        return Part(
            ways=tuple(ways[request] for request in range(count)),
            before=before & (not self._shop.order_is_free),
            group=tuple(group.get(request, request) for request in range(count)),
            first=min(units) if phased else None,
            spans=((0, 2 * self._shop.unit_count),) * count,
        )

    @cached_property
    def _company(self) -> Company:
        return company_of(self._shop, self._whole.kinds(self._shop.chain_of))

    def prove(self, deadline: Deadline, most_programs: float, on_bound: Callable[[int], None]) -> bool:
        """Split what can be better; return whether nothing is left. Asked again, it goes on.

        `deadline`, `most_programs`: when to give up: at a time, or after this number of linear programs.
        """
        self._deadline = deadline
        if not self._open:
            self._add(self._whole, 0, None)
        while self._open and self._open[0][0] <= self._most:
            on_bound(self._open[0][0])
            if deadline.passed or self._programs >= most_programs:
                return False
            bound_us, number, part, program = heapq.heappop(self._open)
            split = self._split(part, program)
            if split is not None:
                gained = [self._add(half, bound_us, program) for half in split.halves(part)]
                self._splits.learn(split, sum(gained))
            elif deadline.passed:
                heapq.heappush(self._open, (bound_us, number, part, program))
                return False
        return True

    @property
    def _most(self) -> int:
        """The largest makespan of a better plan."""
        best = self._kept.best
        return FORBIDDEN - 1 if best is None else best[1] - (len(best) == 2)

    def _add(self, part: Part | None, least_us: int, known: ContentionBound | None) -> int:
        """Bound a part, and keep it if it can hold a better plan; return by how much its bound is better."""
        most = self._most
        if part is None:
            return most - least_us
        kinds = part.kinds(self._shop.chain_of)
        company = self._company.within(able_of(kinds, self._shop.unit_count), part.apart())
        program = contention_bound(self._shop, kinds, self._deadline, company=company, known=known)
        self._programs += 1
        bound_us = max(program.bound_us, least_us)
        if bound_us <= most:
            self._suggest(part, program)
            heapq.heappush(self._open, (bound_us, self._programs, part, program))
        return min(bound_us, most) - least_us

    def _suggest(self, part: Part, program: ContentionBound) -> None:
        """Try the plan that a program is about."""
        ahead = ahead_us(program)
        left, order = list(range(self._shop.request_count)), list[int]()
        while left:
            free = [i for i in left if not part.before[left, i].any()]
            order.append(max(free, key=lambda i: float((ahead[i, left] - ahead[left, i]).sum())))
            left.remove(order[-1])
        pairs = zip(program.cuts, program.shares, strict=True)
        places = tuple(tuple(cuts[shares.argmax()].tolist()) for cuts, shares in pairs)
        schedule = self._context.schedule(Draft(tuple(order), places))
        key = self._measure.of(schedule).key
        if self._kept.wants(key):
            self._kept.add(key, schedule)

    def _split(self, part: Part, program: ContentionBound) -> Split | None:
        """Return how to split a part, or None if no plan in it is better than the best one, or time is up."""
        split, before = self._splits.best(part, program), part.settled()
        orders = orders_within(before, _FEW_PLANS if split else _FEW_ORDERS)
        if orders is None and split:
            return split
        walk = Branching(
            self._context,
            self._bounds.prices.best,
            program,
            before,
            measure=self._measure,
            kept=self._kept,
            deadline=self._deadline,
            most_cuts=math.inf,
        )
        near = walk.near
        if near is not None and orders is not None:
            cuts = math.prod(map(len, near.values()))
            if cuts <= 1 or orders * cuts <= _FEW_PLANS:
                self._programs += _WALK
                if walk.prove():
                    return None
        return split or even_split(part, near)


def orders_within(before: Pairs, most: int) -> int | None:
    """Return in how many orders the requests can be served, or None if that is more than so many."""
    free = max(np.count_nonzero(~before.any(axis=0)), np.count_nonzero(~before.any(axis=1)))
    if math.factorial(free) > most:
        return None
    needed = [sum(1 << int(i) for i in np.flatnonzero(column)) for column in before.T]

    @cache
    def count(placed: int) -> int:
        ready = [i for i, own in enumerate(needed) if not placed >> i & 1 and own & placed == own]
        return sum(count(placed | 1 << i) for i in ready) if ready else 1

    found = count(0)
    return found if found <= most else None
