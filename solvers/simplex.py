"""A small linear program whose columns come in one after the other, in floating point.

Whoever uses the prices that it finds makes them exact: nothing here has to be right to the last digit.
`scipy.optimize` has better programs, but takes longer to load than a plan may take.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .protocol import Deadline

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_PIVOTS_TO_REFRESH = 60
_MOST_PIVOTS = 20_000


class Simplex:
    """Minimise costs x with columns x = right, x >= 0, by the revised simplex method.

    `columns`, `costs`: a basis to start from, shapes (m, m) and (m,); its solution must not be negative.
    `right`: the right-hand side, shape (m,).
    `columns`, `costs`: all columns so far, shapes (m, n) and (n,).
    """

    def __init__(self, columns: Floats, costs: Floats, right: Floats) -> None:
        self.columns, self.costs = columns, costs
        self._right = right
        self._basis = np.arange(len(right))
        self._pivots = 0
        self._refresh()

    def add(self, columns: Floats, costs: Floats) -> None:
        """Add columns, shapes (m, n) and (n,)."""
        self.columns = np.concatenate([self.columns, columns], axis=1)
        self.costs = np.concatenate([self.costs, costs])

    @property
    def prices(self) -> Floats:
        """What one more unit of each row costs, at the present basis, shape (m,)."""
        found: Floats = self.costs[self._basis] @ self._inverse
        return found

    @property
    def values(self) -> Floats:
        """How much of each column is used, shape (n,)."""
        found = np.zeros(len(self.costs))
        found[self._basis] = self._level
        return found

    def solve(self, deadline: Deadline) -> bool:
        """Pivot until no column is worth more than it costs; return whether that was reached."""
        while self._pivots < _MOST_PIVOTS:
            reduced = self.costs - self.prices @ self.columns
            entering = int(reduced.argmin())
            if reduced[entering] >= -_TOLERANCE:
                return True
            self._pivots += 1
            if not self._pivot(entering) or (self._pivots % 16 == 0 and deadline.passed):
                return False
        return False

    def _pivot(self, entering: int) -> bool:
        """Take one column into the basis; return whether there was a row to leave it."""
        change = self._inverse @ self.columns[:, entering]
        rising = np.flatnonzero(change > _TOLERANCE)
        if not len(rising):
            return False
        ratios = self._level[rising] / change[rising]
        near = rising[ratios <= ratios.min() + _TOLERANCE]
        leaving = int(near[change[near].argmax()])
        self._basis[leaving] = entering
        if self._pivots % _PIVOTS_TO_REFRESH == 0:
            self._refresh()
            return True
        pivot = self._inverse[leaving] / change[leaving]
        step = self._level[leaving] / change[leaving]
        self._inverse -= change[:, None] * pivot
        self._inverse[leaving] = pivot
        self._level -= step * change
        self._level[leaving] = step
        np.maximum(self._level, 0.0, out=self._level)
        return True

    def _refresh(self) -> None:
        self._inverse = np.linalg.inv(self.columns[:, self._basis])
        self._level = np.maximum(self._inverse @ self._right, 0.0)
