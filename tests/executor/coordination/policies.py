"""A small policy, and coordinators on tiny models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from gapless.executor.coordination.coordinator import Coordinator
from gapless.formulations.coordination.latency import soonest
from gapless.formulations.coordination.policy import Decision, Policy, UnitState, Waiting
from gapless.formulations.coordination.times import Times
from tests.executor.pipeline.fakes import FakeEngine, platform


class FirstCome(Policy):
    """The first request whose soonest way begins on an idle unit."""

    name: ClassVar[str] = "first-come"

    def next(
        self, now_us: int, queue: Sequence[Waiting], units: Sequence[UnitState], times: Times
    ) -> Decision | None:
        wait_us = [unit.wait_us if unit.available else None for unit in units]
        for request in queue:
            found = soonest(times, request.network, request.done, wait_us)
            if found is not None and units[found[1].unit].idle:
                return Decision(request.number, found[1].stop, found[1].unit)
        return None


def coordinator(*units: str, **options: Any) -> Coordinator:
    """Return a coordinator of the fake engine."""
    return Coordinator(platform(*units), FakeEngine(), FirstCome(), **options)
