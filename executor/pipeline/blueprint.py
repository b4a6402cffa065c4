"""The blueprint of a pipeline: which worker opens what, and where everything lies in shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...formulations.deployment import Deployment
from ...formulations.errors import InvalidPlanError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.plan import Chunk
from ...formulations.streams import Stream, Tile
from ..engine import Artifact, Engine
from ..engines.registry import engines_on
from ..model import Model, Piece, TensorPart, TensorSpec, reordered
from .shared import BoardShape, SlotLayout, aligned

MAX_SLOTS = 128
"""Most task slots of a stream: their messages fit into the smallest pipe that a system grants."""

MAX_PIPES = 480
"""Most pipes, one a chunk and one a stream: their 960 ends are what a system grants, and `select` takes."""


_Share = tuple[Chunk, Tile | None, tuple[int, ...]]
"""A chunk with its tile, and the order of the layers that it is a chunk of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSpec:
    """One session of a chunk.

    Attributes
    ----------
    artifact
        What the engine opens.
    inputs, outputs
        Names in the task slot of what it takes and gives, in its order.
    parts
        Of a tile: by name which part of a tensor in the task slot it takes or gives.
    """

    artifact: Artifact
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    parts: Mapping[str, TensorPart]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamBlueprint:
    """One stream.

    `inputs`, `outputs`: names and shapes of what goes in and what comes out.
    """

    stream: Stream  # what it runs
    chunks: tuple[tuple[SessionSpec, ...], ...]  # the steps of each of its chunks
    layout: SlotLayout  # of its task slots
    slots_at: int  # where its first slot starts in the shared memory
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def slot_at(self, slot: int) -> int:
        """Return where a slot starts in the shared memory."""
        return self.slots_at + slot * self.layout.size

    def place(self, step: SessionSpec, name: str) -> tuple[int, tuple[int, ...] | None]:
        """Return where a tensor of a session starts in a slot, and its strides (None: without gaps)."""
        offset = self.layout.offset(name)
        if name not in step.parts:
            return offset, None
        start, strides = step.parts[name].place
        return offset + start, strides

    def states(self, chunk: int) -> list[tuple[TensorSpec, int, int]]:
        """Return the states that a chunk hands on: what each is, and where it is taken and made in a slot."""
        taken = {name for step in self.chunks[chunk] for name in step.inputs}
        specs = {spec.name: spec for spec in self.inputs}
        return [
            (specs[state.input], self.layout.offset(state.input), self.layout.offset(state.output))
            for state in self.stream.states
            if state.input in taken
        ]

    def where(self, chunk: int) -> str:
        """Return a chunk in words."""
        layers = " and ".join(f"{start} to {stop - 1}" for start, stop in self.stream.runs(chunk))
        tile = self.stream.tile(chunk)
        share = f", {tile}" if tile else ""
        return f"{self.stream.name!r} (chunk {chunk}, layers {layers}{share})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A whole pipeline."""

    deployment: Deployment  # what it runs
    workers: tuple[tuple[ProcessingUnit, ...], ...]  # the units in use that each worker stands for
    streams: tuple[StreamBlueprint, ...]  # in the order of the deployment
    slots_end: int  # where the task slots end in the shared memory, and the time stamps begin

    @property
    def board(self) -> BoardShape:
        """Shape of the shared board."""
        return _board_shape(self.deployment, len(self.workers))

    @property
    def units(self) -> tuple[ProcessingUnit, ...]:
        """The units in use."""
        return tuple(unit for own in self.workers for unit in own)

    @property
    def size(self) -> int:
        """Bytes of shared memory."""
        return self.slots_end + self.board.stamp_bytes

    def tasks(self, worker: int) -> Iterator[tuple[int, int]]:
        """Yield (stream, chunk) of everything that a worker serves for requests of one number, in order."""
        own = {unit.name for unit in self.workers[worker]}
        for stream, chunk in self.deployment.turns:
            if self.deployment.streams[stream].chunks[chunk].unit in own:
                yield stream, chunk


