"""What a run leaves behind: time stamps of its latest requests, and exact sums over all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ...formulations.deployment import Deployment
from .board import RECORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ChunkRows(Protocol):
    """The time stamps of one chunk."""

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Return those of the requests [start, stop) as an array (requests, 4), see `Stamps`."""


class TimeStamps(Protocol):
    """The time stamps of a run: the board of a pipeline, or what devices have sent."""

    @property
    def begins_ns(self) -> Sequence[int] | memoryview:
        """When the warm-up of each stream was over."""

    def stamps(self, stream: int, chunk: int) -> ChunkRows:
        """Return those of one chunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCount:
    """What one chunk did in the measured window, exactly.

    `start_ns`, `end_ns`: start of the first, end of the last.
    """

    count: int  # requests that count
    busy_ns: int  # time that they took
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a run has left behind."""

    deployment: Deployment  # what ran
    board: TimeStamps  # time stamps of the latest `RECORDS` requests of each chunk
    warm_up: int  # number of the first request that counts
    tasks: Mapping[tuple[int, int], TaskCount]  # exact sums, by (stream, chunk)
    rss_bytes: Mapping[str, int]  # largest resident memory of each worker, by unit
    begins_ns: tuple[int, ...] = ()
    """When each round of a workload began, warm-up included; empty without rounds."""

    def count(self, stream: int) -> int:
        """Return how many requests of a stream count: those of which all last chunks do."""
        return min(self.tasks[stream, chunk].count for chunk in self.deployment.streams[stream].last)

    def starts_ns(self, stream: int) -> NDArray[Any]:
        """Return when the requests of a stream began; of those for which `rows` are kept."""
        import numpy as np

        first = self.deployment.streams[stream].first
        starts: NDArray[Any] = np.min([self.rows((stream, chunk))[:, 0] for chunk in first], axis=0)
        return starts

    def ends_ns(self, stream: int) -> NDArray[Any]:
        """Return when the requests of a stream were through; of those for which `rows` are kept."""
        import numpy as np

        last = self.deployment.streams[stream].last
        ends: NDArray[Any] = np.max([self.rows((stream, chunk))[:, 3] for chunk in last], axis=0)
        return ends

    def rows(self, task: tuple[int, int]) -> NDArray[Any]:
        """Return the time stamps that are still kept of the requests of a stream that count."""
        stream, chunk = task
        slots = self.deployment.streams[stream].slots
        stop = self.warm_up + self.count(stream)
        # Earlier chunks are ahead by up to as many requests as there are slots.
        start = max(self.warm_up, stop - RECORDS + slots)
        return self.board.stamps(stream, chunk).rows(start, stop)

    def on(self, unit: str) -> Iterator[tuple[int, int]]:
        """Yield (stream, chunk) of everything that a unit serves."""
        for index, stream in enumerate(self.deployment.streams):
            yield from ((index, chunk) for chunk, part in enumerate(stream.chunks) if part.unit == unit)
