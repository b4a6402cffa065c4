"""Moves for any objective: each takes a draft and proposes another one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .arrays import FORBIDDEN, Ints
from .bounds import scaled
from .draft import Draft, DraftContext, Places
from .line import Row

_NOISE = 0.7
"""Standard deviation of the logarithm of prices when they are drawn anew."""

_COLUMN_NOISE = 0.4
"""The same of the columns that a request is fitted to for a try."""

_LESS_WORK = 10
"""Of cuts that are equally good, the ones with less work: it counts 1 in two to the power of this."""


class Moves:
    """The moves.

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
