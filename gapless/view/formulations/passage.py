"""How plans of one network are shown whose units may have several chunks."""

from __future__ import annotations

from typing import ClassVar

from ...formulations.problem import Problem
from .chunking import ChunkingPresenter


class PassagePresenter(ChunkingPresenter):
    """One network as an endless stream whose requests come back to units."""

    busy_span: ClassVar[str] = "of all chunks of each unit in one period"

    def shown_terms(self, problem: Problem) -> tuple[str, ...]:
        """Return what is asked for most."""
        return ("period", "hops", "latency", "bubbles")

    def legend(self, problem: Problem) -> str:
        """Return what they mean."""
        return (
            "period: time between two outputs = busy time of the busiest unit with all its chunks; hops: how "
            "often a request goes from one unit to another; unqueued latency: one request from entry to exit "
            "without waiting; bubbles: idle time of the units in use"
        )


PRESENTER = PassagePresenter()
