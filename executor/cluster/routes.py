"""From a deployment to what each device has to open: which pieces, which tensors go where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from ...formulations.errors import InvalidPlanError
from ...formulations.streams import Stream
from ..model import Model, Piece, TensorPart, TensorSpec
from ..pipeline.blueprint import stream_pieces
from .device import DRIVER
from .settings import PieceSettings, Share, StationSettings

QUEUED, SENT, ARRIVED, START, ENGINE_START, ENGINE_END, END, BACK = range(8)
"""Times of a chunk at a request, nanoseconds: its input queued, sent, arrived; start, engine, engine, end.

Of a tile whose device does not lead its group three more, from `BACK` on: its result queued, sent, arrived.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What one device sends another for every request of a stream.

    `source`, `target`: names of the devices. `row`, `at`: where its times stand: queued, sent and arrived are
    three stamps of a chunk, from one on.
    """

    source: str
    target: str
    size: int  # bytes of its tensors
    chunk: int
    """Index of the chunk that has made it; of what a leader sends in its group, of the tile that needs it."""
    row: int
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One stream over devices: the stations in order."""

    number: int  # unique in the cluster as long as it stands
    stream: Stream  # what it runs
    stations: tuple[StationSettings, ...]  # what each device opens, for each chunk
    pieces: Mapping[str, Piece]  # those of all stations, by digest
    takes: tuple[str, ...]  # names of the tensors that go in
    bytes_in: tuple[int, ...]  # size of the message that each station gets
    bytes_back: tuple[int, ...]  # size of what each station sends to the leader of its group; 0 for leaders

    @property
    def devices(self) -> tuple[str, ...]:
        """Name of the device of each station."""
        return tuple(chunk.unit for chunk in self.stream.chunks)

    @property
    def entry(self) -> str:
        """Name of the device that gets the inputs."""
        return self.devices[self.stream.led_by[0]]

    @property
    def sends(self) -> tuple[str, ...]:
        """Names of the tensors that come out."""
        return self.stations[self.stream.led_by[-1]].sends

    @property
    def request_slots(self) -> int:
        """Most requests on their way at once.

        A divided group has two more than others: one whose tiles are sent out, and one whose tiles come back.
        """
        stream = self.stream
        return stream.task_slots or stream.slots + 2 * sum(len(group) > 1 for group in stream.groups)

    @property
    def sources(self) -> tuple[int | None, ...]:
        """For each chunk the index of the one whose device sends its input; None: the driver does."""
        before = (None, *self.stream.led_by[:-1])
        return tuple(
            sender if chunk == leader else leader
            for group, leader, sender in zip(self.stream.groups, self.stream.led_by, before, strict=True)
            for chunk in group
        )

    @property
    def messages(self) -> tuple[Message, ...]:
        """What devices send each other."""
        devices, found = self.devices, list[Message]()
        for row, source in enumerate(self.sources):
            if source is None:
                continue
            is_tile = row not in self.stream.led_by
            ends, chunk = (devices[source], devices[row]), row if is_tile else source
            for at, (one, other), size in (
                (QUEUED, ends, self.bytes_in[row]),
                (BACK, ends[::-1], self.bytes_back[row]),
            ):
                if at == QUEUED or is_tile:
                    found.append(Message(source=one, target=other, size=size, chunk=chunk, row=row, at=at))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _Stage:
    """What the devices of a group do together; one device alone is a group, too, without shares.

    `group`, `leader`: indices of its chunks, and of that of the leader. `takes`, `makes`: the tensors that it
    needs, and those that it makes; whole, by name.
    """

    group: range
    leader: int
    shares: Mapping[int, Share]  # what each of them does, by index
    takes: Mapping[str, TensorSpec]
    makes: Mapping[str, TensorSpec]

    def tile(self, chunk: int) -> Share | None:
        """Return what is done for the leader by one of the other devices; None: it is the leader."""
        return None if chunk == self.leader else self.shares[chunk]


