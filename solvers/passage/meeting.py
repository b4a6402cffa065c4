"""Plans from both ends: labels that come forward meet those that come backward at a boundary in the middle.

A few hundred labels from each end make a few hundred thousand plans, and of so many some are far better
balanced than any that a single narrow sweep ends with. It says nothing about what no plan can reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from ..chunking.ordering import Ints
from ..chunking.pool import Pool
from .dominance import Dominance
from .outlook import Needs, Outlook, Ranking
from .sweep import Growth, Labels, Setting, Sweep
from .table import Table

_MOST = 2048
"""Most labels from each end."""

_PAIRS = 4
"""Plans that each pair of units offers, at most."""


class Meeting:
    """Sweeps from the end of a network to its middle.

    Parameters
    ----------
    outlook, ranking
        Those of the sweeps from its beginning; the first term is the period.
    pause
        Called at each boundary.
    """

    def __init__(self, outlook: Outlook, ranking: Ranking, pause: Callable[[], None]) -> None:
        table = outlook.table
        self.table, self.middle = table, table.count // 2
        self._ranking = replace(ranking, limits=type(ranking.limits)(), device_memory=None)
        self._pause = pause
        self._back = reversed_table(table)
        needs = Needs(energy=False, balance=False, idle=False, memory=False)
        self._outlook = Outlook(
            self._back, outlook.prices, needs, best=outlook.best, idle_mw=0, extra_mw=(0,) * table.units
        )
        self._sweep: Sweep | None = None
        self._labels: Labels | None = None

    def prepare(self, pool: Pool, floor: int, width: int) -> None:
        """Sweep from the end for plans that are better than the best known one."""
        setting = Setting(
            table=self._back,
            growth=Growth(self._back, memory=False, paths=False),
            outlook=self._outlook,
            ranking=self._ranking,
            pool=pool,
            dominance=Dominance(
                enough=1,
                monotone=True,
                sets=bool(self.table.conflicts.any()),
                hops=False,
                idle_below=self._outlook.idle_below(floor),
            ),
            prune=None,
            pause=self._pause,
            floor=floor,
            better=True,
        )
        self._sweep = Sweep(setting, min(width, _MOST))
        self._labels = self._sweep.run(until=self.table.count - self.middle)

    def plans(self, sweep: Sweep, labels: Labels, below: int) -> Iterator[tuple[int, ...]]:
        """Yield plans of a shorter period than some: of the pairs of each two units the best ones."""
        if self._sweep is None or self._labels is None:
            return
        found: list[tuple[int, int, int]] = []
        for unit in range(self.table.units):
            ahead = np.flatnonzero(labels.unit == unit)[:_MOST]
            for other in range(self.table.units):
                behind = np.flatnonzero(self._labels.unit == other)
                if (unit == other and self.table.must[self.middle]) or not (len(ahead) and len(behind)):
                    continue
                period = self._periods(
                    labels.state.loads[:, ahead], self._labels.state.loads[:, behind], unit, other
                )
                best = np.argpartition(period.ravel(), min(_PAIRS, period.size) - 1)[:_PAIRS]
                for place in best.tolist():
                    row, column = divmod(place, len(behind))
                    found.append((int(period[row, column]), int(ahead[row]), int(behind[column])))
        for period_us, front, back in sorted(found)[:_PAIRS]:
            if period_us >= below:
                return
            first = sweep.paths(np.array([front]))[:, 0]
            second = self._sweep.paths(np.array([back]))[::-1, 0]
            yield (*first.tolist(), *second.tolist())

    def _periods(self, ahead: Ints, behind: Ints, unit: int, other: int) -> Ints:
        """Return the periods of all pairs."""
        if unit != other:
            ahead, behind = ahead.copy(), behind.copy()
            ahead[unit] += self.table.leave[self.middle][unit]
            behind[other] += self.table.enter[self.middle][other]
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
