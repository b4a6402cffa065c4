"""Bytes of all ranges of layers at once, as arrays, and how far chunks come on a unit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..formulations.chain import Chain
from ..formulations.weights import Weights

Ints = npt.NDArray[np.int64]


def weights_between(weights: Weights, cuts: Ints) -> Ints:
    """Return the bytes of [cuts[i], cuts[j]) for i <= j (`Weights.between`), by [i][j]."""
    prefix = np.array(weights.prefix, dtype=np.int64)[cuts]
    found: Ints = prefix[None, :] - prefix[:, None]
    if weights.shared:
        # A range pays for each reader that it holds, and gets back what two that follow each other share.
        paid = np.zeros(len(cuts), dtype=np.int64)
        saved = np.zeros((len(cuts), len(cuts)), dtype=np.int64)
        for size, layers in weights.shared:
            places = np.searchsorted(cuts, layers, side="right")
            np.add.at(paid, places, size)
            for one, other in pairwise(places.tolist()):
                saved[one - 1, other] += size
        total = np.cumsum(paid)
        saved = np.cumsum(np.cumsum(saved[::-1], axis=0)[::-1], axis=1)
        found = found + total[None, :] - total[:, None] - saved
    return found


def bytes_between(chain: Chain, cuts: Ints) -> Ints:
    """Return the bytes of a chunk (`Chain.memory_bytes`) by [start][stop] cut; 0 where stop <= start."""
    working = np.array(chain.working_bytes, dtype=np.int64)
    peaks = np.maximum.reduceat(working, cuts[:-1])
    size = len(cuts)
    live = np.zeros((size, size), dtype=np.int64)
    live[:-1, 1:] = np.maximum.accumulate(np.triu(np.broadcast_to(peaks, (size - 1, size - 1))), axis=1)
    return np.triu(weights_between(chain.weights, cuts) + live, 1)


def reaches(chain: Chain, unit: int, cuts: Ints) -> Ints:
    """Return for each cut the last one that a chunk from there can end at on a unit; itself: at none.

    Limited by layers that the unit cannot run, and by its memory.
    """
    blocked = np.array(chain.blocked[unit], dtype=np.int64)[cuts]
    supported: Ints = np.searchsorted(blocked, blocked, side="right") - 1
    if chain.unit_memory[unit] is None:
        return supported
    ends, found, reach = cuts.tolist(), [], 0
    for place, start in enumerate(ends):
        reach = max(reach, place)
        while reach < supported[place] and chain.fits(start, ends[reach + 1], unit):
            reach += 1
        found.append(reach)
    return np.array(found, dtype=np.int64)
