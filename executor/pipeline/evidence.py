"""What a run leaves behind: time stamps of its latest requests, and exact sums over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment
from .board import RECORDS, Board

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """What one chunk did in the measured window, exactly.

    Attributes
    ----------
    count
        Requests that count.
    busy_ns
        Time that they took.
    start_ns, end_ns
        Start of the first, end of the last.
    """

    count: int
    busy_ns: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run has left behind.

    Attributes
    ----------
    deployment
        What ran.
    board
        Time stamps of the latest `RECORDS` requests of each chunk.
    warm_up
        Number of the first request that counts.
    tasks
        Exact sums, by (stream, chunk).
    rss_bytes
        Largest resident memory of each worker, by unit.
    begins_ns
        When each round of a workload began, warm-up included; empty without rounds.
    """

    deployment: Deployment
    board: Board
    warm_up: int
    tasks: Mapping[tuple[int, int], TaskCount]
    rss_bytes: Mapping[str, int]
    begins_ns: tuple[int, ...] = ()

    def last(self, stream: int) -> tuple[int, int]:
        """Return the last chunk of a stream."""
        return stream, len(self.deployment.streams[stream].chunks) - 1

    def rows(self, task: tuple[int, int]) -> NDArray[Any]:
        """Return the time stamps that are still kept of the requests of a stream that count."""
        stream, chunk = task
        slots = self.deployment.streams[stream].slots
        stop = self.warm_up + self.tasks[self.last(stream)].count
        # Earlier chunks are ahead by up to as many requests as there are slots.
        start = max(self.warm_up, stop - RECORDS + slots)
        return self.board.stamps(stream, chunk).rows(start, stop)

    def on(self, unit: str) -> Iterator[tuple[int, int]]:
        """Yield (stream, chunk) of everything that a unit serves."""
        for index, stream in enumerate(self.deployment.streams):
            yield from ((index, chunk) for chunk, part in enumerate(stream.chunks) if part.unit == unit)
