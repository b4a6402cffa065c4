"""What counters tell of a network that runs alone: the features of Eq. (1) of Hetero2Pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from ....executor.machine.counters import (
    CACHE_MISSES,
    CACHE_REFERENCES,
    CYCLES,
    INSTRUCTIONS,
    STALLED_BACKEND,
    CounterEvent,
)
from ....formulations.errors import ProfilingError
from ....formulations.validation import FileContent

EVENTS = (CYCLES, INSTRUCTIONS, CACHE_REFERENCES, CACHE_MISSES, STALLED_BACKEND)
"""What is counted for one network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features(FileContent):
    """How one network uses a processor, alone."""

    instructions_per_cycle: float
    """High: it computes rather than waits for memory."""
    miss_rate: float
    """Cache misses by cache accesses (of the last level that the processor counts)."""
    stall_rate: float
    """Cycles in which the backend waits, by all cycles."""

    @property
    def row(self) -> tuple[float, ...]:
        """The features in the order of the paper, for `ridge.fit_ridge`."""
        return astuple(self)


def features_of(counts: Mapping[CounterEvent, float]) -> Features:
    """Return the features from counts of all `EVENTS`."""
    for event in (CYCLES, CACHE_REFERENCES):
        if counts[event] <= 0:
            raise ProfilingError(f"no {event.name} were counted while a network ran: the counters are wrong")
    return Features(
        instructions_per_cycle=counts[INSTRUCTIONS] / counts[CYCLES],
        miss_rate=counts[CACHE_MISSES] / counts[CACHE_REFERENCES],
        stall_rate=counts[STALLED_BACKEND] / counts[CYCLES],
    )
