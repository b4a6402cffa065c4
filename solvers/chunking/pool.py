"""The best plans found so far."""

from __future__ import annotations

import numpy as np

from .ordering import Flags, Ints, less, smallest


class Pool:
    """At most `size` plans in canonical order, each once."""

    def __init__(self, size: int, rows: int) -> None:
        self.size = size  # how many are wanted
        # key and path of each, by [row][plan], best first
        self.ranks: Ints = np.empty((rows, 0), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.ranks[0])

    @property
    def full(self) -> bool:
        """Whether as many plans as wanted are there."""
        return len(self) >= self.size

    @property
    def worst(self) -> Ints | None:
        """The rank that a plan must undercut to enter a full pool; None while it is not full."""
        return self.ranks[:, -1] if self.full else None

    def add(self, ranks: Ints) -> None:
        """Take in the plans that belong to the best."""
        if self.full and ranks.shape[1]:
            ranks = ranks[:, less(ranks, self.ranks[:, -1])]
        if not ranks.shape[1]:
            return
        # Found again: the same plan may come from overlapping boxes.
        merged = np.concatenate((self.ranks, ranks[:, smallest(ranks, 2 * self.size)]), axis=1)
        merged = merged[:, np.lexsort(merged[::-1])]
        fresh = np.ones(merged.shape[1], dtype=np.bool_)
        fresh[1:] = (merged[:, 1:] != merged[:, :-1]).any(axis=0)
        self.ranks = np.ascontiguousarray(merged[:, fresh][:, : self.size])

    def promising(self, ranks: Ints) -> Flags | None:
        """Return which prefixes can still become one of the best plans; None when all can."""
        return less(ranks, self.ranks[:, -1]) if self.full else None

    def before(self, key: tuple[int, ...]) -> int:
        """Return how many plans have a key (cut to its length) below the given one."""
        return int(less(self.ranks[: len(key)], np.array(key)).sum()) if key else 0
