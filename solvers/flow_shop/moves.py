"""The moves of the local search: each takes a draft and proposes another one."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .arrays import FORBIDDEN, Ints
from .bounds import scaled
from .draft import Draft, DraftContext, Places, slowed
from .line import Row, Sides, end_us, put_back

_NOISE = 0.7
"""Standard deviation of the logarithm of prices when they are drawn anew."""

_COLUMN_NOISE = 0.4
"""The same of the columns that a request is fitted to for a try."""

_LESS_WORK = 10
"""Of cuts that are equally good, the ones with less work: it counts 1 in two to the power of this."""

_SURPRISE_FREE, _SURPRISE_FIXED = 0.2, 0.9
"""How often a third request is cut otherwise before: with a fixed order nothing else brings variety."""

_LOOSER = 4
"""A request that does not fit by the end of the plan may make it this many times as long for now."""


class Moves:
    """The moves that serve any objective.

    `prices`: good prices of the units, shape (K,).
    """

    def __init__(self, context: DraftContext, prices: Ints, rng: random.Random) -> None:
        self._context, self._prices, self._rng = context, prices, rng

    def reprice(self, draft: Draft) -> Draft:
        """Give one or two requests the cheapest cuts at other prices."""
        count = min(len(draft.order), self._rng.choice((1, 1, 2)))
        chosen = self._rng.sample(draft.order, count)
        return draft.with_places({request: self.priced(request) for request in chosen})

    def priced(self, request: int) -> Places:
        """Return the cheapest cuts of a request at prices around the good ones."""
        noise = [math.exp(self._rng.gauss(0, _NOISE)) for _ in self._prices]
        prices = scaled((self._prices + 1) * np.array(noise))
        places: Places = tuple(self._context.ways(request).least_priced(prices[None, :])[1][0].tolist())
        return places

    def shift(self, draft: Draft) -> Draft:
        """Move one cut of one request, to anywhere between its neighbours."""
        request = self._rng.choice(draft.order)
        places = list(draft.places[request])
        if len(places) < 3:
            return draft
        index = self._rng.randrange(1, len(places) - 1)
        low, high = places[index - 1], places[index + 1]
        if self._rng.random() < 0.5:
            low, high = max(low, places[index] - 1), min(high, places[index] + 1)
        places[index] = self._rng.randint(low, high)
        if not self._context.ways(request).allows(places):
            return draft
        return draft.with_places({request: tuple(places)})

    def scatter(self, draft: Draft) -> Draft:
        """Cut one request anywhere."""
        request = self._rng.choice(draft.order)
        size, units = self._context.ways(request).size, self._context.shop.unit_count
        inner = sorted(self._rng.randint(0, size) for _ in range(units - 1))
        places = (0, *inner, size)
        return draft.with_places({request: places}) if self._context.ways(request).allows(places) else draft

    def reorder(self, draft: Draft) -> Draft:
        """Exchange two requests, or take one to another position; nothing if the order is fixed."""
        if not self._context.shop.order_is_free or len(draft.order) < 2:
            return draft
        order = list(draft.order)
        one, other = self._rng.sample(range(len(order)), 2)
        if self._rng.random() < 0.5:
            order[one], order[other] = order[other], order[one]
        else:
            order.insert(other, order.pop(one))
        return replace(draft, order=tuple(order))

    def level_columns(self, draft: Draft) -> Draft:
        """Recut some neighbours as if their columns were otherwise, then all around them as they are."""
        if self._rng.random() < 0.3:
            draft = self.reorder(draft)
        count, reach = len(draft.order), self._context.shop.unit_count
        first = self._rng.randrange(count)
        stop = min(count, first + self._rng.randint(1, 3))
        for position in range(first, stop):
            beside = self._beside(draft, position)
            noisy = [int(time * math.exp(self._rng.gauss(0, _COLUMN_NOISE))) for time in beside]
            draft = self._recut(draft, draft.order[position], np.maximum, noisy, np.add)
        near = range(max(0, first - reach + 1), min(count, stop + reach - 1))
        for position in self._rng.sample(near, len(near)):
            beside = self._beside(draft, position)
            draft = self._recut(draft, draft.order[position], np.maximum, beside, np.add)
        return draft

    def level_loads(self, draft: Draft) -> Draft:
        """Recut two requests, one after the other, so that the largest load is small."""
        for request in self._rng.sample(draft.order, min(2, len(draft.order))):
            rows = self._context.rows(draft, range(len(draft.order)))
            others = [sum(times) - times[request] for times in zip(*rows, strict=True)]
            draft = self._recut(draft, request, np.add, others, np.maximum)
        return draft

    def _beside(self, draft: Draft, position: int) -> Row:
        """Return the longest chunk of the others in each column that a position takes part in."""
        units = range(self._context.shop.unit_count)
        longest = [0] * len(units)
        for other in range(max(0, position - len(units) + 1), min(len(draft.order), position + len(units))):
            if other != position:
                request = draft.order[other]
                row = self._context.row(request, draft.places[request])
                for unit in units:
                    own = unit + other - position
                    if 0 <= own < len(units):
                        longest[own] = max(longest[own], row[unit])
        return tuple(longest)

    def _recut(
        self, draft: Draft, request: int, beside: np.ufunc, others: Sequence[int], along: np.ufunc
    ) -> Draft:
        """Recut a request to the least `along`, over the units, of `beside`(others, its own time)."""
        times = self._context.ways(request).arrays.times
        best = np.full(times.shape[1], FORBIDDEN)
        best[0] = 0
        starts = []
        for unit, other in enumerate(others):
            cost = beside(other, times[unit])
            if along is np.add:
                cost = cost + (times[unit] >> _LESS_WORK)
            total = along(best[:, None], cost)
            start = total.argmin(axis=0)
            starts.append(start)
            best = np.minimum(total[start, np.arange(len(start))], FORBIDDEN)
        if best[-1] >= FORBIDDEN:
            return draft
        places = [len(best) - 1]
        for start in reversed(starts):
            places.append(int(start[places[-1]]))
        return draft.with_places({request: tuple(reversed(places))})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Positions [start, stop) of the order, with what is around them."""

    start: int
    stop: int
    sides: Sides


