"""Lexicographic order on columns: keys of many plans or prefixes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_SORT_BELOW = 64
"""Up to this number of columns, sorting all of them is cheaper than selecting first."""


def runs(begin: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the members of several runs of integers, one after the other.

    Run r is begin[r], begin[r] + 1, ... with counts[r] members.

    The first array has the run of each member, the second the member.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner, np.arange(len(owner)) + (begin - np.cumsum(counts) + counts)[owner]


def less(rows: Ints, limit: Ints) -> Flags:
    """Return which columns of `rows` are lexicographically less than the column `limit`."""
    verdict: Flags = rows[0] < limit[0]
    tied: Flags = rows[0] == limit[0]
    for row, value in zip(rows[1:], limit[1:], strict=True):
        if not tied.any():
            break
        verdict |= tied & (row < value)
        tied &= row == value
    return verdict


def ascending(rows: Ints) -> NDArray[np.intp]:
    """Return the order of the columns, smallest first."""
    return np.lexsort(rows[::-1])


def smallest(rows: Ints, count: int) -> NDArray[np.intp]:
    """Return the indices of the `count` smallest columns, smallest first.

    Selection narrows the columns row by row, so that only about `count` of them are sorted.
    """
    size = rows.shape[1]
    if size <= max(count, _SORT_BELOW):
        return ascending(rows)[:count]
    sure: list[NDArray[np.intp]] = []
    open_ = np.arange(size)
    wanted = count
    for row in rows:
        if len(open_) <= wanted + _SORT_BELOW:
            break
        values = row[open_]
        pivot = np.partition(values, wanted - 1)[wanted - 1]
        below = open_[values < pivot]
        sure.append(below)
        wanted -= len(below)
        open_ = open_[values == pivot]
    sure.append(open_)
    chosen = np.concatenate(sure)
    return chosen[ascending(rows[:, chosen])[:count]]
