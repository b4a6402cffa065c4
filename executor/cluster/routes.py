"""From a deployment to what each device has to open: which pieces, which tensors go where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from ...formulations.deployment import Stream
from ...formulations.errors import InvalidPlanError
from ..model import Model, Piece, TensorSpec
from .device import DRIVER
from .station import PieceSettings, StationSettings

STAMPS = 7
"""Times of a chunk at a request, nanoseconds: its input queued, sent, arrived; start, engine, engine, end."""

QUEUED, SENT, ARRIVED, START, ENGINE_START, ENGINE_END, END = range(STAMPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One stream over devices: the stations in order.

    Attributes
    ----------
    number
        Unique in the cluster as long as it stands.
    stream
        What it runs.
    stations
        What each device opens.
    pieces
        Those of all stations, by digest.
    bytes_in
        Size of the message that each station gets.
    """

    number: int
    stream: Stream
    stations: tuple[StationSettings, ...]
    pieces: Mapping[str, Piece]
    bytes_in: tuple[int, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """Name of the device of each station."""
        return tuple(chunk.unit for chunk in self.stream.chunks)

    @property
    def request_slots(self) -> int:
        """Most requests on their way at once."""
        return self.stream.slots


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

    Parameters
    ----------
    stream
        Its chunks; their units are devices.
    model
        What it runs.
    units
        What each device runs its chunk on, by its name (`unit_data`).
    number, task
        As in `StationSettings`.
    engine
        Who runs it.
    only
        One chunk alone, which gets the right inputs and gives everything that it makes.

    Raises
    ------
    InvalidPlanError
        A chunk needs tensors that nothing before it makes.
    """
    parts = [model.pieces(chunk.start, chunk.stop) for chunk in stream.chunks]
    takes = [_taken(pieces) for pieces in parts]
    makes = [_made(pieces) for pieces in parts]
    later = _later(takes, model.outputs)
    here: dict[str, TensorSpec] = {spec.name: spec for spec in model.inputs}
    stations, bytes_in = [], []
    for index, chunk in enumerate(stream.chunks):
        missing = [name for name in takes[index] if name not in here]
        if missing:
            raise InvalidPlanError(f"chunk {index} of stream {stream.name!r} needs {', '.join(missing)}")
        bytes_in.append(sum(spec.bytes for spec in here.values()))
        here = {name: spec for name, spec in {**here, **makes[index]}.items() if name in later[index]}
        stations.append(
            StationSettings(
                route=number,
                task=task,
                where=f"{stream.name} (chunk {index}, layers {chunk.start} to {chunk.stop - 1})",
                engine=engine,
                units=(units[chunk.unit],),
                parts=(tuple(map(PieceSettings.of, parts[index])),),
                takes=tuple(takes[index].values()),
                sends=tuple(here if only is None else makes[index]),
                target=(*(chunk.unit for chunk in stream.chunks[index + 1 : index + 2]), DRIVER)[0],
                is_last=index == len(stream.chunks) - 1,
            )
        )
    route = Route(
        number=number,
        stream=stream,
        stations=tuple(stations),
        pieces={piece.digest: piece for pieces in parts for piece in pieces},
        bytes_in=tuple(bytes_in),
    )
    return route if only is None else _alone(route, only)


def _alone(route: Route, chunk: int) -> Route:
    stream = replace(route.stream, chunks=route.stream.chunks[chunk : chunk + 1])
    station = replace(route.stations[chunk], target=DRIVER, is_last=True)
    return replace(route, stream=stream, stations=(station,), bytes_in=route.bytes_in[chunk : chunk + 1])


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