def draw(
    deployment: Deployment, models: Mapping[str, Model], platform: Platform, engine: Engine
) -> Blueprint:
    """Have the engines prepare all pieces, and lay out the shared memory.

    `engine`: prepares the pieces, and opens them later, in the workers; on units that name another one, that
    does.
    Raises InvalidPlanError: the deployment does not fit the models or the platform; the message lists all
    defects.
    """
    _check(deployment, models, platform)
    units = {unit.name: unit for unit in platform.units}
    engines = engines_on([units[name] for name in deployment.units], engine)
    workers = workers_of([units[name] for name in deployment.units])
    steps = _prepare(_pieces(deployment, models), engines)
    streams = []
    end = aligned(_board_shape(deployment, len(workers)).word_bytes)
    for stream in deployment.streams:
        blueprint = _stream(stream, steps, models[stream.network], end)
        streams.append(blueprint)
        end = blueprint.slot_at(stream.slots)
    return Blueprint(
        deployment=deployment,
        workers=workers,
        streams=tuple(streams),
        slots_end=end,
    )


def workers_of(units: Iterable[ProcessingUnit]) -> tuple[tuple[ProcessingUnit, ...], ...]:
    """Return the units that each worker stands for: those of one resource, which take turns."""
    found: dict[tuple[bool, str], tuple[ProcessingUnit, ...]] = {}
    for unit in units:
        key = bool(unit.resource), unit.resource or unit.name
        found[key] = (*found.get(key, ()), unit)
    return tuple(found.values())


def _check(deployment: Deployment, models: Mapping[str, Model], platform: Platform) -> None:
    defects = [
        f"unit {name!r} is not one of platform {platform.name!r}: {', '.join(platform.unit_names)}"
        for name in deployment.units
        if name not in platform.unit_names
    ]
    pipes = sum(1 + len(stream.chunks) for stream in deployment.streams)
    if pipes > MAX_PIPES:
        defects.append(
            f"{len(deployment.streams)} streams with all their chunks need {pipes} pipes, at most "
            f"{MAX_PIPES} are possible: run fewer requests at once"
        )
    for stream in deployment.streams:
        most = MAX_SLOTS // max(len(found) for found in (*stream.waits, stream.last))  # each sends messages
        if stream.slots > most:
            defects.append(
                f"stream {stream.name!r} has {stream.slots} task slots, at most {most} are possible"
            )
        if stream.network not in models:
            defects.append(f"no model is given for network {stream.network!r}; there are {', '.join(models)}")
        elif stream.chunks[-1].stop != (layers := len(models[stream.network].network.layers)):
            defects.append(
                f"stream {stream.name!r} ends before layer {stream.chunks[-1].stop}, "
                f"but network {stream.network!r} has {layers} layers"
            )
    if defects:
        raise InvalidPlanError(f"[{deployment}] cannot be run:", defects)


def _shares(stream: Stream) -> list[_Share]:
    """Return each chunk of a stream with its tile and its order."""
    return [(chunk, stream.tile(index), stream.order) for index, chunk in enumerate(stream.chunks)]


def stream_pieces(stream: Stream, model: Model) -> list[tuple[Piece, ...]]:
    """Return the pieces of each chunk of a stream; of a tile, what computes its part.

    Raises InvalidPlanError: a chunk cannot be divided, or its tiles are not all of it.
    """
    found = _pieces(Deployment(streams=(stream,)), {stream.network: model})
    return [found[share] for share in _shares(stream)]


def _pieces(deployment: Deployment, models: Mapping[str, Model]) -> dict[_Share, tuple[Piece, ...]]:
    """Return the pieces of all chunks.

    Raises InvalidPlanError: a chunk cannot be divided, or its tiles are not all of it.
    """
    found: dict[_Share, tuple[Piece, ...]] = {}
    for stream in deployment.streams:
        model = reordered(models[stream.network], stream.order)
        if any(stream.tiles):
            found |= _tiles(stream, model)
        whole = [share for share in _shares(stream) if share[1] is None and share not in found]
        found |= {share: model.pieces(share[0].start, share[0].stop) for share in whole}
    return found


def _tiles(stream: Stream, model: Model) -> Iterator[tuple[_Share, tuple[Piece, ...]]]:
    from ..graph.tiling import Tiler  # loads onnx

    tiler = Tiler(model)
    for index, (chunk, tile, order) in enumerate(_shares(stream)):
        if tile is None:
            continue
        total = tiler.rows(chunk.start, chunk.stop, tile.axis)
        if any(group[-1] == index for group in stream.groups) and tile.stop != total:
            raise InvalidPlanError(
                f"the last tile of layers {chunk.start} to {chunk.stop - 1} of {stream.network!r} is {tile}: "
                f"it must end with the last of {total} {tile.axis.name.lower()}"
            )
        piece = tiler.piece(chunk.start, chunk.stop, tile.axis, (tile.start, tile.stop))
        yield (chunk, tile, order), (piece,)


