"""Which labels have enough others before them that are no worse in anything that counts.

Two labels at one boundary, with the same unit running and the same bits where sets of units matter: whatever
follows adds the same to both. So the one with smaller loads, fewer hops and fewer bytes leads to the better
plan, wherever all terms and filters get worse with them. Terms such as the gapness do not; there only labels
that are equal in everything are compared, by the canonical order.

The sum of the loads is a term of every ranking. Sorted by it, hops and canonical order, a label comes before
all that it can replace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..chunking.ordering import Flags, Ints

if TYPE_CHECKING:
    from .sweep import Labels

_BLOCK = 64


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
    compared
        With how many labels each one is compared, at most.
    """

    enough: int
    monotone: bool
    sets: bool
    compared: int = 512


def undominated(dominance: Dominance, labels: Labels) -> NDArray[np.intp] | None:
    """Return the columns of the labels that stay, ascending; None: all."""
    if not dominance.enough or len(labels) < 2:
        return None
    state = labels.state
    group = labels.unit * (1 << len(state.loads)) + state.mask if dominance.sets else labels.unit
    # Of two chunks that go on the one with more live tensors pays less for the next piece: without them, too.
    closed = state.bytes[labels.unit, np.arange(len(labels))] - labels.open
    rows = np.concatenate([state.loads, state.hops[None], state.bytes, closed[None], labels.held])
    if not dominance.monotone or len(labels.held):
        keep = _first(np.concatenate([rows, group[None]]), labels.order, dominance.enough)
        return None if keep.all() else np.flatnonzero(keep)
    keep = np.ones(len(labels), dtype=np.bool_)
    total = state.loads.sum(axis=0)
    for own in range(int(group.max()) + 1) if not dominance.sets else sorted(set(group.tolist())):
        columns = np.flatnonzero(group == own)
        if len(columns) > 1:
            order = columns[np.lexsort((labels.order[columns], state.hops[columns], total[columns]))]
            keep[order] = _staying(rows[:, order], dominance)
    return None if keep.all() else np.flatnonzero(keep)


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
        replaces = (rows[:, own, None] <= rows[:, None, later]).all(axis=0)
        replaces &= own[:, None] < later[None, :]
        if dominance.enough == 1:
            # What is gone replaces nothing: that which replaced it does so.
            before[later] += replaces.any(axis=0)
        else:
            before[later] += replaces.sum(axis=0)
    found: Flags = before < dominance.enough
    return found
