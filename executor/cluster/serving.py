"""Devices of a cluster as units of a coordinator: their workers, as it sees them."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import monotonic_ns
from typing import TypeVar

from ...formulations.errors import ExecutionError, GaplessError, InvalidInputError, UnitLostError
from ...formulations.hardware import Platform, ProcessingUnit
from ...formulations.processes import readable
from ...formulations.validation import meant, shown
from ..coordination.held import HeldNetwork, TaskSlots
from ..coordination.worker import measured
from ..coordination.workers import UnitWorker
from ..workers import Message, rebuild_error, unit_data
from .cluster import Cluster, answer, bring
from .endpoint import Frame
from .unit import ServedNetwork

T = TypeVar("T")

_LOOK_S, _LOOK_IDLE_S = 0.1, 1.0
"""How often a worker looks whether its device is gone, while it waits for an answer and while it is idle."""


class ClusterWorkers:
    """Workers on the devices of a cluster, one for each, or several (see `coordination.workers.Workers`).

    `names`: the devices that serve; empty: all of them.
    """

    def __init__(self, cluster: Cluster, names: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._names = tuple(names) or tuple(cluster.devices)
        for name in self._names:
            if name not in cluster.devices:
                raise InvalidInputError(
                    f"there is no device {shown(name)} in the cluster; {meant(name, cluster.devices)}"
                )

    @property
    def platform(self) -> Platform:
        """The devices as units; their cores are of different machines, so no two exclude each other."""
        units = [replace(self._cluster.member(name).unit, name=name, cores=()) for name in self._names]
        return Platform(name="cluster", units=tuple(units))

    def start(self, unit: ProcessingUnit, engines: Collection[str] | None) -> UnitWorker:
        """See `Workers`."""
        return _RemoteWorker(self._cluster, unit, sorted(engines or ()))

    def opening(self, held: HeldNetwork, index: int, unit: int, slots: TaskSlots) -> Message:
        """See `Workers`."""
        return {"kind": "open", "network": index, "held": held, "unit": unit, "slots": slots}


class _RemoteWorker:
    """A worker on a device (`unit.ServedUnit`); a thread here brings it what it needs, and fetches answers.

    Where the actor of the device was lost another one is started. What it runs is timed from here: the
    transfer of tensors counts as copies.
    """

    def __init__(self, cluster: Cluster, unit: ProcessingUnit, engines: list[str]) -> None:
        self.pid = 0
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._cluster = cluster
        self._unit = unit
        self._engines = engines
        self._device = unit.worker_of or unit.name
        self._number = cluster.next_number()
        self._inbox: SimpleQueue[Message | None] = SimpleQueue()
        self._frames: SimpleQueue[Frame | None] = SimpleQueue()
        self._said: deque[Message | GaplessError] = deque()
        self._networks: dict[int, tuple[HeldNetwork, int, TaskSlots]] = {}
        self._closed = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name=f"to {self._device}", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> None:
        """See `UnitWorker`; that it is gone is said by `receive`."""
        self._inbox.put(message)

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """See `UnitWorker`."""
        if not readable([self.descriptor], timeout_s):
            return None
        with self._lock:
            os.eventfd_read(self.descriptor)
            said = self._said.popleft()
            if self._said:
                os.eventfd_write(self.descriptor, 1)
        if isinstance(said, GaplessError):
            raise said
        return said

    def close(self, *, patience_s: float = 0.0) -> None:
        """See `UnitWorker`."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self.descriptor)
        self._inbox.put(None)
        self._frames.put(None)
        self._thread.join(patience_s)

    def _work(self) -> None:
        try:
            self._say(self._begin())
            while (message := self._next(self._inbox, _LOOK_IDLE_S)) is not None:
                self._say(self._answer(message))
        except GaplessError as error:
            self._say(error)
        except Exception as error:  # whatever it is, the coordinator must hear of it
            self._say(ExecutionError(f"device {self._device!r}: {type(error).__name__}: {error}"))
        finally:
            self._cluster.take(self._number, None)
            with suppress(GaplessError):
                self._cluster.member(self._device).actor.call("close", self._number)

    def _say(self, said: Message | GaplessError) -> None:
        with self._lock:
            if not self._closed:
                self._said.append(said)
                os.eventfd_write(self.descriptor, 1)

    def _begin(self) -> Message:
        """Start the worker, where its device is there."""
        self._member = self._cluster.revived(self._device)
        self._cluster.take(self._number, self._take, device=self._device)
        unit = replace(self._member.unit, name=self._unit.name)
        settings = {"unit": unit_data(unit), "engines": self._engines}
        self.pid = answer(self._member, "serve", self._number, json.dumps(settings))["pid"]
        return {"kind": "ready"}

    def _answer(self, message: Message) -> Message:
        """Return what comes of a message, also where it goes wrong; that the device is gone is raised."""
        try:
            match message["kind"]:
                case "open":
                    return self._open(message)
                case "shut":
                    self._networks.pop(message["network"], None)
                    found: Message = answer(self._member, "let_go", self._number, message["network"])
                    return found
                case "measure":
                    return measured(self._run, message)
                case _:
                    return self._run(message)
        except UnitLostError:
            raise
        except GaplessError as error:
            return {"kind": "failed", "type": type(error).__name__, "text": str(error)}

    def _open(self, message: Message) -> Message:
        held, index, unit = message["held"], message["network"], message["unit"]
        own = [piece for key in held.keys if key[2] == unit for piece in held.pieces[key[:2]]]
        bring(self._member, {piece.digest: piece for piece in own})
        self._networks[index] = held, unit, message["slots"]
        told = json.dumps(ServedNetwork.of(held, index, unit).data())
        found: Message = answer(self._member, "hold", self._number, told)
        return found

    def _run(self, message: Message) -> Message:
        """Run a chunk: send what it takes, and copy what it makes into the task slot."""
        begin_ns = monotonic_ns()
        held, unit, slots = self._networks[message["network"]]
        specs = held.sessions[message["start"], message["stop"], unit]
        made = {name for spec in specs for name in spec.outputs}
        own = slots.tensors(message["slot"])
        taken = {name: own[name] for spec in specs for name in spec.inputs if name not in made}
        head = {key: message[key] for key in ("network", "start", "stop")}
        self._cluster.send(self._device, {**head, "kind": "run", "route": self._number}, taken)
        frame = self._next(self._frames, _LOOK_S)
        if frame is None:
            raise UnitLostError(f"the worker of unit {self._unit.name!r} was ended")
        if frame.head["kind"] == "error":  # the worker, or a link, has ended
            self._member.actor.call("status")  # raises, if it has died: links may end before that is known
            raise UnitLostError(frame.head["text"])
        if frame.head["kind"] != "done":
            raise rebuild_error(frame.head["type"], frame.head["text"])
        with self._lock:
            if not self._closed:  # else the request runs elsewhere by now
                slots.fill(message["slot"], frame.tensors)
        end_ns = monotonic_ns()
        first_ns, *inner_ns, last_ns = frame.head["times_ns"]
        sent, got = sum(array.nbytes for array in taken.values()), frame.size
        way_ns = max(0, end_ns - begin_ns - (last_ns - first_ns))
        there_ns = begin_ns + way_ns * sent // (sent + got or 1)
        times_ns = (begin_ns, *(there_ns + at_ns - first_ns for at_ns in inner_ns), end_ns)
        return {"kind": "done", "times_ns": times_ns}

    def _take(self, frame: Frame) -> None:
        if frame.head["kind"] != "cut":  # links between other devices
            self._frames.put(frame)

    def _next(self, queue: SimpleQueue[T], look_s: float) -> T:
        """Wait for something; raises UnitLostError: the device is gone meanwhile."""
        while True:
            with suppress(Empty):
                return queue.get(timeout=look_s)
            if words := self._member.actor.loss():
                raise UnitLostError(f"device {self._device!r} is gone: {words}")
