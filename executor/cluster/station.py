"""One chunk on its device: the messages that come, the pipeline that runs it, what it sends on.

The leader of a group sends the others the rows that their tiles read as soon as a request has come, whatever
it computes itself, and sends the request on when all tiles are there.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...formulations.deployment import Deployment
from ...formulations.errors import ExecutionError, GaplessError
from ...formulations.hardware import Platform
from ...formulations.network import Layer, Network
from ...formulations.plan import Chunk
from ...formulations.streams import Stream
from ..engine import Engine, PlacementReceipt
from ..model import Piece, TensorSpec
from ..pipeline.blueprint import draw
from ..pipeline.crew import Crew, SharedState
from ..pipeline.feeding import Feeder
from .endpoint import Frame, Outlet
from .settings import PieceSettings, StationSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

_NETWORK = "chunk"


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


@dataclass(frozen=True, slots=True)
class _Request:
    """A request that is at work here, or in tiles on other devices of the group."""

    head: Mapping[str, Any]  # what its message said
    way: tuple[int, int, int]  # when that was queued, sent, and here
    inputs: Tensors  # what is computed here reads them
    tensors: dict[str, NDArray[Any]]  # what passes by, and what has been made so far
    rows: dict[str, list[int]] = field(default_factory=dict)
    """By device that has computed its tile, when that was."""


class Station:
    """A chunk that is open on a device: a pipeline of its units, fed by messages, in a thread of its own.

    `outlets`: the links to its target and, of a leader, to the other devices of its group; by name.
    """

    def __init__(
        self,
        settings: StationSettings,
        contents: Mapping[str, bytes],
        platform: Platform,
        engine: Engine,
        *,
        outlets: Mapping[str, Outlet],
        turns: Turns,
        failed: Callable[[int, GaplessError], None],
    ) -> None:
        self.settings = settings
        self._outlets = outlets
        self._name = platform.name
        self._shares = {share.device: share for share in settings.shares}
        self._turns = turns
        self._failed = failed
        self._inbox: deque[Frame] = deque()
        self._requests: dict[int, _Request] = {}
        self._to_compute: deque[_Request] = deque()
        self._computing: deque[_Request] = deque()
        self._samples: Tensors = {}
        self._closing = self._ended = self._ending = False
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
        """Take a message: a request, a tile, samples that requests without tensors stand for, or the end."""
        if frame.head["kind"] == "samples":
            self._samples = frame.tensors
            return
        self._inbox.append(frame)
        self._wake()

    @property
    def waiting(self) -> int:
        """Requests that wait or are at work here; not those that wait for the tiles of others."""
        return len(self._inbox) + len(self._to_compute) + len(self._computing)

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
                self._sort()
                self._give(feeder)
                self._send_on()
                feeder.collect(also=(self._wake_up,))
                for results in feeder.results():
                    self._computed(results[0])
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

    def _sort(self) -> None:
        """Take what has come; what other devices of the group have to do is sent to them at once."""
        while self._inbox:
            frame = self._inbox.popleft()
            is_end = frame.head["kind"] == "end"
            if frame.sender in self._shares:
                if not is_end:  # they have the end from here
                    way = (frame.head["queued_ns"], frame.sent_ns, frame.arrived_ns)
                    row = [*frame.head["stamps"][0], *way]
                    self._add(self._requests[frame.head["request"]], frame.sender, frame.tensors, row)
            elif is_end:
                self._ending = True
                for name in self._shares.keys() - {self._name}:
                    self._outlets[name].post({"kind": "end", "route": self.settings.route})
            else:
                self._enter(frame)

    def _enter(self, frame: Frame) -> None:
        import numpy as np

        head, tensors = frame.head, self._samples if frame.head["sample"] else frame.tensors
        tiles = {
            name: {part.whole.name: part.of(tensors[part.whole.name]) for part in share.takes}
            for name, share in self._shares.items()
        }
        request = self._requests[head["request"]] = _Request(
            head,
            (head["queued_ns"], frame.sent_ns, frame.arrived_ns),
            tiles.pop(self._name, tensors),
            {name: tensors[name] for name in self.settings.sends if name in tensors},
        )
        self._to_compute.append(request)
        about = f"a tile of request {head['request']} of {self.settings.where}"
        for name, parts in tiles.items():
            self._outlets[name].post(
                {**head, "sample": False, "stamps": [], "about": about},
                {tensor: np.ascontiguousarray(array) for tensor, array in parts.items()},
            )

    def _give(self, feeder: Feeder) -> None:
        """Let in what waits, as far as there is room and it is this task's turn."""
        while self._to_compute and feeder.has_room and self._turns.comes(self.settings.route):
            request = self._to_compute.popleft()
            self._computing.append(request)
            feeder.give([{spec.name: request.inputs[spec.name] for spec in self.settings.takes}])

    def _computed(self, made: Tensors) -> None:
        """Take what has been computed here."""
        request = self._computing.popleft()
        number = self._served
        self._served += 1
        rows = [
            self._state.board.stamps(0, part).rows(number, number + 1)[0].tolist()
            for part in range(len(self.settings.parts))
        ]
        row = [*request.way, rows[0][0], rows[0][1], rows[-1][2], rows[-1][3]]
        self._add(request, self._name, made, row)

    def _add(self, request: _Request, device: str, made: Tensors, row: list[int]) -> None:
        """Add to a request what a device has made: of a tile, its part of each tensor."""
        request.rows[device] = row
        if device not in self._shares:
            request.tensors.update(made)
            return
        for part in self._shares[device].makes:
            name = part.whole.name
            if name not in request.tensors:
                request.tensors[name] = part.whole.empty()
            part.of(request.tensors[name])[...] = made[name]

    def _send_on(self) -> None:
        """Send on the requests of which all is there, in order, and then the end."""
        order = [*self._shares] or [self._name]
        outlet = self._outlets[self.settings.target]
        while self._requests:
            request = next(iter(self._requests.values()))
            if len(request.rows) < len(order):
                return
            head = {**request.head, "sample": False}
            del self._requests[head["request"]]
            head["stamps"] = [*head["stamps"], *(request.rows[name] for name in order)]
            head["about"] = f"request {head['request']} of {self.settings.where}"
            tensors = {name: request.tensors[name] for name in self.settings.sends}
            if self.settings.is_last:
                head["kind"] = "result"
                tensors = tensors if head["wanted"] else {}
            outlet.post(head, tensors)
        if self._ending and self._turns.comes(self.settings.route):
            self._ending = False
            outlet.post({"kind": "end", "route": self.settings.route})
            self._turns.leave(self.settings.route)


def _deployment(settings: StationSettings) -> Deployment:
    chunks = tuple(
        Chunk(network=_NETWORK, start=index, stop=index + 1, unit=unit["name"])
        for index, unit in enumerate(settings.units)
    )
    return Deployment(streams=(Stream(name=settings.where, chunks=chunks),))


def received(piece: PieceSettings, content: bytes) -> Piece:
    """Return a piece that has come from the driver."""
    return Piece(
        name=piece.name,
        digest=piece.digest,
        inputs=piece.inputs,
        outputs=piece.outputs,
        content=_Content(piece.kind, content),
        prefix=piece.prefix,
    )


def _model(settings: StationSettings, contents: Mapping[str, bytes]) -> _ReceivedModel:
    parts = tuple(
        tuple(received(piece, contents.get(piece.digest, b"")) for piece in part) for part in settings.parts
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
