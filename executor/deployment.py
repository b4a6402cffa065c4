"""What runs at the same time: one or more streams of requests, each through its chunks."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

from ..formulations.errors import InvalidPlanError
from ..formulations.plan import Chunk, Plan
from ..formulations.validation import STRICT


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An endless sequence of requests of one network, all through the same chunks.

    Attributes
    ----------
    name
        Unique in its deployment; usually the name of the network.
    chunks
        Chunks of one network in the order of its layers, covering all of them.
    task_slots
        Most requests on their way at once, at least 1. None: two for each chunk, one at work and one
        waiting for it, so that a late chunk does not stop its neighbours.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    name: str
    chunks: tuple[Chunk, ...]
    task_slots: int | None = None

    @property
    def network(self) -> str:
        """Name of the network."""
        return self.chunks[0].network

    @property
    def slots(self) -> int:
        """Number of task slots."""
        return 2 * len(self.chunks) if self.task_slots is None else self.task_slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Streams that share the units of one device.

    A unit serves the requests with the same number in the order of the streams, then the next
    number; streams that share no unit run independently of each other.
    """

    __pydantic_config__: ClassVar[Any] = STRICT

    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        if not self.streams:
            raise InvalidPlanError("a deployment needs at least one stream")
        if len({stream.name for stream in self.streams}) < len(self.streams):
            raise InvalidPlanError("two streams of a deployment have the same name")
        for stream in self.streams:
            ends = [0, *(chunk.stop for chunk in stream.chunks)]
            starts = [chunk.start for chunk in stream.chunks]
            if not starts or starts != ends[:-1] or len({chunk.network for chunk in stream.chunks}) > 1:
                raise InvalidPlanError(
                    f"stream {stream.name!r} does not run consecutive chunks of one network from layer 0"
                )
            if stream.slots < 1:
                raise InvalidPlanError(f"stream {stream.name!r} needs at least one task slot")

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units in use, in order of first use."""
        return tuple(dict.fromkeys(chunk.unit for stream in self.streams for chunk in stream.chunks))

    @property
    def deployment_id(self) -> str:
        """Twelve hexadecimal digits that depend on the streams alone."""
        text = "\n".join(
            f"{s.name}\t{s.slots}\t" + " ".join(f"{c.network}:{c.start}:{c.stop}:{c.unit}" for c in s.chunks)
            for s in self.streams
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        return " || ".join(
            " | ".join(f"{c.start}-{c.stop - 1} {c.unit}" for c in stream.chunks) for stream in self.streams
        )


def deploy(plan: Plan, *, task_slots: int | None = None) -> Deployment:
    """Return a plan as a deployment: one stream for each of its networks."""
    names = dict.fromkeys(chunk.network for chunk in plan.chunks)
    return Deployment(
        streams=tuple(
            Stream(
                name=name,
                chunks=tuple(chunk for chunk in plan.chunks if chunk.network == name),
                task_slots=task_slots,
            )
            for name in names
        )
    )


def replicas(network: str, layers: int, units: tuple[str, ...]) -> Deployment:
    """Return a deployment that runs the whole network on each of some units, side by side."""
    return Deployment(
        streams=tuple(
            Stream(
                name=f"{network}@{unit}",
                chunks=(Chunk(network=network, start=0, stop=layers, unit=unit),),
            )
            for unit in units
        )
    )
