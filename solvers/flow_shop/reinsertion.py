"""The move that shortens the makespan: take requests out, and put each back where it fits best."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .draft import Draft, DraftContext, Places, slowed
from .line import Row, Sides, end_us, put_back

_SURPRISE_FREE, _SURPRISE_FIXED = 0.2, 0.9
"""How often a third request is cut otherwise before: with a fixed order nothing else brings variety."""

_LOOSER = 4
"""A request that does not fit by the end of the plan may make it so many times as long for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Positions [start, stop) of the order, with what is around them."""

    start: int
    stop: int
    sides: Sides


class Reinsertion:
    """Takes two requests out of a stretch, puts them back, and gives the first a second try."""

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
