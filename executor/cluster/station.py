"""One chunk on its device: the messages that come, the pipeline that runs it, what it sends on."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment, Stream
from ...formulations.errors import ExecutionError, GaplessError
from ...formulations.hardware import Platform
from ...formulations.network import Layer, Network
from ...formulations.plan import Chunk
from ..engine import Engine, PlacementReceipt
from ..model import Piece, TensorSpec
from ..pipeline.blueprint import draw
from ..pipeline.crew import Crew
from ..pipeline.feeding import Feeder
from ..pipeline.state import SharedState
from .endpoint import Frame, Outlet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

_NETWORK = "chunk"


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceSettings:
    """A piece of a chunk; travels as JSON, its content apart.

    Attributes
    ----------
    name, digest, prefix, inputs, outputs
        As in `Piece`.
    kind
        Of its content.
    """

    name: str
    digest: str
    prefix: str
    kind: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    @classmethod
    def of(cls, piece: Piece) -> PieceSettings:
        """Return a piece without its content."""
        return cls(
            name=piece.name,
            digest=piece.digest,
            prefix=piece.prefix,
            kind=piece.content.kind,
            inputs=piece.inputs,
            outputs=piece.outputs,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StationSettings:
    """What a device needs to know about a chunk that it serves; travels as JSON.

    Attributes
    ----------
    route
        Number of the stream, unique in the cluster as long as it stands.
    task
        Logical clock: on each device, chunks of a later task wait until those of earlier ones have ended.
    where
        The chunk in words.
    engine
        Who runs it; empty for a station that only hands on.
    units
        The units of the device that its parts run on, one part each, in order (`unit_data`).
    parts
        The pieces of each part.
    takes
        The tensors that the chunk itself needs.
    sends
        Names of the tensors that go on: those that it makes, and those that pass by.
    target
        The device that gets them, or the driver.
    is_last
        Whether what it sends are results.
    """

    route: int
    task: int
    where: str
    engine: str
    units: tuple[Mapping[str, Any], ...]
    parts: tuple[tuple[PieceSettings, ...], ...]
    takes: tuple[TensorSpec, ...]
    sends: tuple[str, ...]
    target: str
    is_last: bool

    def data(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return asdict(self)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> StationSettings:
        """Return what `data` wrote."""
        parts = tuple(tuple(_piece(piece) for piece in part) for part in data["parts"])
        lists = {"units": tuple(data["units"]), "sends": tuple(data["sends"]), "takes": _specs(data["takes"])}
        return cls(**{**data, **lists, "parts": parts})


@dataclass(frozen=True, slots=True)
class _Content:
    kind: str
    content: bytes

    def read(self) -> bytes:
        return self.content


@dataclass(frozen=True, slots=True)
class _ReceivedModel:
    """A chunk as the model of a pipeline: one layer for each of its parts (see `executor.model.Model`)."""

    network: Network
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    parts: tuple[tuple[Piece, ...], ...]

    def pieces(self, start: int, stop: int) -> tuple[Piece, ...]:
        return tuple(piece for part in self.parts[start:stop] for piece in part)

    def layer_of(self, tensor: str) -> int | None:
        return None

    def sample_inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        raise NotImplementedError("samples come from the driver")

    def reference(self, inputs: Tensors, *, also: object = ()) -> dict[str, NDArray[Any]]:
        raise NotImplementedError("the driver has the uncut model")


class Turns:
    """Whose turn it is on a device: tasks end in the order of their numbers."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}
        self._wakers: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()

    def join(self, route: int, task: int, wake: Callable[[], None]) -> None:
        """Take part with a task; `wake` is called when others have ended."""
        with self._lock:
            self._open[route], self._wakers[route] = task, wake

    def comes(self, route: int) -> bool:
        """Return whether no earlier task is left."""
        with self._lock:
            return self._open[route] <= min(self._open.values())

    def leave(self, route: int) -> None:
        """End. Can be called twice."""
        with self._lock:
            self._open.pop(route, None)
            self._wakers.pop(route, None)
            wakers = list(self._wakers.values())
        for wake in wakers:
            wake()


