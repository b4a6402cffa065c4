"""Several pipelines side by side: the largest sum of rates on disjoint sets of devices.

    best[S] = max over pipeline types p <= S of rate(p) + best[S - p]

over the sets S of the mixed radix of `states`, with S used whole (clusters, section 3). Pipelines are taken
by the first kind that they use, so that where their number is not limited each type is added once for each
device of that kind; with a limit there is a table for each number of pipelines. Rates are whole numbers
(`Cluster.rate`), so sums are compared exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..protocol import NEVER as NO_DEADLINE
from ..protocol import Deadline, TimeIsUpError
from .arrays import NEVER, Ints
from .states import States

NONE = -(1 << 61)
"""Stands for the rate of a set that no pipelines use whole; with the rates of others added it is negative."""

_LARGEST = 1 << 60


def useful_types(states: States, least_us: Ints) -> npt.NDArray[np.intp]:
    """Return the sets whose best pipeline is faster than that of every smaller set."""
    below = states.least_below(least_us).reshape(states.shape)
    before = np.full(states.shape, NEVER, np.int64)
    for axis in range(below.ndim):
        later, earlier = [slice(None)] * below.ndim, [slice(None)] * below.ndim
        later[axis], earlier[axis] = slice(1, None), slice(None, -1)
        np.minimum(before[tuple(later)], below[tuple(earlier)], out=before[tuple(later)])
    return np.flatnonzero(least_us < before.reshape(-1))


class Packing:
    """The best sums of rates on every set.

    Raises TimeIsUpError: the deadline has passed before it was done.
    """

    def __init__(
        self,
        states: States,
        types: Sequence[int],
        rates: Sequence[int],
        *,
        most: int,
        excluded: npt.NDArray[np.bool_] | None = None,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        self._states, self._types = states, [(type_, states.counted(type_)) for type_ in types]
        self._rates, self._deadline = list(rates), deadline
        devices = sum(states.counts)
        number = np.int64 if devices * max(rates, default=0) < _LARGEST else object
        empty = np.full(states.shape, NONE, number)
        empty.reshape(-1)[0] = 0
        fewest = min((sum(counts) for _, counts in self._types), default=1)
        self._limited = most == 1 or most < devices // fewest
        if most == 1:
            self._tables = [empty, np.full_like(empty, NONE)]
            self._tables[1].reshape(-1)[list(types)] = rates
        elif self._limited:
            self._tables = [empty]
            for _ in range(most):
                self._tables.append(self._one_more(self._tables[-1], np.full_like(empty, NONE)))
        else:
            self._tables = [self._all(empty)]
        for table in self._tables:
            table[table < 0] = NONE
            if excluded is not None:
                table.reshape(-1)[excluded] = NONE

    def _all(self, table: Ints) -> Ints:
        """Return the best sums of any number of pipelines."""
        for (_, used), rate in zip(self._types, self._rates, strict=True):
            self._check_time()
            kind = next(kind for kind, count in enumerate(used) if count)
            step, count = used[kind], self._states.counts[kind]
            into, rest = self._places(used)
            # Each run of sets is computed from the one before, so a type is taken as often as it fits.
            for begin in range(step, count + 1, step):
                end = min(begin + step, count + 1)
                into[kind], rest[kind] = slice(begin, end), slice(begin - step, end - step)
                target = table[tuple(into)]
                np.maximum(target, table[tuple(rest)] + rate, out=target)
        return table

    def _one_more(self, before: Ints, table: Ints) -> Ints:
        """Return the best sums with one pipeline more."""
        for (_, used), rate in zip(self._types, self._rates, strict=True):
            self._check_time()
            into, rest = map(tuple, self._places(used))
            np.maximum(table[into], before[rest] + rate, out=table[into])
        return table

    def _places(self, used: tuple[int, ...]) -> tuple[list[slice], list[slice]]:
        """Return where the sets are that hold a type, and where they are without it."""
        into = [slice(count, None) for count in used]
        return into, [slice(m + 1 - count) for m, count in zip(self._states.counts, used, strict=True)]

    def _check_time(self) -> None:
        if self._deadline.passed:
            raise TimeIsUpError

    @property
    def best(self) -> Ints:
        """Largest sum of rates on exactly each set; NONE where there is none, and for no devices."""
        found = self._tables[0] if not self._limited else np.maximum.reduce(self._tables[1:])
        found = found.reshape(-1).copy()
        found[0] = NONE
        return found

    def within(self) -> list[Ints]:
        """Return the largest sums on at most each set, by the most pipelines: one table if any number is."""
        found, best = [], np.zeros_like(self._tables[0])
        for table in self._tables:
            best = np.maximum(best, table)
            own = best
            for axis in range(own.ndim):
                own = np.maximum.accumulate(own, axis=axis)
            found.append(own.reshape(-1))
        return found

    def split(self, state: int) -> list[int]:
        """Return the types whose rates add up to the best on exactly a set."""
        flat = [table.reshape(-1) for table in self._tables]
        level = 0 if not self._limited else max(range(1, len(flat)), key=lambda k: flat[k][state])
        found = []
        while state:
            counts, wanted = self._states.counted(state), flat[level][state]
            level = level - 1 if self._limited else level
            for (type_, used), rate in zip(self._types, self._rates, strict=True):
                if all(map(int.__le__, used, counts)):
                    rest = flat[level][state - type_]
                    if rest != NONE and rest + rate == wanted:
                        break
            else:
                raise AssertionError(f"no pipelines add up to the rate of set {state}")
            found.append(type_)
            state -= type_
        return found
