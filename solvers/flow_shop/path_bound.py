"""A lower bound on the makespan of requests in a given order: prices of paths (formulations, section 6).

Take requests i < j and a unit k. What i does before k, all chunks on k from i to j, and what j does after k
come one after the other, so together they take at most the makespan. Where i skips k, what it does before is
not on the path, and where j skips k, what it does after is not. So for weights of paths that add up to 1 the
makespan is at least the sum over the requests of the least that each adds, over its cuts: for each set of
units that it uses, that is a price for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..contention import PRICE_SCALE
from ..protocol import NEVER, Deadline
from ..simplex import Floats
from .arrays import Ints
from .kinds import Kind
from .ways import UNREACHABLE

_MOST_REQUESTS, _MOST_UNITS = 64, 6
"""Larger workloads have too many paths, or sets of units."""

_ROUNDS, _FIRST_STEP, _DECAY = 120, 4.0, 0.985
"""Updates of the weights; exponent of the first one, and by how much it shrinks."""

_AVOIDED = 64 * PRICE_SCALE
"""Price of a unit outside the set: any price keeps the bound, a high one makes it good."""


def path_bound_us(kinds: Sequence[Kind], deadline: Deadline = NEVER) -> int:
    """Return the bound with the best weights that are found in time; 0 where the workload is too large.

    Multiplicative updates: paths that are long at the cheapest cuts weigh more.

    `kinds`: the requests, numbered in the order that is given; each can be run.
    """
    count, units = sum(kind.count for kind in kinds), kinds[0].ways.arrays.unit_count
    longest = max(int(np.abs(kind.ways.tail).max() + np.abs(kind.ways.head).max()) for kind in kinds)
    if not 1 < count <= _MOST_REQUESTS or units > _MOST_UNITS or longest * units * _AVOIDED >= UNREACHABLE:
        return 0
    paths = np.triu(np.ones((count, count)), 1)[:, :, None] * np.ones(units)
    weights, alone = paths / max(paths.sum(), 1.0), np.full(count, 1.0 / count)
    mean = np.zeros((3, count, units))
    best, step = 0, _FIRST_STEP
    for number in range(_ROUNDS):
        total = weights.sum() + alone.sum()
        weights, alone = weights / total, alone / total
        bound, adds = _ask(kinds, *(np.floor(w * PRICE_SCALE).astype(np.int64) for w in (weights, alone)))
        best = max(best, bound)
        mean = adds if number == 0 else 0.7 * mean + 0.3 * adds
        before, own, after = mean
        done = own.cumsum(axis=0)
        lengths = (before - done + own)[:, None, :] + (done + after)[None, :, :]
        serial = own.sum(axis=1)
        most = max(float((lengths * paths).max()), float(serial.max()), 1.0)
        weights = np.maximum(weights * np.exp(step * (lengths / most - 1.0)), 1e-12) * paths
        alone = np.maximum(alone * np.exp(step * (serial / most - 1.0)), 1e-12)
        step *= _DECAY
        if deadline.passed:
            break
    return -(-best // PRICE_SCALE)


def _ask(kinds: Sequence[Kind], weights: Ints, alone: Ints) -> tuple[int, Floats]:
    """Return what all requests add at least, in parts of the scale, and the cuts that do.

    `weights`: of the paths by (i, j, k), shape (m, m, K); `alone`: of all chunks of one request, shape (m,).
    Returns the time of each request before, on and after each unit, shape (3, m, K); before and after are 0
    for units that it skips.
    """
    begun = weights.cumsum(axis=0)[:, ::-1].cumsum(axis=1)[:, ::-1]
    on = np.diagonal(begun).T + alone[:, None]
    prices = _by_set(on, weights.sum(axis=1), weights.sum(axis=0))
    total, times = 0, np.zeros((len(alone), weights.shape[2]))
    for kind in kinds:
        own = list(kind.requests)
        rows = prices[own]
        sums, places = kind.ways.least_priced(rows.reshape(-1, rows.shape[2]))
        sums = sums.reshape(rows.shape[:2])
        chosen = sums.argmin(axis=1)
        total += sum(sums.min(axis=1).tolist())
        at = np.arange(len(own)) * rows.shape[1] + chosen
        times[own] = kind.ways.arrays.times_us(places[at])
    used, done = times > 0, times.cumsum(axis=1)
    before = np.where(used, done - times, 0.0)
    after = np.where(used, done[:, -1:] - done, 0.0)
    return total, np.array([before, times, after])


def _by_set(on: Ints, begin: Ints, end: Ints) -> Ints:
    """Return the prices of the units for each set of units that a request may use, shape (m, 2^K - 1, K).

    `on`, `begin`, `end`: weights of the paths that each request is on with each unit, begins there, and ends
    there; (m, K).
    """
    units = on.shape[1]
    sets = np.arange(1, 1 << units)[:, None] >> np.arange(units) & 1
    later, earlier = np.tri(units, k=-1, dtype=np.int64), np.tri(units, k=-1, dtype=np.int64).T
    prices = on[:, None, :] + (begin[:, None, :] * sets) @ later + (end[:, None, :] * sets) @ earlier
    return np.where(sets > 0, prices, _AVOIDED)
