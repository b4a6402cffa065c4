"""Ordering requests so that those of high contention stay apart: P3 of Hetero2Pipe, exactly.

Requests of high contention (H) share a column of the pipeline when their positions differ by d < K. The
order has the least violation, the sum of K - d over such pairs, and among those the least displacement,
the sum of the distances from the positions of arrival.

Neither sum tells two H apart, or two L, and crossing two equals never brings both closer to home: the
order among the H and among the L stays. With N_p and O_p the number of H among the first p positions,
now and on arrival, displacement is then 2 x sum of |N_p - O_p| (the earth mover's distance on a line,
once for H and once for L). So a state is (H placed, which of the last K - 1 positions are H), and
dynamic programming is exact in O(M |H| 2^(K-1)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...formulations.errors import InvalidInputError
from .arrays import Ints

MOST_REACH = 18
"""Largest window that is looked at exactly: its states grow as 2^(K - 1)."""

_NEVER = 2**62
"""Cost of a state that cannot be."""


def order_by_contention(high: Sequence[bool], reach: int) -> tuple[int, ...]:
    """Return the order with the least (violation, displacement).

    `high`: whether each request is of high contention, in order of arrival; M values. `reach`: units K: two
    requests disturb each other at distances below K.
    The result has the request at each position.
    """
    if reach <= 1 or sum(high) in (0, len(high)):
        return tuple(range(len(high)))
    window = min(reach, len(high))
    if window > MOST_REACH:
        raise InvalidInputError(
            f"{len(high)} requests on {reach} units: the exact order is found for up to {MOST_REACH} of "
            "either; minimise contention,displacement with an exact backend such as 'cpsat' instead"
        )
    return merge(high, _pattern(high, window, reach))


def merge(high: Sequence[bool], pattern: Sequence[bool]) -> tuple[int, ...]:
    """Return the order that puts the H where `pattern` has them, both kinds in order of arrival."""
    places = sorted(range(len(pattern)), key=lambda place: not pattern[place])
    requests = sorted(range(len(high)), key=lambda request: not high[request])
    order = dict(zip(places, requests, strict=True))
    return tuple(order[place] for place in range(len(high)))


def violation_of(pattern: Sequence[bool], reach: int) -> int:
    """Return the sum over pairs of H at distance d < K of K - d."""
    places = [place for place, high in enumerate(pattern) if high]
    return sum(max(0, reach - (v - u)) for i, u in enumerate(places) for v in places[i + 1 : i + reach])


def displacement_of(order: Sequence[int]) -> int:
    """Return the sum over requests of the distance from the position of arrival."""
    return sum(abs(place - request) for place, request in enumerate(order))


def _pattern(high: Sequence[bool], window: int, reach: int) -> list[bool]:
    """Return where the H go. Bit d - 1 of a mask says that the position d before is H."""
    count, half = sum(high), 2 ** (window - 2)
    price = _prices(window, reach) * (len(high) ** 2 + 1)
    cost = np.full((count + 1, 2 * half), _NEVER, dtype=np.int64)
    cost[0, 0] = 0
    places, arrived = np.arange(count + 1)[:, None], 0
    dropped = []
    for is_high in high:
        arrived += is_high
        cost, bits = _place(cost, price)
        dropped.append(np.packbits(bits))
        cost += 2 * np.abs(places - arrived)
    return _walk_back(cost, dropped, half)


def _prices(window: int, reach: int) -> Ints:
    """Return what it costs to place an H after each mask."""
    masks = np.arange(2 ** (window - 1))
    return sum(((masks >> (d - 1)) & 1) * (reach - d) for d in range(1, window)) + 0 * masks


def _place(cost: Ints, price: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the costs after one more position, and the oldest bit that each best predecessor drops."""
    placed, masks = cost.shape
    low = cost.reshape(placed, 2, masks // 2)
    high = (cost + price).reshape(placed, 2, masks // 2)
    after = np.full((placed, masks // 2, 2), _NEVER, dtype=np.int64)
    after[:, :, 0] = low.min(axis=1)
    after[1:, :, 1] = high[:-1].min(axis=1)
    bits = np.zeros(after.shape, dtype=np.bool_)
    bits[:, :, 0] = low[:, 1] < low[:, 0]
    bits[1:, :, 1] = (high[:, 1] < high[:, 0])[:-1]
    return np.minimum(after, _NEVER).reshape(placed, masks), bits


def _walk_back(cost: Ints, dropped: Sequence[NDArray[np.uint8]], half: int) -> list[bool]:
    """Return the pattern that ends in the best last state."""
    placed, masks = cost.shape
    count, mask = placed - 1, int(cost[-1].argmin())
    pattern = []
    for bits in reversed(dropped):
        index = count * masks + mask
        oldest = int(bits[index // 8] >> (7 - index % 8)) & 1
        pattern.append(bool(mask & 1))
        count -= mask & 1
        mask = (mask >> 1) | oldest * half
    return pattern[::-1]
