"""Which units are used: sets of units, or counts of units of one class.

Units of one class are told apart only by how many of them are used. Identical units share a class
without any loss. Above a size limit similar units share one too; that forgets which of them was
used, so that every plan still has its walk through the lattice but some walks are no plans: bounds
from the lattice stay valid, and the search tracks the real units.

Units that exclude each other and all exclude the same others, such as one core with one engine or another,
are one *resource*: whichever of them is used, the same units stay free. They share a class, too, without any
loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from .ranking import Flags, Ints


def resources_of(exclusive: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """Return the resource of each unit: its number, or that of the first unit that it shares one with."""
    first: dict[frozenset[int], int] = {}
    return tuple(first.setdefault(others | {unit}, unit) for unit, others in enumerate(exclusive))


def group_units(
    signatures: Sequence[Hashable],
    totals: Sequence[int],
    most_points: int,
    resources: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Return a class for each unit: equal signatures together, then the most similar until it fits.

    `totals`: time of the whole network by unit: what similarity is judged by. `resources`: as `resources_of`
    returns them; None: each unit is one.
    """
    held = range(len(signatures)) if resources is None else resources
    classes: dict[Hashable, list[int]] = {}
    for unit, signature in enumerate(signatures):
        classes.setdefault(signature, []).append(unit)
    groups = sorted(classes.values(), key=lambda group: totals[group[0]])
    while (
        np.prod([len({held[u] for u in group}) + 1.0 for group in groups]) > most_points and len(groups) > 1
    ):
        costs = [(totals[b[0]] + 1) / (totals[a[0]] + 1) * (len(a) + len(b)) for a, b in pairwise(groups)]
        at = costs.index(min(costs))
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
    return tuple(
        next(number for number, group in enumerate(groups) if unit in group)
        for unit in range(len(signatures))
    )


class Lattice:
    """All combinations of used units, as points 0..size-1 in mixed radix; `size` stands for none.

    `size`, `unit_count`: number of points and of units; `used_low`, `used_high`: whether a unit is surely,
    and possibly, used at a point, by [unit][point].
    """

    def __init__(self, classes: Sequence[int], exclusive: Sequence[frozenset[int]]) -> None:
        units = len(classes)
        shared = Counter(zip(classes, resources_of(exclusive), strict=True))
        members = np.bincount([own for own, _ in shared])
        radix = np.concatenate(([1], np.cumprod(members + 1)))
        self.unit_count = units
        self.size = int(radix[-1])
        points = np.arange(self.size)
        counts = np.array([points // radix[c] % (members[c] + 1) for c in classes])
        full = counts == members[np.array(classes)][:, None]
        told_apart = [shared[own] == 1 for own in zip(classes, resources_of(exclusive), strict=True)]
        self.used_low: Flags = full & np.array(told_apart)[:, None]
        self.used_high: Flags = counts > 0
        # whether a point and a boundary say everything about which units are free
        self.exact = bool((members == 1).all())
        free = ~full
        for unit, others in enumerate(exclusive):
            for other in others:
                free[unit] &= ~full[other]
        step = np.array([radix[c] for c in classes])
        # point after using one more unit, by [point][unit]; `size` where that is impossible
        self.after: Ints = np.where(free.T, points[:, None] + step[None, :], self.size)
        # whether a plan may end here, by point; the last entry (no point) is False
        self.terminal: Flags = np.ones(self.size + 1, dtype=np.bool_)
        self.terminal[self.size] = False
        level = np.zeros(self.size, dtype=np.int64)
        for c, count in enumerate(members):
            level += points // radix[c] % (count + 1)
        self.level: Ints = level
        self._levels = [np.flatnonzero(level == k) for k in range(units + 1)]
        self._columns = np.arange(units)

    def require_chunks(self, least: int, most: int) -> None:
        """Let no plan end with fewer chunks, and none go on to more."""
        self.terminal[: self.size] &= self.level >= least
        self.after[self.level >= most] = self.size

    def reach(self, back: Ints) -> Ints:
        """Return the earliest boundary from which the units still free can reach the end, by point.

        g[point] = min over free units u of back[u][g[point + u]], from the terminal points on: what
        is covered backwards by one more unit after the others have covered the most. `back` is as in
        `Tables.reach_back`. No valid plan visits a point at an earlier boundary; without transfers
        the answer is attained (an exchange argument: covering more never hurts).
        """
        width = back.shape[1]
        flat = back.ravel()
        found: Ints = np.where(self.terminal, width - 2, width - 1)
        rows = self._columns * width
        for points in reversed(self._levels[:-1]):
            ahead = found[self.after[points]]
            found[points] = np.minimum(found[points], flat[ahead + rows].min(axis=1))
        return found


class Lattices:
    """Lattices from fine to coarse, each made when it is first asked for.

    `groupings`: classes of the units, from fine to coarse; at least one.
    """

    def __init__(
        self, groupings: Sequence[tuple[int, ...]], make: Callable[[tuple[int, ...]], Lattice]
    ) -> None:
        self._groupings, self._make = groupings, make
        self._made: dict[tuple[int, ...], Lattice] = {}

    def __iter__(self) -> Iterator[Lattice]:
        for classes in self._groupings:
            if classes not in self._made:
                self._made[classes] = self._make(classes)
            yield self._made[classes]

    @property
    def finest(self) -> Lattice:
        """The lattice that forgets least."""
        return next(iter(self))
