"""Bytes of the weights of all ranges of layers at once, as an array."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

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
