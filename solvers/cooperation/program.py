"""The dynamic program over places and sets of devices: the least cost of a line of groups.

Let F[i][v][S] be the least cost of the layers from place i on by groups that have exactly the devices of S
together, the first of them led by a device of class v. With k[i][j][G] the cost of a chunk with a group, led
by u, and l[u][v][j] that of its result,

    F[i][u][S] = min over j, G in S, v of  k[i][j][G] + l[u][v][j] + F[j][v][S - G]

where + is the maximum for the period, whose stages are computed first (cooperation, section 4). Leaders are
of one class where all messages of a boundary are alike. Steps: pairs (S, G) x places^2 / 2 x classes.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...formulations.terms import Term as T
from ..pipelines.arrays import LONGEST, NEVER, Ints
from ..protocol import NEVER as NO_DEADLINE
from ..protocol import Deadline, TimeIsUpError
from .arrays import GroupArrays

Line = tuple[tuple[int, int, int], ...]
"""A plan by kind: (start place, stop place, set of devices) of each chunk."""


class Pairs(NamedTuple):
    """Every set with every part of it that is not empty, in order of the sets.

    `group`, `rest`: the part and what it leaves.
    """

    group: Ints
    rest: Ints
    begin: Ints  # where the pairs of each set but the empty one begin


class Cost(NamedTuple):
    """What is minimised."""

    amount: Ints | None = None  # costs that are added, by [row][set]; None: the longest stage
    sent: int = 0  # how often what a result takes to the next group is added
    most_us: int = NEVER  # no stage takes longer


class Program:
    """Least costs of lines of groups.

    `deadline`: when to give up, with `TimeIsUpError`.
    """

    def __init__(self, arrays: GroupArrays, deadline: Deadline = NO_DEADLINE) -> None:
        self.arrays, self._deadline = arrays, deadline
        self.kinds, self._last = arrays.kinds, arrays.last
        self._overlap = arrays.groups.data.devices.overlap

    # Leaders

    @cached_property
    def class_of(self) -> Ints:
        """The class of leaders of each kind: one for all, or one each."""
        sends, (enter, leave) = self.arrays.sends_us, self.arrays.ends_us
        pairs = [
            (one, other)
            for one in range(len(enter))
            for other in range(len(enter))
            if self.kinds.pair(one, other) is not None
        ]
        alike = all((sends[pair] == sends[pairs[0]]).all() for pair in pairs)
        alike &= bool((enter == enter[0]).all() and (leave == leave[0]).all())
        return np.zeros(len(enter), np.int64) if alike else np.arange(len(enter))

    @cached_property
    def class_count(self) -> int:
        """Number of classes of leaders."""
        return int(self.class_of[-1]) + 1

    @cached_property
    def sends_us(self) -> Ints:
        """What a result takes, by [class][class][place]; NEVER without a link, 0 at the last place."""
        if self.class_count > 1:
            found = self.arrays.sends_us.copy()
        else:
            kinds = range(len(self.class_of))
            pairs = [(k, o) for k in kinds for o in kinds if self.kinds.pair(k, o) is not None]
            own = self.arrays.sends_us[pairs[0]] if pairs else np.zeros(self._last + 1, np.int64)
            found = own[None, None].copy()
        found[:, :, self._last] = 0
        return found

    # Costs

    @cached_property
    def leaders(self) -> Ints:
        """The class of the leader, by [row][set]."""
        return self.class_of[self.arrays.leader]

    @cached_property
    def ends_us(self) -> tuple[Ints, Ints]:
        """What the input and the result take from and to the host, by [row][set]; 0 within the line."""
        found = []
        for times, ends in zip(
            self.arrays.ends_us, (self.arrays.number[0], self.arrays.number[:, -1]), strict=True
        ):
            table = np.zeros_like(self.arrays.compute_us)
            rows = ends[ends >= 0]
            table[rows] = times[self.arrays.leader[rows]]
            found.append(table)
        return found[0], found[1]

    @cached_property
    def stage_us(self) -> Ints:
        """What a request takes of a chunk without what its result takes to the next group, by [row][set]."""
        arrays, (enter, leave) = self.arrays, self.ends_us
        rows = (arrays.compute_us, arrays.message_us, enter, leave)
        if self._overlap:
            found = np.maximum.reduce(rows)
        else:
            found = np.add(np.add(rows[0], rows[1]), np.minimum(np.add(enter, leave), NEVER))
        bounded: Ints = np.minimum(found, NEVER)
        return bounded

    @cached_property
    def latency_us(self) -> Ints:
        """What a chunk adds to the latency, likewise."""
        arrays, (enter, leave) = self.arrays, self.ends_us
        found: Ints = arrays.compute_us + arrays.message_us + np.minimum(enter + leave, NEVER)
        return np.minimum(found, NEVER)

    def amount(self, term: str) -> Ints:
        """Return what a chunk adds to a term that is a sum; to the energy without that of waiting."""
        return self.latency_us if term == T.LATENCY else self.arrays.amounts[term]

    def with_message(self, stage_us: Ints, send_us: Ints | int) -> Ints:
        """Return stages with what is sent to the next group."""
        return np.maximum(stage_us, send_us) if self._overlap else np.minimum(stage_us + send_us, NEVER)

    # Tables

    @cached_property
    def pairs(self) -> Pairs:
        """Sets and parts of them."""
        digits, number = self.kinds.counts, self.kinds.states.number
        most = self.arrays.groups.most_group
        own = np.flatnonzero((self.kinds.sizes > 0) & (self.kinds.sizes <= most))
        groups = [own[(digits[own] <= digits[state]).all(axis=1)] for state in range(1, number)]
        counts = np.asarray([len(group) for group in groups])
        group = np.concatenate(groups)
        states = np.repeat(np.arange(1, number), counts)
        return Pairs(group, states - group, np.concatenate([[0], np.cumsum(counts)[:-1]]))

    def parts_of(self, state: int) -> tuple[Ints, Ints]:
        """Return the parts of a set that may be groups, and what each leaves."""
        begin, number = self.pairs.begin, len(self.pairs.group)
        if state == 0:
            return self.pairs.group[:0], self.pairs.rest[:0]
        end = begin[state] if state < len(begin) else number
        return self.pairs.group[begin[state - 1] : end], self.pairs.rest[begin[state - 1] : end]

    def table(self, cost: Cost) -> Ints:
        """Return F by [place][class][set]; NEVER where there is no line."""
        pairs, classes = self.pairs, self.class_count
        found = np.full((self._last + 1, classes, self.kinds.states.number), NEVER, np.int64)
        found[self._last, :, 0] = 0
        for start in reversed(range(self._last)):
            least = np.full((classes, len(pairs.group)), NEVER, np.int64)
            for stop in range(start + 1, self._last + 1):
                if self._deadline.passed:
                    raise TimeIsUpError
                self._step(start, stop, found[stop], cost, least)
            found[start, :, 1:] = np.minimum.reduceat(least, pairs.begin, axis=1)
        return found

    def _step(self, start: int, stop: int, behind: Ints, cost: Cost, least: Ints) -> None:
        """Lower the costs of all pairs from a place on by chunks that end at another."""
        row = self.arrays.number[start, stop]
        if row < 0:
            return
        pairs, lead = self.pairs, self.leaders[row]
        for own in range(self.class_count):
            mine = np.where(lead == own, self.stage_us[row], NEVER)
            if (mine >= NEVER).all():
                continue
            # At the end there is no next leader: one of them stands for all.
            for other in range(self.class_count if stop < self._last else 1):
                send = int(self.sends_us[own, other, stop])
                if send >= NEVER:
                    continue
                stage = self.with_message(mine, send)
                possible = (stage <= cost.most_us) & (stage < NEVER)
                if cost.amount is None:
                    own_cost = np.where(possible, stage, NEVER)
                    total = np.maximum(own_cost[pairs.group], behind[other][pairs.rest])
                else:
                    own_cost = np.where(possible, cost.amount[row] + send * cost.sent, NEVER)
                    total = own_cost[pairs.group] + behind[other][pairs.rest]
                np.minimum(least[own], total, out=least[own])
        np.minimum(least, NEVER, out=least)

    def line(self, table: Ints, state: int, cost: Cost) -> Line:
        """Return a line over exactly a set of devices, whose table was computed with the same cost."""
        place, found = 0, list[tuple[int, int, int]]()
        own = int(np.argmin(table[0, :, state]))
        while place < self._last:
            stop, group, own = self._next(table, (place, own, state), cost)
            found.append((place, stop, group))
            place, state = stop, state - group
        return tuple(found)

    def _next(self, table: Ints, at: tuple[int, int, int], cost: Cost) -> tuple[int, int, int]:
        """Return (stop, group, class of the next leader) of a chunk that a least cost begins with."""
        place, own, state = at
        groups, rest = self.parts_of(state)
        for stop in range(place + 1, self._last + 1):
            row = self.arrays.number[place, stop]
            if row < 0:
                continue
            mine = self.leaders[row, groups] == own
            for other in range(self.class_count if stop < self._last else 1):
                send = int(self.sends_us[own, other, stop])
                if send >= NEVER:
                    continue
                stage = self.with_message(self.stage_us[row, groups], send)
                behind = table[stop, other, rest]
                possible = mine & (stage < NEVER) & (stage <= cost.most_us) & (behind < NEVER)
                if cost.amount is None:
                    total = np.maximum(stage, behind)
                else:
                    total = cost.amount[row, groups] + send * cost.sent + behind
                hits = np.flatnonzero(possible & (total == table[at]))
                if hits.size:
                    return stop, int(groups[hits[0]]), other
        raise AssertionError("the table was computed with another cost")

    # Bounds

    def rest(self, table: Ints) -> Ints:
        """Return the least cost from a place on with at most the devices of each set, by [place][set]."""
        return self.kinds.states.least_below(table.min(axis=1))

    @cached_property
    def least_sends_us(self) -> Ints:
        """The least that a result takes, by [class of its leader][place]."""
        found: Ints = self.sends_us.min(axis=1)
        return found


def lexicographic(columns: list[Ints], mosts: list[int]) -> Ints | None:
    """Return one number for several, so that sums of them have their order; None: too many digits.

    `columns`, `mosts`: amounts that are not negative, and the most that a sum of each of them can be.
    """
    scale, total = 1, np.zeros_like(columns[0])
    for column, most in zip(reversed(columns), reversed(mosts), strict=True):
        if scale * (most + 1) >= LONGEST * 4:
            return None
        total = total + np.where(column < NEVER, column, 0) * scale
        scale *= most + 1
    return np.where(columns[0] < NEVER, total, NEVER)
