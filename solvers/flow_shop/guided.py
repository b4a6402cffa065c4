"""Schedules that do what the program behind the contention bound says: which cuts, and who beside whom.

The program says which share of the requests of a kind takes which cuts, and how much longer than alone each
kind takes on each unit in the company that it should have. With these times, the order is built from the
front: a beam of partial orders, of which those are kept that leave the units least idle, a microsecond of
a unit counting what it costs the whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .arrays import PRICE_SCALE, Ints
from .contention_bound import ContentionBound
from .draft import Draft, DraftContext, Places
from .simplex import Floats

_WIDTH, _LOOKED_AT = 16, 64
"""Partial orders that are kept, and of how many the distinct ones are looked for."""

_MOST_DRAFTS = 3
"""Orders that are played."""


def guided_drafts(context: DraftContext, bound: ContentionBound) -> Iterator[Draft]:
    """Yield drafts that follow the program behind a bound; with a fixed order its cuts only.

    Parameters
    ----------
    context
        What is planned.
    bound
        The bound of the same requests on the same units.
    """
    stretches = _stretches(bound)
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