class Reinsertion:
    """The move that shortens the makespan: takes two requests out, and puts each back where it fits best.

    Both are of one stretch, and the first gets a second try.
    """

    def __init__(self, context: DraftContext, recut: Callable[[int], Places], rng: random.Random) -> None:
        self._context, self._recut, self._rng = context, recut, rng
        self._surprise = _SURPRISE_FREE if context.shop.order_is_free else _SURPRISE_FIXED

    def __call__(self, draft: Draft, rates: Sequence[Row] | None, stretch: Stretch, limit_us: int) -> Draft:
        """Return a draft whose stretch may be shorter.

        `rates`: by how much slowdown stretches each request on each unit, permille by request; None: not.
        """
        work = _Work(self._context, draft, rates, stretch, self._rng)
        chosen = self._choose(work.order)
        if len(work.order) > len(chosen) and self._rng.random() < self._surprise:
            near = self._choose([request for request in work.order if request not in chosen])[0]
            work.recut(near, self._recut(near))
            chosen.append(near)
        for request in chosen[:2]:
            work.take(request)
        for request in chosen[:2]:
            if not (work.put(request, limit_us) or work.put(request, _LOOSER * limit_us)):
                return draft
        for request in (*chosen[2:], *chosen[:1]):
            work.retry(request)
        return work.draft()

    def _choose(self, order: list[int]) -> list[int]:
        if self._context.shop.order_is_free or len(order) < 2:
            return self._rng.sample(order, min(2, len(order)))
        reach = self._context.shop.unit_count
        first = self._rng.randrange(len(order))
        near = [at for at in range(first - reach, first + reach + 1) if 0 <= at < len(order) and at != first]
        return [order[first], order[self._rng.choice(near)]]


class _Work:
    """A stretch at work: requests are taken out and put back."""

    def __init__(
        self,
        context: DraftContext,
        draft: Draft,
        rates: Sequence[Row] | None,
        stretch: Stretch,
        rng: random.Random,
    ) -> None:
        self._context, self._draft, self._rates, self._stretch, self._rng = (
            context,
            draft,
            rates,
            stretch,
            rng,
        )
        self._fixed = not context.shop.order_is_free
        self.order = list(draft.order[stretch.start : stretch.stop])
        self._rows = {request: self._row(request, draft.places[request]) for request in self.order}
        self._changes: dict[int, Places] = {}
        self._nothing = (0,) * context.shop.unit_count

    def _row(self, request: int, places: Places) -> Row:
        row = self._context.row(request, places)
        return row if self._rates is None else slowed(row, self._rates[request])

    def take(self, request: int) -> None:
        """Take a request out; with a fixed order it keeps its position, without work."""
        self._rows[request] = self._nothing
        if not self._fixed:
            self.order.remove(request)

    def put(self, request: int, limit_us: int) -> bool:
        """Put a request back so that the plan ends early; return whether it ends in time."""
        ways = self._context.ways(request)
        if self._rates is not None:
            ways = ways.slowed(self._rates[request])
        spot = put_back(
            ways,
            self._context.arrivals_us[request],
            (self._in_order(), self._arrivals()),
            self._stretch.sides,
            limit_us=limit_us,
            rng=self._rng,
            indices=(self.order.index(request),) if self._fixed else None,
        )
        if spot is None:
            return False
        self._set(request, spot.index, spot.places)
        return True

    def recut(self, request: int, places: Places) -> None:
        """Cut a request otherwise, where it is."""
        self._changes[request] = places
        self._rows[request] = self._row(request, places)

    def retry(self, request: int) -> None:
        """Take a request out and put it back if that makes the plan shorter."""
        limit_us = end_us(self._in_order(), self._arrivals(), self._stretch.sides)
        index, places = self.order.index(request), self._changes[request]
        self.take(request)
        if not self.put(request, limit_us - 1):
            self._set(request, index, places)

    def draft(self) -> Draft:
        """Return the draft as it is now."""
        start, stop = self._stretch.start, self._stretch.stop
        order = (*self._draft.order[:start], *self.order, *self._draft.order[stop:])
        return replace(self._draft.with_places(self._changes), order=order)

    def _set(self, request: int, index: int, places: Places) -> None:
        self.recut(request, places)
        if not self._fixed:
            self.order.insert(index, request)

    def _in_order(self) -> list[Row]:
        return [self._rows[request] for request in self.order]

    def _arrivals(self) -> list[int]:
        return [self._context.arrivals_us[request] for request in self.order]
