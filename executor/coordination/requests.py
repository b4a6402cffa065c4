"""Requests of a coordinator: as they are on their way, and as they are answered."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...formulations.coordination.policy import Waiting
from ...formulations.deployment import Deployment
from ...formulations.history import History, Interval, executed
from ...formulations.plan import Chunk
from ...formulations.streams import Stream

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RanChunk:
    """A chunk that a request was served by.

    Attributes
    ----------
    start, stop
        Its layers [start, stop).
    unit
        Where it ran.
    times_ns
        When it began, and when it had copied in, run and copied out; nanoseconds of the monotonic clock.
    """

    start: int
    stop: int
    unit: str
    times_ns: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The answer to a request: its outputs, and who ran it.

    Attributes
    ----------
    number
        Of the request.
    name
        Of the model, as it was asked for.
    outputs
        By name; the caller's own copies.
    chunks
        Who ran it, in order.
    arrival_ns, done_ns
        When it was submitted, and when its last chunk was done; nanoseconds of the monotonic clock.
    deadline_us
        By when after its arrival it had to be done; None: no deadline.
    """

    number: int
    name: str
    outputs: Mapping[str, NDArray[Any]]
    chunks: tuple[RanChunk, ...]
    arrival_ns: int
    done_ns: int
    deadline_us: int | None = None

    @property
    def latency_us(self) -> float:
        """From its arrival to the end of its last chunk, microseconds."""
        return (self.done_ns - self.arrival_ns) / 1000

    @property
    def waited_us(self) -> float:
        """How much of that no unit worked on it, microseconds."""
        busy_ns = sum(chunk.times_ns[-1] - chunk.times_ns[0] for chunk in self.chunks)
        return self.latency_us - busy_ns / 1000

    @property
    def late(self) -> bool:
        """Whether it has missed its deadline."""
        return self.deadline_us is not None and self.latency_us > self.deadline_us


@dataclass(slots=True, kw_only=True)
class Accepted:
    """A request that was accepted and is not answered."""

    name: str  # of the model, as it was asked for
    waiting: Waiting  # as policies see it when nothing of it is done
    slot: int  # its task slot
    arrival_ns: int  # when it was submitted
    future: Future[Served]  # where its answer goes
    chunks: list[RanChunk] = field(default_factory=list)  # what has run of it
    attempts: int = 0  # how many times a worker was lost, or failed, while it ran
    counts: int = 1  # as how many it counts: of a batch, its requests

    def __str__(self) -> str:
        return f"request {self.waiting.number} of {self.name!r}"

    def served(self, outputs: Mapping[str, NDArray[Any]]) -> Served:
        """Return its answer."""
        deadline_us = self.waiting.deadline_us
        return Served(
            number=self.waiting.number,
            name=self.name,
            outputs=outputs,
            chunks=tuple(self.chunks),
            arrival_ns=self.arrival_ns,
            done_ns=self.chunks[-1].times_ns[-1],
            deadline_us=None if deadline_us is None else deadline_us - self.waiting.arrival_us,
        )


def history_of(served: list[Served], networks: Mapping[str, str]) -> History:
    """Return when the chunks of answered requests ran; requests that took the same way are one stream.

    `served`: at least one, in any order.
    """
    begin_ns = min(answer.chunks[0].times_ns[0] for answer in served)
    ways: dict[tuple[str, tuple[tuple[int, int, str], ...]], int] = {}
    streams, counts, events = list[Stream](), list[int](), list[Interval]()
    for answer in sorted(served, key=lambda answer: answer.number):
        way = answer.name, tuple((chunk.start, chunk.stop, chunk.unit) for chunk in answer.chunks)
        if way not in ways:
            ways[way] = len(streams)
            alike = sum(name == answer.name for name, _ in ways)
            network = networks[answer.name]
            streams.append(
                Stream(
                    name=answer.name if alike == 1 else f"{answer.name} ({alike})",
                    chunks=tuple(Chunk(network=network, start=a, stop=b, unit=u) for a, b, u in way[1]),
                )
            )
            counts.append(0)
        stream = ways[way]
        for index, chunk in enumerate(answer.chunks):
            start_ns, *engine_ns, end_ns = (at - begin_ns for at in chunk.times_ns)
            events.append(
                Interval(
                    start_ns=start_ns,
                    end_ns=end_ns,
                    stream=stream,
                    request=counts[stream],
                    chunk=index,
                    unit=chunk.unit,
                    engine_ns=tuple(engine_ns),
                )
            )
        counts[stream] += 1
    return executed(Deployment(streams=tuple(streams)), events)
