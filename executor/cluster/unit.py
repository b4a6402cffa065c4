"""A device as a unit of a coordinator: a worker process that runs whichever chunk it is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from queue import SimpleQueue
from typing import Any, Self

from ...formulations.errors import GaplessError, UnitLostError
from ...formulations.hardware import ProcessingUnit
from ..coordination.held import HeldNetwork, Span, TaskSlots, network_settings, prepared
from ..coordination.worker import serve
from ..engines.registry import get_engine
from ..pipeline.blueprint import SessionSpec, slot_tensors
from ..pipeline.shared import SlotLayout
from ..workers import Message, Worker
from .endpoint import Frame, Outlet
from .settings import PieceSettings, parse_piece
from .station import received

_LOOK_S = 0.1
"""How often it is looked whether a unit is closed while its worker is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedNetwork:
    """What a unit is told of a network; travels as JSON, the content of pieces apart."""

    network: int  # index of the network
    engine: str  # who runs it
    chunks: Mapping[Span, tuple[PieceSettings, ...]]

    @classmethod
    def of(cls, held: HeldNetwork, index: int, unit: int) -> Self:
        """Return the chunks of a network that a unit runs."""
        keys = sorted(key for key in held.keys if key[2] == unit)
        return cls(
            network=index,
            engine=held.sessions[keys[0]][0].artifact.engine,
            chunks={key[:2]: tuple(map(PieceSettings.of, held.pieces[key[:2]])) for key in keys},
        )

    def data(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        chunks = [[*span, list(map(asdict, pieces))] for span, pieces in self.chunks.items()]
        return {"network": self.network, "engine": self.engine, "chunks": chunks}

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """Return what `data` wrote."""
        chunks = {(start, stop): tuple(map(parse_piece, pieces)) for start, stop, pieces in data["chunks"]}
        return cls(network=data["network"], engine=data["engine"], chunks=chunks)


class ServedUnit:
    """The worker of a unit on its device, and a task slot of each network; a thread of its own runs chunks.

    `number`: what messages to and from it say. Calls and messages come one after the other: whoever asks
    waits for the answer. `outlet`: the link back, which ends with it.
    """

    def __init__(self, number: int, unit: ProcessingUnit, engines: list[str], outlet: Outlet) -> None:
        self._number = number
        self._outlet = outlet
        self._inbox: SimpleQueue[Frame | None] = SimpleQueue()
        self._networks: dict[int, tuple[TaskSlots, Mapping[Span, tuple[SessionSpec, ...]]]] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._worker = Worker(unit, serve, {}, engines=engines)
        try:
            self._worker.expect("ready")
        except BaseException:
            self._worker.close()
            raise
        self._thread = threading.Thread(target=self._work, name=f"serve {unit.name}", daemon=True)
        self._thread.start()

    @property
    def pids(self) -> tuple[int, ...]:
        """Process number of the worker."""
        return (self._worker.pid,)

    @property
    def waiting(self) -> int:
        """Requests that wait here."""
        return self._inbox.qsize()

    def put(self, frame: Frame) -> None:
        """Take a chunk that is to run, with its inputs."""
        self._inbox.put(frame)

    def open(self, told: ServedNetwork, read: Callable[[str], bytes]) -> Message:
        """Prepare and open the chunks of a network; `read` returns the content of a piece by its digest."""
        contents = {piece.digest: read(piece.digest) for some in told.chunks.values() for piece in some}
        chunks = {
            span: tuple(received(piece, contents[piece.digest]) for piece in some)
            for span, some in told.chunks.items()
        }
        sessions = prepared(get_engine(told.engine), chunks)
        tensors = [spec for some in chunks.values() for piece in some for spec in slot_tensors(piece)]
        self.shut(told.network)
        slots = TaskSlots(SlotLayout.of(tensors, 0), 1, certain=1)
        self._networks[told.network] = slots, sessions
        settings = network_settings(told.network, sessions, slots.layout, slots.memory)
        return self._ask({"kind": "open", "settings": asdict(settings)})

    def shut(self, network: int) -> Message:
        """Close a network, if it is open."""
        known = self._networks.pop(network, None)
        answer = self._ask({"kind": "shut", "network": network})
        if known is not None:
            known[0].close()
        return answer

    def close(self) -> None:
        """End the worker. Can be called twice."""
        self._closed = True
        self._inbox.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()
        self._outlet.close()

    def _work(self) -> None:
        try:
            while (frame := self._inbox.get()) is not None:
                self._run(frame)
        except Exception as error:  # whatever it is, the coordinator must hear of it
            if not self._closed:
                kind = type(error).__name__ if isinstance(error, GaplessError) else ""
                self._post({"kind": "error", "type": kind, "text": str(error)}, {})
        finally:
            self._closed = True
            with self._lock:
                self._worker.close()
            for slots, _ in self._networks.values():
                slots.close()

    def _run(self, frame: Frame) -> None:
        head = frame.head
        slots, sessions = self._networks[head["network"]]
        slots.fill(0, frame.tensors)
        message = {key: head[key] for key in ("kind", "network", "start", "stop")}
        answer = self._ask({**message, "slot": 0})
        made = [name for spec in sessions[head["start"], head["stop"]] for name in spec.outputs]
        own = slots.tensors(0)
        self._post(answer, {name: own[name] for name in made} if answer["kind"] == "done" else {})

    def _ask(self, message: Message) -> Message:
        with self._lock:
            if not self._closed:
                self._worker.send(message)
            while not self._closed:
                if (answer := self._worker.receive(_LOOK_S)) is not None:
                    return answer
        raise UnitLostError(f"the worker of unit {self._worker.unit.name!r} was ended")

    def _post(self, head: Message, tensors: Mapping[str, Any]) -> None:
        self._outlet.post({**head, "route": self._number}, tensors)
