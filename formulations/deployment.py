"""What runs at the same time: one or more streams of requests, each through its chunks."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

from .errors import InvalidPlanError
from .plan import Chunk, Plan
from .streams import Stream, check_stream
from .validation import FileContent

UNQUEUED = "unqueued latency"
"""Time of one request that is on its way alone: of chunks in a row it is the sum of their busy times."""

FULL_SLOTS = "latency with full slots"
"""Time of one request while all task slots are taken, as when a period is measured: it waits for its turn."""

FROM_ARRIVAL = "latency from arrival"
"""Time of one request of a batch, from its arrival to its exit."""


class Mode(StrEnum):
    """Whether the requests come once (BATCH) or over and over (STREAM)."""

    BATCH = "batch"
    STREAM = "stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds(FileContent):
    """That streams are the requests of one workload: those with the same number are one round of it."""

    mode: Mode
    """BATCH: a round begins when all requests of the one before have left. STREAM: back to back."""
    arrivals_us: tuple[int, ...]
    """When the request of each stream comes in, from the beginning of its round."""
    task_slots: int | None = None
    """Most requests of all streams on their way at once; the next one in order enters when an earlier one has
    left. None: no limit."""
    order: tuple[str, ...] = ()
    """In which units serve chunks: the name of a stream for each of them. Empty: stream after stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment(FileContent):
    """Streams that share the units of one device.

    A unit serves the requests with the same number in the order of the streams, then the next
    number; streams that share no unit run independently of each other.

    Attributes
    ----------
    streams
        At least one, with different names.
    rounds
        How requests come in that belong to one workload; None: every stream lets the next one in as soon
        as it has a task slot for it.
    """

    streams: tuple[Stream, ...]
    rounds: Rounds | None = None

    def __post_init__(self) -> None:
        if not self.streams:
            raise InvalidPlanError("a deployment needs at least one stream")
        if len({stream.name for stream in self.streams}) < len(self.streams):
            raise InvalidPlanError("two streams of a deployment have the same name")
        for stream in self.streams:
            firsts = [stream.chunks[group[0]] for group in stream.groups]
            ends = [0, *(chunk.stop for chunk in firsts)]
            starts = [chunk.start for chunk in firsts]
            if not starts or starts != ends[:-1] or len({chunk.network for chunk in stream.chunks}) > 1:
                raise InvalidPlanError(
                    f"stream {stream.name!r} does not run consecutive chunks of one network from layer 0"
                )
            if stream.order and (stream.tiles or sorted(stream.order) != [*range(ends[-1])]):
                raise InvalidPlanError(
                    f"the order of stream {stream.name!r} must name each of its {ends[-1]} layers once, "
                    "and no chunk may be divided"
                )
            check_stream(stream)
        if self.rounds is not None:
            _check_rounds(self.rounds, self.streams)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units in use, in order of first use."""
        return tuple(dict.fromkeys(chunk.unit for stream in self.streams for chunk in stream.chunks))

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of the networks, in order of first use."""
        return tuple(dict.fromkeys(stream.network for stream in self.streams))

    @property
    def turns(self) -> tuple[tuple[int, int], ...]:
        """(stream, chunk) of everything that units serve for requests of one number, in their order."""
        place = {stream.name: index for index, stream in enumerate(self.streams)}
        order = () if self.rounds is None else self.rounds.order
        order = order or tuple(stream.name for stream in self.streams for _ in stream.chunks)
        following = {name: count() for name in place}
        return tuple((place[name], next(following[name])) for name in order)

    @property
    def is_divided(self) -> bool:
        """Whether several units compute tiles of one chunk."""
        return any(any(stream.tiles) for stream in self.streams)

    @property
    def is_dataflow(self) -> bool:
        """Whether its chunks run side by side for one request at a time."""
        return any(stream.dataflow is not None for stream in self.streams)

    @property
    def is_batch(self) -> bool:
        """Whether it runs a finite batch of requests, over and over."""
        return self.rounds is not None and self.rounds.mode is Mode.BATCH

    @property
    def pace(self) -> str:
        """What the time from one result to the next is.

        The makespan of a batch; the latency where one request is on its way at a time; else the period.
        """
        if self.is_batch:
            return "makespan"
        alone = self.rounds is None and len(self.streams) == 1 and self.streams[0].slots == 1
        return "latency" if alone else "period"

    @property
    def pace_name(self) -> str:
        """What people call `pace`."""
        return UNQUEUED if self.pace == "latency" else self.pace

    @property
    def latency_name(self) -> str:
        """What people call the time of one of its requests: requests that wait are not those that do not."""
        if self.is_batch:
            return FROM_ARRIVAL
        return UNQUEUED if self.pace == "latency" else FULL_SLOTS

    @property
    def plan(self) -> Plan | None:
        """What `deploy` made it from; None for replicas, which are several streams without rounds.

        Streams whose chunks say which of them they belong to (`Chunk.request`) are one plan together.
        """
        if len(self.streams) == 1 and self.streams[0].dataflow is not None:
            return Plan(chunks=self.streams[0].placed, order=self.streams[0].dataflow.starts)
        named = all(chunk.request == stream.name for stream in self.streams for chunk in stream.chunks)
        if self.rounds is not None or named:
            order = () if self.rounds is None else self.rounds.order
            return Plan(
                chunks=tuple(replace(c, request=s.name) for s in self.streams for c in s.placed),
                order=order or tuple(stream.name for stream in self.streams),
            )
        return Plan(chunks=self.streams[0].placed) if len(self.streams) == 1 else None

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What runs, as plans: one, or of replicas one for each of them."""
        whole = self.plan
        return self.parts if whole is None else (whole,)

    @property
    def parts(self) -> tuple[Plan, ...]:
        """What runs independently, as plans of its own: streams side by side, or all that go in step."""
        if self.rounds is not None or self.is_dataflow:
            return self.plans
        streams = (stream.placed for stream in self.streams)
        return tuple(Plan(chunks=tuple(replace(c, request="") for c in chunks)) for chunks in streams)

    @property
    def deployment_id(self) -> str:
        """Twelve hexadecimal digits that depend on the streams and rounds alone."""
        lines = [
            f"{s.name}\t{s.slots}\t" + " ".join(f"{c.network}:{c.start}:{c.stop}:{c.unit}" for c in s.chunks)
            for s in self.streams
        ]
        lines += [f"{s.name}\t{'; '.join(map(str, s.tiles))}" for s in self.streams if s.tiles]
        lines += [f"{s.name}\tled by {s.leaders}" for s in self.streams if s.leaders]
        lines += [f"{s.name}\torder {s.order}" for s in self.streams if s.order]
        lines += [f"{s.name}\twaits {s.dataflow.waits}" for s in self.streams if s.dataflow is not None]
        lines += [f"{s.name}\tcycle {s.cycle}" for s in self.streams if s.cycle is not None]
        lines += [f"{s.name}\tstates {' '.join(map(str, s.states))}" for s in self.streams if s.states]
        if self.rounds is not None:
            lines.append(f"{self.rounds.mode}\t{self.rounds.task_slots}\t{self.rounds.arrivals_us}")
            lines += [f"order\t{name}" for name in self.rounds.order]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]

    def __str__(self) -> str:
        if self.rounds is not None:
            return str(self.plan)
        return " || ".join(map(str, self.streams))


def replicas(network: str, layers: int, units: tuple[str, ...]) -> Deployment:
    """Return a deployment that runs the whole network on each of some units, side by side."""
    return Deployment(
        streams=tuple(
            Stream(
                name=_beside(network, unit),
                chunks=(Chunk(network=network, start=0, stop=layers, unit=unit),),
            )
            for unit in units
        )
    )


def side_by_side(deployment: Deployment) -> Deployment:
    """Return what a deployment runs as streams without a plan, called like those of `replicas`.

    A single one is called like its network: it is the same, whatever problem its plan is of.
    """
    alone = len(deployment.streams) == 1
    return replace(
        deployment,
        streams=tuple(
            replace(
                stream,
                name=stream.network
                if alone
                else _beside(stream.network, *(chunk.unit for chunk in stream.chunks)),
                chunks=tuple(replace(chunk, request="") for chunk in stream.chunks),
            )
            for stream in deployment.streams
        ),
    )


def _beside(network: str, *units: str) -> str:
    """Return what one of several streams of a network is called."""
    return f"{network}@{'+'.join(units)}"


def _check_rounds(rounds: Rounds, streams: tuple[Stream, ...]) -> None:
    if len(rounds.arrivals_us) != len(streams):
        raise InvalidPlanError(f"there are {len(rounds.arrivals_us)} arrivals for {len(streams)} streams")
    chunks = {stream.name: len(stream.chunks) for stream in streams}
    if rounds.order and Counter(rounds.order) != chunks:
        raise InvalidPlanError(
            f"the order of a round must name each stream once for each of its chunks: {chunks}, "
            f"not {dict(Counter(rounds.order))}"
        )
    if min(rounds.arrivals_us) < 0 or (rounds.mode is Mode.STREAM and any(rounds.arrivals_us)):
        raise InvalidPlanError(
            f"arrivals are {rounds.arrivals_us} us: they must not be negative, and 0 in a stream"
        )
    if rounds.task_slots is not None and rounds.task_slots < 1:
        raise InvalidPlanError(f"the rounds have {rounds.task_slots} task slots, at least one is needed")
