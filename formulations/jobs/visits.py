"""Which units a request may visit after those that it has visited, by its passage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """What the passage of requests allows, step by step.

    What counts of the units so far is a whole number: 0 before the first chunk.
    """

    once: bool  # whether each unit has at most one chunk of a request
    rank: tuple[int, ...] | None  # place of each unit in the order of passage; None: any order

    def after(self, state: int, unit: int) -> int | None:
        """Return what counts after one more chunk, on a unit; None: it may not be there."""
        if self.rank is not None:
            return self.rank[unit] + 1 if self.rank[unit] >= state else None
        if not self.once:
            return 0
        return None if state >> unit & 1 else state | 1 << unit

    def allows(self, units: Iterable[int]) -> bool:
        """Return whether the chunks of a request may be on these units, in this order."""
        state = 0
        for unit in units:
            after = self.after(state, unit)
            if after is None:
                return False
            state = after
        return True
