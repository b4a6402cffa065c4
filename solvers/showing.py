"""When a search shows what it has: as often as it may for a small share of its time."""

from __future__ import annotations

import time
from collections.abc import Callable

from .protocol import Claim, SolveOptions, unwatched

SHARE, ALLOWANCE_S = 0.03, 0.02
"""Share of the time of a search that goes into showing plans, and what may be spent before that counts."""


class Showing:
    """Publishes what a search has whenever it got better, as long as that takes little time.

    Who watches wants every step: how fast a search comes to good plans is read off what it publishes. But a
    claim about a large workload takes milliseconds to write down, and the first plans come in bursts.
    """

    def __init__(self, options: SolveOptions) -> None:
        self._publish = options.publish
        self._started, self._spent = time.monotonic(), 0.0

    def offer(self, claim: Callable[[], Claim]) -> None:
        """Publish a claim, which is made only if somebody watches and there is time for it."""
        began = time.monotonic()
        if self._publish is unwatched or self._spent > ALLOWANCE_S + SHARE * (began - self._started):
            return
        self._publish(claim())
        self._spent += time.monotonic() - began