def route_of(
    stream: Stream,
    model: Model,
    units: Mapping[str, Mapping[str, object]],
    *,
    number: int,
    task: int,
    engine: str,
    only: int | None = None,
) -> Route:
    """Return what the devices of a stream open.

    `units`: what each device runs its chunk on, by its name (`unit_data`); `only`: one group alone, which
    gets the right inputs and gives everything that it makes.
    """
    devices = [chunk.unit for chunk in stream.chunks]
    if len(set(devices)) < len(devices):
        raise InvalidPlanError(f"a device has two chunks of stream {stream.name!r}: {', '.join(devices)}")
    parts = stream_pieces(stream, model)
    stages = [
        _stage(group, leader, devices, parts)
        for group, leader in zip(stream.groups, stream.led_by, strict=True)
    ]
    later = _later([stage.takes for stage in stages], model.outputs)
    here: dict[str, TensorSpec] = {spec.name: spec for spec in model.inputs}
    stations, bytes_in, bytes_back = [], list[int](), list[int]()
    targets = (*(devices[stage.leader] for stage in stages[1:]), DRIVER)
    for index, stage in enumerate(stages):
        missing = [name for name in stage.takes if name not in here]
        if missing:
            raise InvalidPlanError(
                f"chunk {stage.leader} of stream {stream.name!r} needs {', '.join(missing)}"
            )
        arriving = sum(spec.bytes for spec in here.values())
        here = {name: spec for name, spec in {**here, **stage.makes}.items() if name in later[index]}
        for chunk in stage.group:
            tile = stage.tile(chunk)
            bytes_in.append(arriving if tile is None else _size(tile.takes))
            bytes_back.append(0 if tile is None else _size(tile.makes))
            settings = StationSettings(
                route=number,
                task=task,
                where=_where(stream, chunk),
                engine=engine,
                units=(units[devices[chunk]],),
                parts=(tuple(map(PieceSettings.of, parts[chunk])),),
                takes=tuple(_taken(parts[chunk]).values()),
                sends=tuple(_made(parts[chunk])),
                target=devices[stage.leader],
                is_last=False,
            )
            sends = tuple(here) if only is None else settings.sends
            stations.append(settings if tile else _leading(settings, stage, sends, targets[index]))
    route = Route(
        number=number,
        stream=stream,
        stations=tuple(stations),
        pieces={piece.digest: piece for pieces in parts for piece in pieces},
        takes=tuple(stages[only or 0].takes),
        bytes_in=tuple(bytes_in),
        bytes_back=tuple(bytes_back),
    )
    return route if only is None else _alone(route, stages[only])


def _leading(
    settings: StationSettings, stage: _Stage, sends: tuple[str, ...], target: str
) -> StationSettings:
    """Return the settings of the leader of a group, or of a device alone."""
    shares = tuple(stage.shares.values())
    return replace(settings, sends=sends, target=target, is_last=target == DRIVER, shares=shares)


def _stage(group: range, leader: int, devices: Sequence[str], parts: Sequence[tuple[Piece, ...]]) -> _Stage:
    if len(group) == 1:
        return _Stage(group, leader, {}, _taken(parts[leader]), _made(parts[leader]))
    shares = {chunk: Share.of(devices[chunk], parts[chunk][0]) for chunk in group}
    takes = {part.whole.name: part.whole for share in shares.values() for part in share.takes}
    makes = {part.whole.name: part.whole for share in shares.values() for part in share.makes}
    return _Stage(group, leader, shares, takes, makes)


def _size(parts: Sequence[TensorPart]) -> int:
    return sum(part.spec.bytes for part in parts)


def _where(stream: Stream, chunk: int) -> str:
    own, tile = stream.chunks[chunk], stream.tile(chunk)
    share = f", {tile}" if tile else ""
    return f"{stream.name} (chunk {chunk}, layers {own.start} to {own.stop - 1}{share})"


def _alone(route: Route, stage: _Stage) -> Route:
    own, first = slice(stage.group.start, stage.group.stop), stage.group.start
    stations = list(route.stations[own])
    leading = stations[stage.leader - first]
    stations[stage.leader - first] = _leading(leading, stage, leading.sends, DRIVER)
    stream = replace(
        route.stream,
        chunks=route.stream.chunks[own],
        tiles=route.stream.tiles[own],
        leaders=(stage.leader - first,),
    )
    return replace(
        route,
        stream=stream,
        stations=tuple(stations),
        bytes_in=route.bytes_in[own],
        bytes_back=route.bytes_back[own],
    )


def _taken(pieces: Sequence[Piece]) -> dict[str, TensorSpec]:
    """Return what a chunk needs from before, by name."""
    found: dict[str, TensorSpec] = {}
    made: set[str] = set()
    for piece in pieces:
        for spec in piece.inputs:
            if (name := piece.prefix + spec.name) not in made:
                found[name] = replace(spec, name=name)
        made |= {piece.prefix + spec.name for spec in piece.outputs}
    return found


def _made(pieces: Sequence[Piece]) -> dict[str, TensorSpec]:
    names = ((piece.prefix + spec.name, spec) for piece in pieces for spec in piece.outputs)
    return {name: replace(spec, name=name) for name, spec in names}


def _later(takes: Sequence[Mapping[str, TensorSpec]], outputs: Sequence[TensorSpec]) -> list[set[str]]:
    """Return, for each chunk, what is still needed behind it."""
    needs = [{spec.name for spec in outputs}, *(set(taken) for taken in reversed(takes[1:]))]
    return list(accumulate(needs, lambda more, less: more | less))[::-1]