class Station:
    """A chunk that is open on a device: a pipeline of its units, fed by messages, in a thread of its own.

    Parameters
    ----------
    settings
        What it is.
    contents
        Content of each piece, by digest.
    platform
        The units that it runs on.
    engine
        Who runs it.
    outlet
        The link to its target.
    turns
        Of the device.
    failed
        Called with words and the kind of the error when it cannot go on.
    """

    def __init__(
        self,
        settings: StationSettings,
        contents: Mapping[str, bytes],
        platform: Platform,
        engine: Engine,
        *,
        outlet: Outlet,
        turns: Turns,
        failed: Callable[[int, GaplessError], None],
    ) -> None:
        self.settings = settings
        self._outlet = outlet
        self._turns = turns
        self._failed = failed
        self._inbox: deque[Frame] = deque()
        self._heads: deque[tuple[dict[str, Any], Tensors]] = deque()
        self._samples: Tensors = {}
        self._closing = self._ended = False
        self._served = 0
        self._lock = threading.Lock()
        self._wake_up = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        chunk = _deployment(settings)
        model = _model(settings, contents)
        self._blueprint = draw(chunk, {_NETWORK: model}, platform, engine)
        self._state = SharedState(self._blueprint)
        try:
            self._crew = Crew(self._blueprint, self._state)
        except BaseException:
            self._state.close()
            raise
        self.receipts: tuple[PlacementReceipt, ...] = self._crew.receipts
        turns.join(settings.route, settings.task, self._wake)
        self._thread = threading.Thread(target=self._work, name=settings.where, daemon=True)
        self._thread.start()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process number of the worker of each unit."""
        return self._crew.pids

    def put(self, frame: Frame) -> None:
        """Take a message: a request, samples that requests without tensors stand for, or the end."""
        if frame.head["kind"] == "samples":
            self._samples = frame.tensors
            return
        self._inbox.append(frame)
        self._wake()

    @property
    def waiting(self) -> int:
        """Requests that wait or are at work."""
        return len(self._inbox) + len(self._heads)

    def close(self) -> None:
        """End its workers. Can be called twice."""
        self._closing = True
        self._turns.leave(self.settings.route)
        self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _wake(self) -> None:
        with self._lock:
            if not self._ended:
                os.eventfd_write(self._wake_up, 1)

    def _work(self) -> None:
        try:
            made = [spec.name for spec in self._blueprint.streams[0].outputs]
            feeder = Feeder(self._blueprint, self._state, groups=[[0]], wanted=[made])
            feeder.begin(self._crew)
            while self._goes_on():
                self._give(feeder)
                feeder.collect(also=(self._wake_up,) if feeder.has_room else ())
                for results in feeder.results():
                    self._send(results[0])
        except Exception as error:  # whatever it is, the driver must hear of it
            ours = error if isinstance(error, GaplessError) else None
            if not self._closing:
                words = f"{self.settings.where}: {type(error).__name__}: {error}"
                self._failed(self.settings.route, ours or ExecutionError(words))
        finally:
            self._turns.leave(self.settings.route)
            self._crew.close()
            self._state.close()
            with self._lock:
                self._ended = True
                os.close(self._wake_up)

    def _goes_on(self) -> bool:
        """Take the call to wake up, and only then look what for: a call that comes later is heard later."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake_up)
        return not self._closing

    def _give(self, feeder: Feeder) -> None:
        """Let in what waits, as far as there is room and it is this task's turn; pass on the end."""
        while self._inbox and feeder.has_room and self._turns.comes(self.settings.route):
            if self._inbox[0].head["kind"] == "end":
                if self._heads:
                    return
                self._inbox.popleft()
                self._outlet.post({"kind": "end", "route": self.settings.route})
                self._turns.leave(self.settings.route)
                return
            frame = self._inbox.popleft()
            tensors = self._samples if frame.head["sample"] else frame.tensors
            way = (frame.head["queued_ns"], frame.sent_ns, frame.arrived_ns)
            head = {**frame.head, "stamps": [*frame.head["stamps"], *way]}
            passing = {name: tensors[name] for name in self.settings.sends if name in tensors}
            self._heads.append((head, passing))
            feeder.give([{spec.name: tensors[spec.name] for spec in self.settings.takes}])

    def _send(self, made: Mapping[str, NDArray[Any]]) -> None:
        head, passing = self._heads.popleft()
        number = self._served
        self._served += 1
        rows = [
            self._state.board.stamps(0, part).rows(number, number + 1)[0].tolist()
            for part in range(len(self.settings.parts))
        ]
        head["stamps"] += [rows[0][0], rows[0][1], rows[-1][2], rows[-1][3]]
        head["about"] = f"request {head['request']} of {self.settings.where}"
        available = {**passing, **made}
        tensors = {name: available[name] for name in self.settings.sends}
        if self.settings.is_last:
            head["kind"] = "result"
            tensors = tensors if head["wanted"] else {}
        head["sample"] = False
        self._outlet.post(head, tensors)


def _deployment(settings: StationSettings) -> Deployment:
    chunks = tuple(
        Chunk(network=_NETWORK, start=index, stop=index + 1, unit=unit["name"])
        for index, unit in enumerate(settings.units)
    )
    return Deployment(streams=(Stream(name=settings.where, chunks=chunks),))


def _model(settings: StationSettings, contents: Mapping[str, bytes]) -> _ReceivedModel:
    parts = tuple(
        tuple(
            Piece(
                name=piece.name,
                digest=piece.digest,
                inputs=piece.inputs,
                outputs=piece.outputs,
                content=_Content(piece.kind, contents.get(piece.digest, b"")),
                prefix=piece.prefix,
            )
            for piece in part
        )
        for part in settings.parts
    )
    made = {
        piece.prefix + spec.name: TensorSpec(
            name=piece.prefix + spec.name, shape=spec.shape, dtype=spec.dtype
        )
        for part in settings.parts
        for piece in part
        for spec in piece.outputs
    }
    return _ReceivedModel(
        network=Network(
            name=_NETWORK, layers=tuple(Layer(name=f"part {index}") for index in range(len(parts)))
        ),
        inputs=settings.takes,
        outputs=tuple(spec for name, spec in made.items() if name in settings.sends),
        parts=parts,
    )


def _piece(data: Mapping[str, Any]) -> PieceSettings:
    return PieceSettings(**{**data, "inputs": _specs(data["inputs"]), "outputs": _specs(data["outputs"])})


def _specs(data: Sequence[Mapping[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(**{**spec, "shape": tuple(spec["shape"])}) for spec in data)
