"""Workers that run pieces of several networks and the memory probe, and read performance counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Protocol

from ....executor.machine.counters import Counters, counters_availability
from ....executor.model import Model
from ....executor.workers import Link, Message
from ....formulations.errors import ProfilingError
from ....formulations.hardware import Platform
from ...feed import Feed
from ...measuring import Bench, PreparedPiece, WorkerBench
from ...sampling import run_once
from ...worker import Workbench, answer
from .features import EVENTS, Features, features_of
from .probe import open_piece


class CountingBench(Bench, Protocol):
    """Where pieces are timed beside other pieces, and their use of the processor is counted."""

    def features(self, unit: str, prepared: PreparedPiece, *, runs: int) -> Features:
        """Return how a piece uses the processor of a unit, alone.

        Raises ProfilingError: the system does not let this be counted; the message says why, and what to do.
        """
        ...


class ContentionBench(WorkerBench):
    """Times pieces beside other pieces, and counts what they do."""

    def __init__(self, platform: Platform, model: Model, *, seed: int) -> None:
        self.feed = Feed(model, seed=seed)
        super().__init__(platform, self.feed, role=serve)

    def features(self, unit: str, prepared: PreparedPiece, *, runs: int) -> Features:
        """Return how a piece uses the processor of a unit; see `CountingBench`."""
        found = self._ask(unit, "count", prepared, "counted", runs=runs)
        return Features(**found["features"])

    def close(self) -> None:
        """End all workers, and free their inputs."""
        super().close()
        self.feed.close()


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a worker process: as `gapless.profiler.worker.serve`, and "count" (answer: "counted").

    Counters are opened before anything else, because they count only threads that are started later.
    """
    counters = Counters(EVENTS) if counters_availability(EVENTS).ok else None
    try:
        answer(link, settings["descriptor"], open_piece, {"count": partial(_count, counters)})
    finally:
        if counters is not None:
            counters.close()


def _count(counters: Counters | None, bench: Workbench, request: Message, link: Link) -> Message:
    if counters is None:
        raise ProfilingError(counters_availability(EVENTS).reason)

    def work() -> None:
        for _ in range(request["runs"]):
            run_once(bench.session, bench.inputs, bench.outputs)

    run_once(bench.session, bench.inputs, bench.outputs)
    return {"kind": "counted", "features": asdict(features_of(counters.count(work)))}
