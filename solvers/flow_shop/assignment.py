"""Ordering requests as Hetero2Pipe does: low requests move between high ones, by linear assignment.

Algorithm 2 leaves open how the moves of one assignment act together, forbids every donor of its own
window, and has no way out when no finite assignment is left (errata 19 to 21). The reading here:

- a *slot* is an H with another H within the K - 1 positions behind it; a *donor* is an L that has not
  moved yet;
- moving donor i behind slot j costs |j - i| (Eq. 10), and is forbidden inside the window
  [j - K + 1, j + K - 1] and where the gap that i leaves brings two H closer than K;
- the assignment is rectangular: as many pairs as are possible, all inserted at once;
- again, until no slot or no allowed pair is left. Each round uses up a donor, so it ends.

It is neither the least displacement nor always the least violation: `ordering` finds both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def order_by_assignment(high: Sequence[bool], reach: int) -> tuple[int, ...]:
    """Return the order of the paper's contention mitigation (section V-B).

    `high`: whether each request is of high contention, in order of arrival; M values. `reach`: units K: two
    requests disturb each other at distances below K.
    The result has the request at each position.
    """
    order = list(range(len(high)))
    donors = {request for request in order if not high[request]}
    while moves := _assign(order, high, donors, reach):
        donors -= set(moves)
        order = _insert(order, moves)
    return tuple(order)


def _assign(order: Sequence[int], high: Sequence[bool], donors: set[int], reach: int) -> dict[int, int]:
    """Return the slot that each donor moves behind, both as requests; empty when no move is left."""
    pattern = np.array([high[request] for request in order])
    slots = [p for p in np.flatnonzero(pattern).tolist() if pattern[p + 1 : p + reach].any()]
    places = [p for p, request in enumerate(order) if request in donors and _may_leave(pattern, p, reach)]
    if not slots or not places:
        return {}
    forbidden = len(order) ** 2
    cost = np.abs(np.array(places)[:, None] - np.array(slots))
    cost = np.where(cost < reach, forbidden, cost)
    pairs = cheapest_pairs(cost) if len(places) <= len(slots) else [(i, j) for j, i in cheapest_pairs(cost.T)]
    return {order[places[i]]: order[slots[j]] for i, j in pairs if cost[i, j] < forbidden}


def cheapest_pairs(cost: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the assignment of every row to a column of its own that costs least.

    Shortest augmenting paths (Crouse 2016), with the ties of scipy's `linear_sum_assignment`: loading that
    takes longer than many a time limit.

    `cost`: shape (R, C), R <= C.
    """
    rows, columns = cost.shape
    row_price, column_price = np.zeros(rows, dtype=np.int64), np.zeros(columns, dtype=np.int64)
    row_of, column_of = np.full(columns, -1), np.full(rows, -1)
    for first in range(rows):
        path, length = np.full(columns, -1), np.full(columns, np.iinfo(np.int64).max)
        row, least, open_, passed = first, 0, np.arange(columns)[::-1].copy(), []
        while True:
            to = least + cost[row, open_] - row_price[row] - column_price[open_]
            shorter = to < length[open_]
            path[open_[shorter]], length[open_[shorter]] = row, to[shorter]
            least = int(length[open_].min())
            nearest = np.flatnonzero(length[open_] == least)
            free = nearest[row_of[open_[nearest]] < 0]
            place = free[-1] if len(free) else nearest[0]
            column = int(open_[place])
            passed.append(column)
            open_[place] = open_[-1]
            open_ = open_[:-1]
            if row_of[column] < 0:
                break
            row = int(row_of[column])
        row_price[first] += least
        row_price[row_of[passed[:-1]]] += least - length[passed[:-1]]
        column_price[passed] -= least - length[passed]
        while column >= 0:
            row = int(path[column])
            row_of[column], column_of[row], column = row, column, int(column_of[row])
    return list(enumerate(column_of.tolist()))


def _may_leave(pattern: NDArray[np.bool_], place: int, reach: int) -> bool:
    """Return whether no two H come closer than K when the request at a place leaves."""
    before = np.flatnonzero(pattern[:place])
    behind = np.flatnonzero(pattern[place:])
    if not len(before) or not len(behind):
        return True
    return bool(place + behind[0] - before[-1] - 1 >= reach)


def _insert(order: Sequence[int], moves: dict[int, int]) -> list[int]:
    """Return the order with each donor right behind its slot."""
    donor_of = {slot: donor for donor, slot in moves.items()}
    stay = [request for request in order if request not in moves]
    return [r for request in stay for r in (request, donor_of.get(request)) if r is not None]
