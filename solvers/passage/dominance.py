"""Which labels have enough others before them that are no worse in anything that counts.

Two labels at one boundary, with the same unit running and the same bits where sets of units matter: whatever
follows adds the same to both. So the one with smaller loads, fewer hops and fewer bytes leads to the better
plan, wherever all terms and filters get worse with them. Terms such as the gapness do not; there only labels
that are equal in everything are compared, by the canonical order.

The sum of the loads is a term of every ranking. Sorted by it, hops and canonical order, a label comes before
all that it can replace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..chunking.ranking import Flags, Ints
from .table import Floats

if TYPE_CHECKING:
    from .sweep import Labels

_BLOCK = 128
_LATER = np.arange(_BLOCK)[:, None] < np.arange(_BLOCK)
_STAIRS = 3
"""Rows that are compared by stairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dominance:
    """What makes one label as good as another.

    Attributes
    ----------
    enough
        How many have to be before a label that goes; 0: none goes.
    monotone
        Whether smaller loads, hops and bytes are better; otherwise they have to be equal.
    sets
        Whether sets of units matter.
    hops
        Whether hops matter.
    idle_below
        Up to where loads do not matter, by [boundary][resource that is loaded][unit that runs]; None: all do.
    by_unit
        Whether the loads of units that take turns count each for itself, not only their sum.
    settled
        Whether the period is settled, so that loads matter only up to it, and their sum.
    compared
        With how many labels each one is compared, at most, where that is done one by one.
    """

    enough: int
    monotone: bool
    sets: bool
    hops: bool = True
    idle_below: Floats | None = None
    by_unit: bool = False
    settled: bool = False
    compared: int = 128


def undominated(
    dominance: Dominance, at: int, labels: Labels, pooled: Callable[[Ints], Ints]
) -> NDArray[np.intp] | None:
    """Return the columns of the labels at a boundary that stay, ascending; None: all.

    `pooled`: from loads of units to those of resources.
    """
    if not dominance.enough or len(labels) < 2:
        return None
    state, unit = labels.state, labels.unit
    group = unit * (1 << len(state.loads)) + state.mask if dominance.sets else unit
    # Of two chunks that go on the one with more live tensors pays less for the next piece: without them, too.
    closed = state.bytes[unit, np.arange(len(labels))] - labels.open
    hops = state.hops if dominance.hops else np.zeros_like(state.hops)
    loads = state.loads if dominance.by_unit else pooled(state.loads)
    if dominance.idle_below is not None:
        loads = np.maximum(loads, dominance.idle_below[at].take(unit, axis=1).astype(np.int64))
    total = (state.loads if dominance.settled else loads).sum(axis=0)
    rows = np.concatenate([loads, hops[None], state.bytes, closed[None], labels.held])
    if dominance.settled:
        rows = np.concatenate([rows, total[None]])
    if not dominance.monotone or len(labels.held):
        keep = _first(np.concatenate([rows, group[None]]), labels.order, dominance.enough)
        return None if keep.all() else np.flatnonzero(keep)
    rows = rows[rows.min(axis=1) < rows.max(axis=1)]
    keep = np.ones(len(labels), dtype=np.bool_)
    for own in sorted(set(group.tolist())):
        columns = np.flatnonzero(group == own)
        if len(columns) < 2:
            continue
        if dominance.enough == 1 and len(rows) <= _STAIRS:
            keep[columns] = _least(rows[:, columns], labels.order[columns])
        else:
            order = columns[np.lexsort((labels.order[columns], hops[columns], total[columns]))]
            keep[order] = _staying(rows[:, order], dominance)
    return None if keep.all() else np.flatnonzero(keep)


def _least(rows: Ints, order: Ints) -> Flags:
    """Return which columns no other one can replace, of three rows; of equal ones the first by `order`.

    Sorted by the first row, what came before can replace a column if the stairs of its other two rows pass
    below: for each value of the second the least one of the third.
    """
    rows = np.concatenate([rows, np.zeros((_STAIRS - len(rows), rows.shape[1]), dtype=np.int64)])
    sequence = np.lexsort((order, rows[2], rows[1], rows[0]))
    second, third = rows[1][sequence], rows[2][sequence]
    stays = np.zeros(len(sequence), dtype=np.bool_)
    treads, heights = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for start in range(0, len(sequence), _BLOCK):
        own = np.arange(start, min(start + _BLOCK, len(sequence)))
        if len(treads):
            step = np.searchsorted(treads, second[own], side="right") - 1
            own = own[(step < 0) | (heights[step] > third[own])]
        if not len(own):
            continue
        y, z = second[own], third[own]
        replaced = ((y[:, None] <= y) & (z[:, None] <= z) & _LATER[: len(own), : len(own)]).any(axis=0)
        own = own[~replaced]
        stays[own] = True
        treads, heights = np.concatenate([treads, second[own]]), np.concatenate([heights, third[own]])
        arranged = np.lexsort((heights, treads))
        treads, heights = treads[arranged], heights[arranged]
        falls = np.ones(len(treads), dtype=np.bool_)
        falls[1:] = heights[1:] < np.minimum.accumulate(heights)[:-1]
        treads, heights = treads[falls], heights[falls]
    keep = np.empty(len(sequence), dtype=np.bool_)
    keep[sequence] = stays
    return keep


def _first(rows: Ints, order: Ints, enough: int) -> Flags:
    """Return which columns are among the first ones, in canonical order, of those that are equal."""
    sequence = np.lexsort((order, *rows))
    arranged = rows[:, sequence]
    fresh = np.ones(len(sequence), dtype=np.bool_)
    fresh[1:] = (arranged[:, 1:] != arranged[:, :-1]).any(axis=0)
    starts = np.flatnonzero(fresh)
    place = np.arange(len(sequence)) - np.repeat(starts, np.diff(np.append(starts, len(sequence))))
    keep = np.empty(len(sequence), dtype=np.bool_)
    keep[sequence] = place < enough
    return keep


def _staying(rows: Ints, dominance: Dominance) -> Flags:
    """Return which columns stay, where those that can replace a column come before it."""
    count = rows.shape[1]
    before = np.zeros(count, dtype=np.int64)
    for start in range(0, min(count, dominance.compared), _BLOCK):
        stop = min(start + _BLOCK, count)
        later = start + np.flatnonzero(before[start:] < dominance.enough)
        own = later[later < stop]
        if not len(own):
            continue
        replaces = own[:, None] < later
        for row in rows:
            replaces &= row[own, None] <= row[later]
        if dominance.enough == 1:
            # What is gone replaces nothing: that which replaced it does so.
            before[later] += replaces.any(axis=0)
        else:
            before[later] += replaces.sum(axis=0)
    found: Flags = before < dominance.enough
    return found