def _prepare(
    pieces: Mapping[_Share, tuple[Piece, ...]], engines: Mapping[str, Engine]
) -> dict[_Share, tuple[tuple[Piece, Artifact], ...]]:
    """Return each chunk's pieces with what the engine of its unit made of them, each piece once."""
    artifacts: dict[tuple[str, str, str], Artifact] = {}
    for engine in {engine.name: engine for engine in engines.values()}.values():
        own = [some for (chunk, *_), some in pieces.items() if engines[chunk.unit].name == engine.name]
        unique = {(engine.name, piece.digest, piece.name): piece for some in own for piece in some}
        artifacts |= zip(unique, engine.prepare(tuple(unique.values())), strict=True)
    return {
        share: tuple((p, artifacts[engines[share[0].unit].name, p.digest, p.name]) for p in some)
        for share, some in pieces.items()
    }


def _stream(
    stream: Stream,
    prepared: Mapping[_Share, tuple[tuple[Piece, Artifact], ...]],
    model: Model,
    slots_at: int,
) -> StreamBlueprint:
    shares = _shares(stream)
    chunks = tuple(
        tuple(session_spec(piece, artifact) for piece, artifact in prepared[share]) for share in shares
    )
    tensors = list(model.inputs)
    given = {spec.name for spec in tensors}
    there: list[set[str]] = []  # when each chunk is done
    for share, part, before in zip(shares, chunks, stream.waits, strict=True):
        known = given.union(*(there[chunk] for chunk in before))
        for (piece, _), step in zip(prepared[share], part, strict=True):
            _require(f"{piece.name!r} of stream {stream.name!r}", set(step.inputs) - known)
            tensors += slot_tensors(piece)
            known |= set(step.outputs)
        there.append(known)
    _check_states(stream, chunks, model)
    made = set[str]().union(*there)
    _require(f"the output of stream {stream.name!r}", {spec.name for spec in model.outputs} - made)
    return StreamBlueprint(
        stream=stream,
        chunks=chunks,
        layout=SlotLayout.of(tensors, len(chunks)),
        slots_at=slots_at,
        inputs=model.inputs,
        outputs=model.outputs,
    )


def _check_states(stream: Stream, chunks: Sequence[Sequence[SessionSpec]], model: Model) -> None:
    """Require that one chunk takes and makes each state of a stream, with one type and shape."""
    inputs = {spec.name: (spec.shape, spec.dtype) for spec in model.inputs}
    outputs = {spec.name: (spec.shape, spec.dtype) for spec in model.outputs}
    for state in stream.states:
        taking = [n for n, steps in enumerate(chunks) if any(state.input in step.inputs for step in steps)]
        making = [n for n, steps in enumerate(chunks) if any(state.output in step.outputs for step in steps)]
        if taking != making or len(taking) != 1:
            raise InvalidPlanError(
                f"state {state} of stream {stream.name!r} is taken by the chunks {taking} and made by "
                f"{making}: it must be one chunk, so that the next request finds it there"
            )
        if inputs[state.input] != outputs[state.output]:
            one, other = inputs[state.input], outputs[state.output]
            raise InvalidPlanError(
                f"state {state} of stream {stream.name!r}: the input is {one[1]} {list(one[0])}, the output "
                f"{other[1]} {list(other[0])}; a state has one type and one shape"
            )


def session_spec(piece: Piece, artifact: Artifact) -> SessionSpec:
    """Return the session of a piece that an engine has prepared."""
    return SessionSpec(
        artifact=artifact,
        inputs=tuple(piece.prefix + spec.name for spec in artifact.inputs),
        outputs=tuple(piece.prefix + spec.name for spec in artifact.outputs),
        parts={piece.prefix + part.whole.name: part for part in piece.parts},
    )


def slot_tensors(piece: Piece) -> list[TensorSpec]:
    """Return the tensors that cross the borders of a piece, by the names that they have in the network."""
    specs = [part.whole for part in piece.parts] or [*piece.inputs, *piece.outputs]
    return [replace(spec, name=piece.prefix + spec.name) for spec in specs]


def _require(what: str, missing: set[str]) -> None:
    if missing:
        names = ", ".join(map(repr, sorted(missing)))
        raise InvalidPlanError(f"{what} needs tensors that no earlier piece makes: {names}")


def _board_shape(deployment: Deployment, workers: int) -> BoardShape:
    return BoardShape(units=workers, chunks=tuple(len(stream.chunks) for stream in deployment.streams))
