"""The best schedules that a search has seen."""

from __future__ import annotations

from collections.abc import Callable

from ...formulations.flow_shop.space import Groups, settled
from ...formulations.flow_shop.tables import Schedule
from .measure import Key


class KeptSchedules:
    """The best valid schedules seen, and the best key of any.

    `alike`: requests that can trade places: schedules that differ by nothing else are kept once.
    """

    def __init__(self, most: int, on_better: Callable[[Key, Schedule], None], alike: Groups = ()) -> None:
        self._most, self._on_better = most, on_better
        self._alike = alike if most > 1 else ()
        self._kept: dict[Schedule, Key] = {}

    @property
    def full(self) -> bool:
        """Whether as many as wanted are there."""
        return len(self._kept) >= self._most

    @property
    def schedules(self) -> list[Schedule]:
        """The schedules in canonical order."""
        return sorted(self._kept, key=lambda s: (self._kept[s], s.order, s.cuts))

    @property
    def best(self) -> Key | None:
        """The least key."""
        return min(self._kept.values(), default=None)

    def wants(self, key: Key) -> bool:
        """Return whether a schedule with this key would be kept."""
        return key[0] == 0 and (not self.full or key < max(self._kept.values()))

    def add(self, key: Key, schedule: Schedule) -> None:
        """Keep a schedule that is wanted."""
        better = self.best is None or key < self.best
        schedule = settled(schedule, self._alike) if self._alike else schedule
        self._kept[schedule] = key
        if len(self._kept) > self._most:
            del self._kept[max(self._kept, key=lambda s: (self._kept[s], s.order, s.cuts))]
        if better:
            self._on_better(key, schedule)
