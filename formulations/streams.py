"""Streams: requests of one network, and the chunks that each of them passes, in a row or side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from .cycles import Cycle
from .errors import InvalidPlanError
from .network import State
from .plan import Chunk
from .spatial import Axis
from .validation import FileContent

_MOST_RUNS = 4
"""Runs of layers of one unit that the name of a deployment lists."""


def default_task_slots(chunks: int) -> int:
    """Return how many requests are on their way through chunks: one at work and one waiting for each."""
    return 2 * chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile(FileContent):
    """Which part of the results of its chunk one unit of a group computes."""

    axis: Axis
    """Whether the chunk is divided into rows or columns."""
    start: int
    stop: int
    """Which of them [start, stop): of as many as the smallest result of the chunk has; of larger results the
    same share."""

    def __str__(self) -> str:
        return f"{self.axis.name.lower()} {self.start}-{self.stop - 1}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataflow(FileContent):
    """That the chunks of a stream do not follow each other: each begins when those it waits for are done."""

    waits: tuple[tuple[int, ...], ...]
    """For each chunk the earlier chunks that it waits for: those that make its inputs, or take turns with it.
    One that waits for none begins as soon as the request comes in."""
    starts: tuple[str, ...]
    """The names of all layers in the order of their starts in the plan (`Plan.order`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream(FileContent):
    """An endless sequence of requests of one network, all through the same chunks."""

    name: str
    """Unique in its deployment; usually the name of the network."""
    chunks: tuple[Chunk, ...]
    """Chunks of one network in the order of its layers, covering all of them. A group of units that compute
    the same layers together is several chunks of these layers, each with its tile."""
    tiles: tuple[Tile | None, ...] = ()
    """The tile of each chunk, None for one that is computed by its unit alone. Empty: no chunk is divided."""
    leaders: tuple[int, ...] = ()
    """For each group the index of the chunk whose device leads it: where units share no memory, it sends the
    others what their tiles read, and gathers what they make. Empty: the first of each group."""
    task_slots: int | None = None
    """Most requests on their way at once, at least 1. None: two for each chunk, one at work and one waiting
    for it, so that a late chunk does not stop its neighbours."""
    order: tuple[int, ...] = ()
    """The layers in the order in which the chunks run through them, where it is not that of the network: then
    the layers of a chunk are positions in this order. Empty: the order of the network."""
    dataflow: Dataflow | None = None
    """How chunks run side by side for one request at a time; each unit serves its own in their order. None:
    chunks, or groups of them, run one after the other."""
    cycle: Cycle | None = None
    """In which order units with several chunks serve them. None: request by request, in the order of the
    chunks, which is right where each unit has one."""
    states: tuple[State, ...] = ()
    """What each request leaves behind for the next one; of each one chunk both takes it and makes it."""

    @property
    def network(self) -> str:
        """Name of the network."""
        return self.chunks[0].network

    def layers(self, chunk: int) -> str:
        """Return the layers of a chunk in words, by their numbers in the network."""
        return ",".join(f"{start}-{stop - 1}" for start, stop in self.runs(chunk))

    @property
    def placed(self) -> tuple[Chunk, ...]:
        """The chunks by the layers of the network: one for each run of consecutive layers of a chunk.

        Of chunks side by side it is one for each run of layers of a unit.
        """
        found = (
            replace(chunk, start=start, stop=stop)
            for index, chunk in enumerate(self.chunks)
            for start, stop in self.runs(index)
        )
        if self.dataflow is None:
            return tuple(found)
        joined: list[Chunk] = []
        for chunk in sorted(found):
            if joined and joined[-1].unit == chunk.unit:
                joined[-1] = replace(joined[-1], stop=chunk.stop)
            else:
                joined.append(chunk)
        return tuple(joined)

    def runs(self, chunk: int) -> tuple[tuple[int, int], ...]:
        """Return the layers of a chunk by their numbers in the network: [start, stop) of each run of them."""
        part = self.chunks[chunk]
        if not self.order:
            return ((part.start, part.stop),)
        layers = sorted(self.order[part.start : part.stop])
        runs = groupby(enumerate(layers), key=lambda place: place[1] - place[0])
        found = ([layer for _, layer in run] for _, run in runs)
        return tuple((run[0], run[-1] + 1) for run in found)

    @property
    def slots(self) -> int:
        """Number of task slots: of a cycle one more than it needs, so that a late chunk stops nobody."""
        if self.task_slots is not None:
            return self.task_slots
        return default_task_slots(len(self.groups)) if self.cycle is None else self.cycle.in_flight + 1

    @property
    def groups(self) -> tuple[range, ...]:
        """Indices of the chunks that run at the same time, because they are tiles of the same layers."""
        sizes = [len(list(same)) for _, same in groupby(self.chunks, key=lambda c: (c.start, c.stop))]
        return tuple(range(sum(sizes[:index]), sum(sizes[: index + 1])) for index in range(len(sizes)))

    @property
    def waits(self) -> tuple[tuple[int, ...], ...]:
        """For each chunk the chunks that must be done right before it."""
        if self.dataflow is not None:
            return self.dataflow.waits
        groups = self.groups
        return tuple(
            tuple(before) for before, group in zip(((), *groups), groups, strict=False) for _ in group
        )

    @property
    def first(self) -> tuple[int, ...]:
        """The chunks that wait for none."""
        return tuple(chunk for chunk, before in enumerate(self.waits) if not before)

    @property
    def last(self) -> tuple[int, ...]:
        """The chunks that none waits for: when all of them are done, the request is."""
        waited_for = {other for before in self.waits for other in before}
        return tuple(chunk for chunk in range(len(self.chunks)) if chunk not in waited_for)

    @property
    def led_by(self) -> tuple[int, ...]:
        """For each group the index of the chunk whose device leads it."""
        return self.leaders or tuple(group[0] for group in self.groups)

    def tile(self, chunk: int) -> Tile | None:
        """Return the tile of a chunk; None: it is computed by its unit alone."""
        return self.tiles[chunk] if self.tiles else None

    def __str__(self) -> str:
        if self.dataflow is not None:
            return " & ".join(_side_by_side_words(self.placed))
        words = []
        for group in self.groups:
            units = (f"{self.chunks[i].unit}{f' {self.tile(i)}' if self.tile(i) else ''}" for i in group)
            words.append(f"{self.layers(group[0])} {' + '.join(units)}")
        return " | ".join(words)


def check_stream(stream: Stream) -> None:
    """Do nothing for a stream whose parts fit together."""
    if stream.slots < 1:
        raise InvalidPlanError(f"stream {stream.name!r} needs at least one task slot")
    for what, defects in (
        ("tiles", _tile_defects),
        ("chunks", _dataflow_defects),
        ("starts", _cycle_defects),
    ):
        if found := list(defects(stream)):
            raise InvalidPlanError(f"the {what} of stream {stream.name!r} do not fit together:", found)


def _side_by_side_words(chunks: tuple[Chunk, ...]) -> Iterator[str]:
    """Yield for each unit which layers it runs."""
    for unit in dict.fromkeys(chunk.unit for chunk in chunks):
        runs = [f"{chunk.start}-{chunk.stop - 1}" for chunk in chunks if chunk.unit == unit]
        more = f" and {len(runs) - _MOST_RUNS} more" if len(runs) > _MOST_RUNS else ""
        yield f"{','.join(runs[:_MOST_RUNS])}{more} {unit}"


def _dataflow_defects(stream: Stream) -> Iterator[str]:
    if stream.dataflow is None:
        return
    waits = stream.dataflow.waits
    if stream.tiles or stream.slots != 1:
        yield "chunks run side by side for one request at a time (one task slot), and none is divided"
    if len(waits) != len(stream.chunks):
        yield f"there are {len(waits)} lists of chunks to wait for, for {len(stream.chunks)} chunks"
    for chunk, before in enumerate(waits):
        if len({*before}) < len(before) or not all(0 <= other < chunk for other in before):
            yield f"chunk {chunk} waits for {before}: only chunks before it, each once, can be waited for"
    layers = stream.chunks[-1].stop
    if len({*stream.dataflow.starts}) != layers or len(stream.dataflow.starts) != layers:
        yield f"the order of starts must name each of {layers} layers once"


def _cycle_defects(stream: Stream) -> Iterator[str]:
    if stream.cycle is None:
        return
    if stream.tiles or stream.dataflow is not None:
        yield "only chunks in a row, each on one unit, have a cycle"
    if len(stream.cycle.starts_us) != len(stream.chunks):
        yield f"the cycle has {len(stream.cycle.starts_us)} starts for {len(stream.chunks)} chunks"


def _tile_defects(stream: Stream) -> Iterator[str]:
    if stream.tiles and len(stream.tiles) != len(stream.chunks):
        yield f"{len(stream.tiles)} tiles for {len(stream.chunks)} chunks"
        return
    led = [place for index in stream.leaders for place, group in enumerate(stream.groups) if index in group]
    if stream.leaders and (len(led) != len(stream.leaders) or led != [*range(len(stream.groups))]):
        yield f"the leaders {stream.leaders} are not one chunk of each group, in order"
    for group in stream.groups:
        first = stream.chunks[group[0]]
        layers, tiles = f"layers {first.start} to {first.stop - 1}", [stream.tile(index) for index in group]
        if len(group) == 1:
            if tiles != [None]:
                yield f"{layers} are divided, but one unit alone computes them"
            continue
        units = [stream.chunks[index].unit for index in group]
        if len(set(units)) < len(units):
            yield f"{layers} are computed twice by one unit: {', '.join(units)}"
        known = [tile for tile in tiles if tile is not None]
        if len(known) < len(tiles) or len({tile.axis for tile in known}) > 1:
            yield f"{layers} are computed by several units, so each needs a tile along the same axis"
        elif [tile.start for tile in known] != [0, *(tile.stop for tile in known[:-1])] or any(
            tile.start >= tile.stop for tile in known
        ):
            yield f"{layers}: the tiles {', '.join(map(str, known))} do not follow each other from 0 on"
