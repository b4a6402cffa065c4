"""When the next worker of a unit may start: at once after a loss, later the more often starts fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

RESTARTS = 20
"""How many workers of a unit may start again within `WINDOW_S`, unless the user says otherwise."""

WINDOW_S = 60.0

FIRST_WAIT_S = 0.25
"""The wait after a start that failed; each further one that fails doubles it."""

LONGEST_WAIT_S = 30.0


class Restarts:
    """Counts losses and starts of the workers of one unit; nothing is counted for longer than a window.

    `most`: how many may start within `WINDOW_S`; 0: none at all. `clock`: tells seconds.
    """

    def __init__(self, most: int, *, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self._starts: deque[float] = deque(maxlen=most)
        self._failed = 0

    def begun(self) -> None:
        """Count a start."""
        self._starts.append(self.clock())

    def wait_s(self, *, worked: bool) -> float | None:
        """Return how long after a loss the next worker has to wait; None: there is no next one.

        `worked`: whether the one that was lost had shown that it works; a start that failed has not.
        """
        self._failed = 0 if worked else self._failed + 1
        if not self._starts.maxlen:
            return None
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(self._failed - 1, 30)) if self._failed else 0.0
        full = len(self._starts) == self._starts.maxlen
        return max(wait_s, self._starts[0] + WINDOW_S - self.clock() if full else 0.0)
