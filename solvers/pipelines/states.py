"""Sets of devices by how many of each kind they have: numbers in a mixed radix."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np

from .arrays import Ints


class States:
    """All sets of devices, counted by kind."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = tuple(counts)
        sizes = [count + 1 for count in counts]
        self.strides = tuple(accumulate(reversed(sizes[1:]), int.__mul__, initial=1))[::-1]
        self.shape = tuple(sizes)
        self.number = self.strides[0] * sizes[0]

    @cached_property
    def digits(self) -> Ints:
        """How many devices of each kind a set has, by [kind][set]."""
        found: Ints = np.indices(self.shape, np.int16).reshape(len(self.shape), self.number)
        return found

    @cached_property
    def sizes(self) -> Ints:
        """Number of devices of each set."""
        found: Ints = self.digits.sum(axis=0)
        return found

    def of(self, kinds: Iterable[int]) -> int:
        """Return the set of one device of each of the kinds that are listed."""
        return sum(self.strides[kind] for kind in kinds)

    def counted(self, state: int) -> tuple[int, ...]:
        """Return how many devices of each kind a set has."""
        return tuple(int(row[state]) for row in self.digits)

    def least_below(self, table: Ints) -> Ints:
        """Return the least entry over all subsets of each set, by the last axis of a table."""
        found = table.reshape(-1, self.number).copy()
        for size, stride in zip(self.shape, self.strides, strict=True):
            runs = found.reshape(len(found), -1, size, stride)
            for count in range(1, size):
                np.minimum(runs[:, :, count], runs[:, :, count - 1], out=runs[:, :, count])
        return found.reshape(table.shape)
