"""A policy: who has waited longest comes first, each on its quickest way."""

from __future__ import annotations

from collections.abc import Sequence

from gapless.coordination import Decision, Policy, Times, UnitState, Waiting
from gapless.formulations.coordination.times import soonest


class Patient(Policy):
    """First come, first served; a request waits for a busy unit if it is done sooner that way."""

    name = "patient"

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        """Return the first chunk that can start, of who has waited longest."""
        waits = [state.wait_us if state.available else None for state in units]
        for request in sorted(queue, key=lambda waiting: (waiting.arrival_us, waiting.number)):
            way = soonest(times, request.network, request.done, waits)
            if way is not None and units[way.first.unit].idle:
                return Decision(request.number, way.first.stop, way.first.unit)
        return None
