"""Proofs for small workloads: branch and bound over the order and the cuts.

Requests are placed one after the other, each with all its cuts at once. A node is dropped where the units
cannot be done before the best plan known: at prices of the units, when they are free and what the requests
to come pay at least; at the prices that know slowdown (`contention_bound`), what all requests pay; and no
request that is placed ends before the units are done with it without slowdown. Where this is what a plan
takes, a node is also dropped if another one with the same requests leaves every unit free as early.

Plans are measured in full, so objectives of several terms, deadlines, limits and rules of any kind are kept,
and a walk that ends without a plan has proved that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..contention import PRICE_SCALE
from ..protocol import Deadline
from .arrays import FORBIDDEN, Ints
from .contention_bound import ContentionBound
from .draft import Draft, DraftContext
from .measure import KeptSchedules, Measure
from .ways import UNREACHABLE, Ways

_MOST_CUTS = 20_000
"""Ways to cut one network that are looked at all at once."""

_FIXED = 5_000
"""Cuts that could be looked at in the time that a node takes besides."""

_MOST_FRONT = 5_000
"""Nodes with the same requests that others are compared with."""


def places_within(network: Ways, prices: Ints, discounts: Ints, most: int) -> Ints | None:
    """Return all cuts of a network that pay at most so much, or None if they are too many.

    `prices`, `discounts`: what a microsecond on each unit costs, and what a chunk there costs less, shape
    (K,).
    Cuts are places, shape (P, K + 1).
    """
    arrays = network.arrays
    rests = _rests(network, prices, discounts)
    found, paid = np.zeros((1, 1), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for unit, last in enumerate(arrays.last):
        at = found[:, -1]
        counts = last[at] - at + 1
        rows = np.repeat(np.arange(len(found)), counts)
        stops = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + at[rows]
        own = prices[unit] * (arrays.tail[unit, stops] + arrays.head[unit, at[rows]]) - discounts[unit]
        paid = paid[rows] + np.where(stops > at[rows], own, 0)
        near = paid + rests[unit + 1][stops] <= most
        if unit in network.required:
            near &= stops > at[rows]
        if near.sum() > _MOST_CUTS:
            return None
        found, paid = np.column_stack([found[rows[near]], stops[near]]), paid[near]
    return found


def _rests(network: Ways, prices: Ints, discounts: Ints) -> list[Ints]:
    """Return the least that is paid from each unit on, by unit and boundary."""
    rest = np.full(network.size + 1, UNREACHABLE)
    rest[-1] = 0
    rests = [rest]
    for unit in reversed(range(len(prices))):
        times = network.arrays.unit_times(unit)
        np.fill_diagonal(times, FORBIDDEN)
        paid = np.where(times < FORBIDDEN, times * prices[unit] - discounts[unit] + rest, UNREACHABLE)
        rest = np.minimum(paid.min(axis=1), UNREACHABLE if unit in network.required else rest)
        rests.append(rest)
    return rests[::-1]


@dataclass(frozen=True, slots=True)
class _Cuts:
    """All cuts of a request: places (P, K + 1), times (P, K), what each pays, and the least that is paid."""

    places: Ints
    times: Ints
    contended: Ints
    least: int
    least_contended: int


class Branching:
    """The search for a better plan in one context, or for the proof that there is none.

    `context`, `unit_prices`: units that may be used together, and the prices of the best bound without
    slowdown, shape (K,). `before`: whether one request is placed before another, shape (M, M). `measure`,
    `kept`: how plans compare, and the best one so far; better ones are added. `deadline`, `most_cuts`: when
    to give up: at a time, or after this number of cuts and nodes (which count `_FIXED` cuts).
    """

    def __init__(
        self,
        context: DraftContext,
        unit_prices: Ints,
        contention: ContentionBound,
        before: NDArray[np.bool_],
        *,
        measure: Measure,
        kept: KeptSchedules,
        deadline: Deadline,
        most_cuts: float,
    ) -> None:
        self._context, self._prices = context, unit_prices
        self._contention, self._before = contention, before
        self._measure, self._kept = measure, kept
        self._deadline, self._left = deadline, most_cuts
        self._fronts: dict[frozenset[int], Ints] = {}
        self._cuts: dict[int, _Cuts] = {}

    @cached_property
    def near(self) -> dict[int, Ints] | None:
        """The cuts that a better plan can have, as places, by request; None: they are too many."""
        bound = self._contention
        rows = list(zip(bound.kinds, bound.prices, bound.discounts, strict=True))
        pays = [int(kind.ways.least_priced(own[None, :], less[None, :])[0][0]) for kind, own, less in rows]
        paid = bound.waiting + sum(kind.count * one for (kind, *_), one in zip(rows, pays, strict=True))
        slack = min(PRICE_SCALE * self._most, UNREACHABLE // 2) - paid
        found: dict[int, Ints] = {}
        for (kind, own, less), one in zip(rows, pays, strict=True):
            places = places_within(kind.ways, own, less, one + slack)
            if places is None:
                return None
            found |= dict.fromkeys(kind.requests, places)
        return found

    def prove(self) -> bool:
        """Walk all that can be better; return whether the walk came to its end."""
        if self.near is None:
            return False
        if not all(map(len, self.near.values())):
            return True
        bound = self._contention
        for kind, prices, less in zip(bound.kinds, bound.prices, bound.discounts, strict=True):
            places = self.near[kind.requests[0]]
            times = kind.ways.arrays.times_us(places)
            unit_paid, paid = times @ self._prices, times @ prices - (times > 0) @ less
            own = _Cuts(places, times, paid, int(unit_paid.min()), int(paid.min()))
            self._cuts |= dict.fromkeys(kind.requests, own)
        free = np.zeros(len(self._prices), dtype=np.int64)
        least = sum(own.least_contended for own in self._cuts.values())
        return self._place((), (), free, least + bound.waiting)

    def _place(self, order: tuple[int, ...], chosen: tuple[int, ...], free: Ints, paid: int) -> bool:
        """Place one more request in all ways; return False if the time is up."""
        if len(order) == self._context.shop.request_count:
            self._take(order, chosen)
            return True
        for request in self._next(order):
            own, longer = self._cuts[request], (*order, request)
            after, bound = self._after(longer, free)
            contended = paid - own.least_contended + own.contended
            bound = np.maximum(bound, -(-contended // PRICE_SCALE))
            possible = np.flatnonzero(bound <= self._most)
            for index in possible[np.argsort(bound[possible], kind="stable")].tolist():
                if self._deadline.passed or self._left < 0:
                    return False
                if bound[index] > self._most or self._is_told(longer, (*chosen, index)):
                    continue
                if self._dominated(longer, after[index]):
                    continue
                if not self._place(longer, (*chosen, index), after[index], int(contended[index])):
                    return False
        return True

    @property
    def _most(self) -> int:
        """The largest makespan of a better plan."""
        best = self._kept.best
        return FORBIDDEN - 1 if best is None else best[1] - (len(best) == 2)

    def _next(self, order: Sequence[int]) -> Sequence[int]:
        """Return the requests that may be placed next."""
        left = [i for i in range(self._context.shop.request_count) if i not in order]
        return [i for i in left if not self._before[left, i].any()]

    def _after(self, order: tuple[int, ...], free: Ints) -> tuple[Ints, Ints]:
        """Return when each unit is free after the last of the order, shape (P, K), and the bound, (P,)."""
        request = self._context.shop.workload.requests[order[-1]]
        times = self._cuts[order[-1]].times
        self._left -= _FIXED + len(times)
        at, after = np.full(len(times), request.arrival_us), np.tile(free, (len(times), 1))
        for unit, own in enumerate(times.T):
            at = np.where(own > 0, np.maximum(at, free[unit]) + own, at)
            after[:, unit] = np.where(own > 0, at, free[unit])
        bound = np.maximum(after.max(axis=1), -(-(after @ self._prices + self._rest(order)) // PRICE_SCALE))
        if request.deadline_us is not None:
            bound[at > request.arrival_us + request.deadline_us] = FORBIDDEN
        return after, bound

    def _rest(self, order: Sequence[int]) -> int:
        """Return what the requests to come pay at least."""
        return sum(own.least for request, own in self._cuts.items() if request not in order)

    def _is_told(self, order: Sequence[int], chosen: Sequence[int]) -> bool:
        """Return whether the last two requests share no unit, and trade places in a plan that is walked."""
        if len(order) < 2 or not self._measure.by_units:
            return False
        first, then = order[-2:]
        if first < then or self._before[first, then]:
            return False
        rows = (
            self._cuts[request].times[index] for request, index in zip(order[-2:], chosen[-2:], strict=True)
        )
        return not any(map(int.__mul__, *(row.tolist() for row in rows)))

    def _dominated(self, order: Sequence[int], free: Ints) -> bool:
        """Return whether another way to place these requests is as good, and remember this one if not."""
        if not self._measure.is_longest_path:
            return False
        placed = frozenset(order)
        front = self._fronts.get(placed, free[None, :0].reshape(0, len(free)))
        if (front <= free).all(axis=1).any():
            return True
        kept = front[(front < free).any(axis=1)][-_MOST_FRONT:]
        self._fronts[placed] = np.concatenate([kept, free[None, :]])
        return False

    def _take(self, order: tuple[int, ...], chosen: tuple[int, ...]) -> None:
        """Keep a plan if it is better than the best one."""
        places = {i: tuple(self._cuts[i].places[c].tolist()) for i, c in zip(order, chosen, strict=True)}
        schedule = self._context.schedule(Draft(order, tuple(places[i] for i in sorted(places))))
        key = self._measure.of(schedule).key
        if self._kept.wants(key):
            self._kept.add(key, schedule)
