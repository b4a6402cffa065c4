"""A schedule that does what the program behind the contention bound says: which cuts, and who beside whom.

The program says which share of the requests of a kind takes which cuts, and how much longer than alone each
kind takes on each unit in the company that it should have. With these times, the order is built from the
front: a beam of partial orders, of which those are kept that leave the units least idle, a microsecond of
a unit counting what it costs the whole.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator

import numpy as np

from ..protocol import NEVER, Deadline
from .arrays import PRICE_SCALE, Ints
from .contention_bound import ContentionBound
from .draft import Draft, DraftContext, Places, slowed
from .line import Sides, put_back
from .simplex import Floats

_WIDTH, _LOOKED_AT = 16, 64
"""Partial orders that are kept, and of how many the distinct ones are looked for."""

_MOST_INSERTED = 40
"""Requests of which each is put in at its best place."""

_MOST_DRAFTS = 3
"""Orders that are played."""


def guided_drafts(
    context: DraftContext, bound: ContentionBound, deadline: Deadline = NEVER
) -> Iterator[Draft]:
    """Yield drafts that follow the program behind a bound; with a fixed order its cuts only.

    Parameters
    ----------
    context
        What is planned.
    bound
        The bound of the same requests on the same units.
    deadline
        When to go without the draft that takes longest to make.
    """
    stretches = _stretches(bound)
    if len(context.arrivals_us) <= _MOST_INSERTED:
        inserted = _inserted(context, bound, stretches, deadline)
        if inserted is not None:
            yield inserted
    groups = [group for number in range(len(bound.kinds)) for group in _shared_out(bound, number)]
    of_request: dict[int, Places] = {request: cuts for _, cuts, own in groups for request in own}
    places = tuple(of_request[request] for request in range(len(of_request)))
    if not context.shop.order_is_free:
        yield Draft(tuple(range(len(places))), places)
        return
    kinds = [number for number, _, _ in groups]
    rows = np.array([context.row(own[0], cuts) for _, cuts, own in groups]) * stretches[kinds]
    worth = (bound.prices[kinds] * rows).sum(axis=0) / np.maximum(rows.sum(axis=0), 1.0)
    for found in _least_idle(rows, np.array([len(own) for _, _, own in groups]), worth / PRICE_SCALE):
        waiting = [iter(own) for _, _, own in groups]
        yield Draft(tuple(next(waiting[group]) for group in found), places)


def _inserted(
    context: DraftContext, bound: ContentionBound, stretches: Floats, deadline: Deadline
) -> Draft | None:
    """Return a draft built by putting in one request after the other where it fits best, dear ones first.

    None: there was no time for it.
    """
    rates, paid = {}, {}
    for kind, prices, stretch in zip(bound.kinds, bound.prices, stretches, strict=True):
        rate = tuple((1000 * stretch).astype(np.int64).tolist())
        cost = int(kind.ways.least_priced(prices[None, :])[0][0])
        for request in kind.requests:
            rates[request], paid[request] = rate, cost
    idle = (0,) * context.shop.unit_count
    sides, rng = Sides(ready_us=idle, after_us=idle), random.Random(0)
    order: list[int] = []
    places: dict[int, Places] = {}
    for request in sorted(paid, key=lambda request: -paid[request]):
        if deadline.passed:
            return None
        rows = [slowed(context.row(other, places[other]), rates[other]) for other in order]
        spot = put_back(
            context.ways(request).slowed(rates[request]),
            context.arrivals_us[request],
            (rows, [context.arrivals_us[other] for other in order]),
            sides,
            limit_us=2 * context.shop.horizon_us,
            rng=rng,
            indices=None if context.shop.order_is_free else (bisect(order, request),),
        )
        assert spot is not None
        order.insert(spot.index, request)
        places[request] = spot.places
    return Draft(tuple(order), tuple(places[request] for request in range(len(places))))


def _shared_out(bound: ContentionBound, number: int) -> list[tuple[int, Places, list[int]]]:
    """Return (kind, cuts, requests) for the cuts of one kind that requests should take."""
    requests = list(bound.kinds[number].requests)
    wanted = bound.shares[number] / max(bound.shares[number].sum(), 1e-9) * len(requests)
    counts = np.floor(wanted + 1e-6).astype(np.int64)
    missing = len(requests) - int(counts.sum())
    counts[np.argsort(counts - wanted)[:missing]] += 1
    groups = []
    for cuts, count in zip(bound.cuts[number].tolist(), counts.tolist(), strict=True):
        if count:
            groups.append((number, tuple(cuts), requests[:count]))
            requests = requests[count:]
    return groups


def _stretches(bound: ContentionBound) -> Floats:
    """Return how many times as long as alone each kind takes on each unit in its company, shape (N, K)."""
    busy = np.zeros(bound.prices.shape)
    for unit, numbers in enumerate(bound.sets.T):
        there = numbers >= 0
        np.add.at(busy[:, unit], numbers[there], bound.times_us[there])
    work = [
        kind.count * shares @ kind.ways.arrays.times_us(cuts)
        for kind, cuts, shares in zip(bound.kinds, bound.cuts, bound.shares, strict=True)
    ]
    return np.maximum(busy / np.maximum(np.array(work), 1.0), 1.0)


def _least_idle(rows: Floats, counts: Ints, worth: Floats) -> Iterator[list[int]]:
    """Yield orders of groups, each as often as it has requests, in which the units are little idle.

    Parameters
    ----------
    rows, counts
        Time on each unit and number of the requests of each group, shapes (G, K) and (G,).
    worth
        What a microsecond of each unit costs, shape (K,).
    """
    free, left, lost = np.zeros((1, rows.shape[1])), counts[None, :], rows @ worth
    steps: list[tuple[Ints, Ints]] = []
    done = np.zeros(1)
    for _ in range(int(counts.sum())):
        ends = np.repeat(free[:, None, :], len(rows), axis=1)
        at = np.zeros((len(free), len(rows)))
        for unit, works in enumerate(rows.T):
            runs = np.flatnonzero(works)
            end = np.maximum(ends[:, runs, unit], at[:, runs]) + works[runs]
            ends[:, runs, unit] = at[:, runs] = end
        idle = np.where(left > 0, ends @ worth - done[:, None] - lost, np.inf).ravel()
        best = np.argsort(idle)[:_LOOKED_AT]
        best = best[np.isfinite(idle[best])]
        distinct = np.unique(idle[best].round(), return_index=True)[1]
        parents, groups = np.divmod(best[distinct[:_WIDTH]], len(rows))
        steps.append((parents, groups))
        free, done = ends[parents, groups], done[parents] + lost[groups]
        left = left[parents] - np.eye(len(rows), dtype=np.int64)[groups]
    for last in range(min(len(free), _MOST_DRAFTS)):
        order, state = [], last
        for parents, groups in reversed(steps):
            order.append(int(groups[state]))
            state = int(parents[state])
        yield order[::-1]
