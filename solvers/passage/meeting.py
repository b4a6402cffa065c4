"""Plans from both ends: labels that come forward meet those that come backward at a boundary in the middle.

A few hundred labels from each end make a few hundred thousand plans, and some of these are far better
balanced than any that a single narrow sweep ends with: so much the more if the labels that are kept differ in
how their loads are balanced. It says nothing about what no plan can reach.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from ...formulations.limits import Limits
from ..chunking.ordering import Ints
from ..chunking.pool import Pool
from .dominance import Dominance
from .outlook import Needs, Outlook, Ranking
from .sweep import Growth, Setting, Sweep
from .table import Table

_PAIRS = 4
"""Plans that each pair of units offers, at most."""


class Meeting:
    """Sweeps from both ends of a network to its middle; the first term is the period."""

    def __init__(self, outlook: Outlook, ranking: Ranking, pause: Callable[[], None]) -> None:
        table = outlook.table
        self.table, self._middle = table, table.count // 2
        needs = Needs(energy=False, balance=False, idle=False, memory=False)
        self._ranking = replace(ranking, limits=Limits(), device_memory=None)
        self._outlooks = [
            Outlook(own, outlook.prices, needs, best=outlook.best, idle_mw=0, extra_mw=(0,) * table.units)
            for own in (table, reversed_table(table))
        ]
        self._pause = pause

    def plans(self, pool: Pool, floor: int, width: int) -> Iterator[tuple[int, ...]]:
        """Yield plans, by the unit of each piece, with shorter periods than the only plan of a pool.

        No plan has a period below the floor; `width` labels come from each end.
        """
        below = int(pool.ranks[0, 0]) if len(pool) else sys.maxsize
        sweeps = [Sweep(self._setting(outlook, pool, floor), width) for outlook in self._outlooks]
        ahead, behind = sweeps[0].run(self._middle), sweeps[1].run(self.table.count - self._middle)
        if ahead is None or behind is None:
            return
        found: list[tuple[int, int, int]] = []
        for unit, other in product(range(self.table.units), repeat=2):
            rows, columns = np.flatnonzero(ahead.unit == unit), np.flatnonzero(behind.unit == other)
            if (unit == other and self.table.must[self._middle]) or not (len(rows) and len(columns)):
                continue
            period = self._periods(ahead.state.loads[:, rows], behind.state.loads[:, columns], unit, other)
            for place in np.argpartition(period.ravel(), min(_PAIRS, period.size) - 1)[:_PAIRS].tolist():
                row, column = divmod(place, len(columns))
                found.append((int(period[row, column]), int(rows[row]), int(columns[column])))
        for period_us, front, back in sorted(found)[:_PAIRS]:
            if period_us >= below:
                return
            first = sweeps[0].paths(np.array([front]))[:, 0]
            second = sweeps[1].paths(np.array([back]))[::-1, 0]
            yield (*first.tolist(), *second.tolist())

    def _setting(self, outlook: Outlook, pool: Pool, floor: int) -> Setting:
        return Setting(
            table=outlook.table,
            growth=Growth(outlook.table, memory=False, paths=False),
            outlook=outlook,
            ranking=self._ranking,
            pool=pool,
            dominance=Dominance(
                enough=1,
                monotone=True,
                sets=bool(self.table.conflicts.any()),
                hops=False,
                idle_below=outlook.idle_below(floor),
            ),
            prune=None,
            pause=self._pause,
            floor=floor,
            better=True,
            spread=True,
        )

    def _periods(self, ahead: Ints, behind: Ints, unit: int, other: int) -> Ints:
        """Return the periods of all pairs."""
        if unit != other:
            ahead, behind = ahead.copy(), behind.copy()
            ahead[unit] += self.table.leave[self._middle][unit]
            behind[other] += self.table.enter[self._middle][other]
        ahead, behind = self.table.pooled(ahead), self.table.pooled(behind)
        found: Ints = ahead[0][:, None] + behind[0]
        for own, rest in zip(ahead[1:], behind[1:], strict=True):
            np.maximum(found, own[:, None] + rest, out=found)
        return found


def reversed_table(table: Table) -> Table:
    """Return the arrays of the network from its end to its beginning, without bytes."""
    return replace(
        table,
        time=table.time[::-1],
        able=table.able[::-1],
        enter=table.leave[::-1],
        leave=table.enter[::-1],
        must=table.must[::-1],
    )
