"""Annealing: a window of a chunk goes to another unit, which also moves borders, and merges chunks.

The largest load counts, and a little the mean: it says that units get lighter before the largest load does.
A move changes sums at two borders, so that it takes a few microseconds whatever the network.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..protocol import Deadline
from .table import Table

_MEAN = 0.02
"""What the sum of the loads counts beside the largest one."""

_HOT, _COLD = 0.01, 0.0001
"""Temperatures at first and at last, in shares of the period."""

_TRIES = 50
"""Moves that are tried for one that is made."""

_LOOK_EVERY = 256
"""Moves between two looks at the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """What is searched for besides a short period: units with room, few hops, and a short latency."""

    weights: tuple[float, ...]  # of the loads of resources, by their first units
    hop_us: float  # what a hop counts
    periods: float  # periods that the latency should not exceed
    latency_us: float  # what it should not exceed
    heat: float  # temperature at first, in shares of the period


class Annealing:
    """Searches near one plan after the other.

    Parameters
    ----------
    table, seed
        The arrays, and the seed of everything that is drawn.
    """

    def __init__(self, table: Table, seed: int) -> None:
        self._count, self._units = table.count, table.units
        self._draw = random.Random(seed)
        self._until = [list(accumulate(column, initial=0)) for column in table.time.T.tolist()]
        self._blocked = [
            list(accumulate(column, initial=0)) for column in (~table.able).T.astype(int).tolist()
        ]
        self._enter, self._leave = table.enter.tolist(), table.leave.tolist()
        self._aim: Aim | None = None
        self._shared = [units for units in table.chain.pools.values() if len(units) > 1]

    def near(
        self,
        start: Sequence[int],
        loads: Sequence[int],
        moves: int,
        deadline: Deadline,
        aim: Aim | None = None,
    ) -> list[int]:
        """Return the plan with the shortest period that a number of moves from a plan comes across.

        With an aim: the one that is best by it.
        """
        draw, hop_us = self._draw.random, 0.0 if aim is None else aim.hop_us
        self._aim = aim
        units, now = list(start), list(loads)
        cost, hops = self._cost(now), 0  # more than in the beginning
        best, best_us = list(start), self._longest(now) if aim is None else cost
        hot = _HOT if aim is None else aim.heat
        heat = hot * self._longest(now)
        cooling = (_COLD / hot) ** (1 / max(moves, 1))
        for move in range(moves):
            heat *= cooling
            if move % _LOOK_EVERY == 0 and deadline.passed:
                break
            window = self._window(units, now)
            if window is None:
                continue
            begin, end, unit = window
            changed = self._moved(units, now, begin, end, unit)
            more = self._more_hops(units, begin, end, unit) if hop_us else 0
            price = self._cost(changed) + hop_us * (hops + more)
            if price <= cost or draw() < math.exp((cost - price) / heat):
                units[begin:end] = [unit] * (end - begin)
                now, cost, hops = changed, price, hops + more
                longest = self._longest(now) if aim is None else cost
                if longest < best_us:
                    best, best_us = list(units), longest
        return best

    def stray(self, start: Sequence[int], loads: Sequence[int], moves: int, most: float) -> list[int]:
        """Return a plan some moves away from one, none of which makes the period longer than the most."""
        units, now = list(start), list(loads)
        for _ in range(_TRIES * moves):
            window = self._window(units, now)
            if window is None:
                continue
            begin, end, unit = window
            changed = self._moved(units, now, begin, end, unit)
            if self._longest(changed) <= most:
                units[begin:end] = [unit] * (end - begin)
                now, moves = changed, moves - 1
            if not moves:
                break
        return units

    def _cost(self, loads: list[int]) -> float:
        longest, total, aim = self._longest(loads), sum(loads), self._aim
        cost = longest + _MEAN * total / self._units
        if aim is not None:
            weighted = [weight * load for weight, load in zip(aim.weights, loads, strict=True)]
            over_us = total - min(aim.periods * longest, aim.latency_us)
            cost += self._longest(weighted) - longest + max(0.0, over_us)
        return cost

    def _longest(self, loads: Sequence[float]) -> float:
        """Return the largest load of a resource: of a unit, or of several that take turns."""
        longest = max(loads)
        for units in self._shared:
            longest = max(longest, sum(loads[unit] for unit in units))
        return longest

    def _more_hops(self, units: list[int], begin: int, end: int, unit: int) -> int:
        """Return how many hops more there are when pieces of one chunk go to another unit."""
        own, found = units[begin], 0
        if begin:
            found += (units[begin - 1] != unit) - (units[begin - 1] != own)
        if end < self._count:
            found += (units[end] != unit) - (units[end] != own)
        return found

    def _window(self, units: list[int], loads: list[int]) -> tuple[int, int, int] | None:
        """Draw pieces of one chunk, often of the busiest unit, and another unit that can run them."""
        draw = self._draw.random
        piece = int(draw() * self._count)
        if draw() < 0.5:
            busiest = loads.index(max(loads))
            for _ in range(8):
                if units[piece] == busiest:
                    break
                piece = int(draw() * self._count)
        own, begin, end = units[piece], piece, piece + 1
        size = int(-math.log(1.0 - draw()) * (2.0 if draw() < 0.7 else self._count / 8))
        while size > 0 and end < self._count and units[end] == own:
            end, size = end + 1, size - 1
        if draw() < 0.5:  # to one side, so that a border moves
            if begin and draw() < 0.5:
                while begin and units[begin - 1] == own and piece - begin < 3:
                    begin -= 1
                unit = units[begin - 1] if begin else own
            else:
                unit = units[end] if end < self._count else own
        else:
            unit = int(draw() * self._units)
        blocked = self._blocked[unit]
        return None if unit == own or blocked[end] > blocked[begin] else (begin, end, unit)

    def _moved(self, units: list[int], loads: list[int], begin: int, end: int, unit: int) -> list[int]:
        """Return the loads when pieces of one chunk go to another unit."""
        found, own = list(loads), units[begin]
        found[own] -= self._until[own][end] - self._until[own][begin]
        found[unit] += self._until[unit][end] - self._until[unit][begin]
        enter, leave = self._enter[begin], self._leave[begin]
        before = units[begin - 1] if begin else -1
        if before != own:
            found[own] -= enter[own]
            if before >= 0:
                found[before] -= leave[before]
        if before != unit:
            found[unit] += enter[unit]
            if before >= 0:
                found[before] += leave[before]
        enter, leave = self._enter[end], self._leave[end]
        after = units[end] if end < self._count else -1
        if after != own:
            found[own] -= leave[own]
            if after >= 0:
                found[after] -= enter[after]
        if after != unit:
            found[unit] += leave[unit]
            if after >= 0:
                found[after] += enter[after]
        return found
