"""A cluster that is in use: its devices as actors, the connections between them, and their clocks."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from queue import Empty, SimpleQueue
from time import monotonic_ns
from typing import Any, Protocol

from ...formulations import errors
from ...formulations.errors import ExecutionError, GaplessError, UnitLostError
from ...formulations.hardware import ProcessingUnit, UnitKind
from ..closing import Closing
from ..engine import PlacementReceipt, parse_receipt
from ..model import Piece
from ..progress import Report, Step, silent
from ..workers import name_of
from .device import DRIVER, WORKER, Task
from .endpoint import Endpoint, Frame, LinkRate, Outlet
from .routes import Route

_PINGS = 15
_PING_LIMIT_S = 10.0
_SLICE_BYTES = 4 << 20


class Actor(Protocol):
    """A `Device` somewhere else."""

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method and return its answer.

        Raises UnitLostError: the actor or its node is gone.
        """

    def loss(self) -> str:
        """Return how it was lost, without waiting; empty: it is there."""

    def kill(self) -> None:
        """End it at once."""


class Members(Protocol):
    """Who is in a cluster, and how actors are started there."""

    @property
    def hosts(self) -> Mapping[str, str]:
        """The address of each device, by name."""

    @property
    def own_host(self) -> str:
        """The address of this process that the devices reach."""

    def unit(self, name: str) -> ProcessingUnit | None:
        """Return what a device runs its chunks on; None: all cores that it has."""

    def rate(self, name: str) -> LinkRate:
        """Return how fast a device may send."""

    def start(self, name: str, settings: str, key: bytes) -> Actor:
        """Start a `Device` on a device."""

    def close(self) -> None:
        """Leave the cluster; one that was started for trials ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How the clock of a device differs from the driver's."""

    offset_ns: int  # what is added to a time of the device
    error_ns: int  # by how much that may be wrong: half the shortest way there and back


@dataclass(slots=True, kw_only=True)
class Member:
    """A device in use.

    `name`, `actor`: who it is.
    """

    name: str
    actor: Actor
    unit: ProcessingUnit  # what it runs its chunks on
    address: tuple[str, int]  # of its endpoint
    device: str  # what machine it is, in words
    rate: LinkRate = LinkRate()  # how fast it may send
    clock: Clock = Clock(offset_ns=0, error_ns=0)  # see `Clock`


class Cluster(Closing):
    """The devices of a cluster with an actor each; a context manager.

    Parameters
    ----------
    members
        Who they are.
    report
        Told of each step.

    Raises
    ------
    ExecutionError
        A device cannot be used; the message says why.
    """

    def __init__(self, members: Members, *, report: Report = silent) -> None:
        self.members = members
        self._report = report
        self._key = secrets.token_bytes(32)
        self._numbers, self._tasks = count(), count(1)
        self._outlets: dict[str, Outlet] = {}
        self._takers: dict[int, Callable[[Frame], None]] = {}
        self._served: dict[int, str] = {}  # the device of a route that ends with a link
        self._pongs: SimpleQueue[Frame] = SimpleQueue()
        self._lock = threading.Lock()
        self._reviving = {name: threading.Lock() for name in members.hosts}
        self._connecting = {name: threading.Lock() for name in members.hosts}
        self.devices: dict[str, Member] = {}
        self._endpoint = Endpoint(DRIVER, members.own_host, self._key, self._handle, gone=self._sender_gone)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def host(self) -> str:
        """Address of this process that the devices reach."""
        return self._endpoint.address[0]

    def member(self, name: str) -> Member:
        """Return a device.

        Raises
        ------
        UnitLostError
            It is not, or no longer, in the cluster.
        """
        if name not in self.devices:
            raise UnitLostError(f"device {name!r} is not in the cluster; there are {', '.join(self.devices)}")
        return self.devices[name]

    def open(self, route: Route, taker: Callable[[Frame], None]) -> tuple[PlacementReceipt, ...]:
        """Open the stations of a route, and return their receipts.

        Parameters
        ----------
        route
            What to open.
        taker
            Called, by threads of the cluster, with the results and the bad news of the route.

        Raises
        ------
        UnitLostError, PlacementError, ExecutionError
            A device cannot open its part.
        """
        self.take(route.number, taker)
        try:
            with ThreadPoolExecutor(max_workers=len(route.stations)) as pool:
                answers = list(pool.map(lambda index: self._open(route, index), range(len(route.stations))))
        except BaseException:
            self.shut(route)
            raise
        return tuple(receipt for answer in answers for receipt in answer)

    def shut(self, route: Route) -> None:
        """Close the stations of a route, on the devices that are still there."""
        self.take(route.number, None)
        for name in route.devices:
            if name in self.devices and not self.devices[name].actor.loss():
                with suppress(UnitLostError):
                    self.devices[name].actor.call("close", route.number)

    def post(self, route: Route, head: Mapping[str, Any], tensors: Mapping[str, Any] | None = None) -> None:
        """Send a message to where a route begins.

        Raises
        ------
        UnitLostError
            Its device is gone.
        """
        self.send(route.entry, {**head, "route": route.number}, tensors)

    def send(self, name: str, head: Mapping[str, Any], tensors: Mapping[str, Any] | None = None) -> None:
        """Send a message to a device; its "route" says what it is for. Errors as for `post`."""
        try:
            self._outlet(name).post(head, tensors)
        except ExecutionError as error:
            raise UnitLostError(str(error)) from None

    def take(self, route: int, taker: Callable[[Frame], None] | None, *, device: str = "") -> None:
        """Have messages of a route taken by a function, which threads of the cluster call; None: by none.

        `device`: where it is there alone, with a link of its own (`Device.serve`); the taker gets an "error"
        then when a link there or back is gone.
        """
        if taker is None:
            self._takers.pop(route, None)
            self._served.pop(route, None)
        else:
            self._takers[route] = taker
            if device:
                self._served[route] = device

    def next_number(self) -> int:
        """Return a number that no route has had."""
        return next(self._numbers)

    def next_task(self) -> int:
        """Return the logical clock of the next task of a stream."""
        return next(self._tasks)

    def losses(self, names: Iterable[str]) -> dict[str, str]:
        """Return which of some devices were lost, and how, without waiting."""
        members = {name: self.devices.get(name) for name in names}
        found = {
            name: "it has left the cluster" if member is None else member.actor.loss()
            for name, member in members.items()
        }
        return {name: words for name, words in found.items() if words}

    def status(self, name: str) -> dict[str, Any]:
        """Return what a device is at; errors as for `member`."""
        answer: dict[str, Any] = json.loads(self.member(name).actor.call("status"))
        return answer

    def drop(self, name: str) -> None:
        """Use a device no more; its actor is ended."""
        member = self.devices.pop(name, None)
        with self._lock:
            outlet = self._outlets.pop(name, None)
        if outlet is not None:
            outlet.close()
        if member is not None:
            member.actor.kill()

    def revived(self, name: str) -> Member:
        """Return a device; where its actor was lost another one is started. Errors as for `Cluster`."""
        with self._reviving[name]:
            member = self.devices.get(name)
            if member is None or member.actor.loss():
                self.drop(name)
                member = self.devices[name] = self._started(name, self.members.hosts[name])
                try:
                    member.actor.call("connect", self._book)
                except BaseException:  # it would know no way back to here
                    self.drop(name)
                    raise
            return member

    def set_clocks(self) -> None:
        """Estimate the clock of each device anew: by the quickest of some messages there and back."""
        for name, member in self.devices.items():
            member.clock = min((self._ping(name) for _ in range(_PINGS)), key=lambda clock: clock.error_ns)

    def close(self) -> None:
        """End all actors, and leave the cluster. Can be called twice."""
        for member in self.devices.values():
            if not member.actor.loss():
                with suppress(UnitLostError):
                    member.actor.call("shut_down")
            member.actor.kill()
        self.devices = {}
        with self._lock:
            outlets = list(self._outlets.values())
        for outlet in outlets:
            outlet.close()
        self._endpoint.close()
        self.members.close()

    def _start(self) -> None:
        hosts = self.members.hosts
        self._report(Step(text=f"starting {', '.join(hosts)}"))
        with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
            for member in pool.map(self._started, hosts, hosts.values()):
                self.devices[member.name] = member
        for member in self.devices.values():
            member.actor.call("connect", self._book)
        self.set_clocks()

    @property
    def _book(self) -> str:
        """Where all listen, as `Device.connect` takes it."""
        known = list(self.devices.items())  # other threads start some, and drop some, meanwhile
        addresses = {name: member.address for name, member in known}
        return json.dumps({**addresses, DRIVER: self._endpoint.address})

    def _started(self, name: str, host: str) -> Member:
        rate = self.members.rate(name)
        settings = {"name": name, "host": host, "rate": asdict(rate)}
        actor = self.members.start(name, json.dumps(settings), self._key)
        about = json.loads(actor.call("about"))
        cores = tuple(about["cores"])
        return Member(
            name=name,
            actor=actor,
            unit=self.members.unit(name)
            or ProcessingUnit(name=name, kind=UnitKind.CPU, cores=cores, threads=len(cores)),
            address=(about["address"][0], about["address"][1]),
            device=about["device"],
            rate=rate,
        )

    def do(self, name: str, task: Task, settings: Mapping[str, Any], pieces: Iterable[Piece] = ()) -> Any:
        """Have a device do something with some pieces (`Device.do`), and return its answer as plain JSON.

        Raises
        ------
        GaplessError
            What it raised there.
        """
        member = self.member(name)
        bring(member, {piece.digest: piece for piece in pieces})
        return answer(member, "do", name_of(task), json.dumps(settings))

    def _open(self, route: Route, index: int) -> Iterable[PlacementReceipt]:
        station, member = route.stations[index], self.member(route.devices[index])
        own = {piece.digest for part in station.parts for piece in part}
        bring(member, {digest: piece for digest, piece in route.pieces.items() if digest in own})
        found = answer(member, "open", json.dumps(station.data()))
        return [parse_receipt(receipt) for receipt in found["receipts"]]

    def _outlet(self, name: str) -> Outlet:
        """Return the link to a device; only those who want the same one wait while it is made."""
        if known := self._outlets.get(name):
            return known
        member = self.member(name)
        with self._connecting[name]:
            if known := self._outlets.get(name):
                return known
            made = Outlet(
                DRIVER,
                name,
                member.address,
                self._key,
                failed=self._link_failed,
                ended=self._link_ended,
            )
            with self._lock:
                if self.devices.get(name) is member:
                    self._outlets[name] = made
                    return made
        made.close()
        raise UnitLostError(f"device {name!r} was lost while it was connected to")

    def _link_failed(self, target: str, words: str) -> None:
        """Forget a link that is gone; that its device is gone shows in `losses`."""
        with self._lock:
            outlet = self._outlets.pop(target, None)
        if outlet is not None:
            outlet.close()
        for route, device in list(self._served.items()):
            if device == target:
                self._cut(route, f"the link to device {device!r} broke: {words}")

    def _link_ended(self, target: str, words: str) -> None:
        """Forget a link whose other side has ended it, if somebody waits for a worker there.

        What was on the way is lost, and nothing may be sent after it that could fail.
        """
        if target in list(self._served.values()):
            self._link_failed(target, words)

    def _sender_gone(self, sender: str) -> None:
        """Tell whoever waits for a worker of a device (`Device.serve`) that its link is gone."""
        device, _, route = sender.partition(WORKER)
        if route:
            self._cut(int(route), f"the link from device {device!r} broke")

    def _cut(self, route: int, words: str) -> None:
        if taker := self._takers.get(route):
            now_ns, head = monotonic_ns(), {"kind": "error", "type": "", "text": words}
            taker(Frame(sender="", head=head, tensors={}, sent_ns=now_ns, arrived_ns=now_ns))

    def _ping(self, name: str) -> Clock:
        sent_ns = monotonic_ns()
        self._outlet(name).post({"kind": "clock"})
        try:
            pong = self._pongs.get(timeout=_PING_LIMIT_S)
        except Empty:
            raise UnitLostError(f"device {name!r} did not answer within {_PING_LIMIT_S:g} s") from None
        middle_ns = (sent_ns + pong.arrived_ns) // 2
        return Clock(offset_ns=middle_ns - pong.head["got_ns"], error_ns=(pong.arrived_ns - sent_ns + 1) // 2)

    def _handle(self, frame: Frame) -> None:
        kind = frame.head["kind"]
        if kind == "clock":
            self._pongs.put(frame)
            return
        number = frame.head.get("route")
        takers = self._takers if number is None else {number} & self._takers.keys()
        for route in list(takers):
            self._takers[route](frame)


def bring(member: Member, pieces: Mapping[str, Piece]) -> None:
    """Bring the pieces to a device that it does not have."""
    for digest in json.loads(member.actor.call("missing", json.dumps(list(pieces)))):
        content = pieces[digest].content.read()
        for at in range(0, max(1, len(content)), _SLICE_BYTES):
            is_last = at + _SLICE_BYTES >= len(content)
            member.actor.call("write", digest, content[at : at + _SLICE_BYTES], is_last=is_last)


def answer(member: Member, method: str, *arguments: Any) -> Any:
    """Call a method of a device that answers in JSON; raises what it met there."""
    found = json.loads(member.actor.call(method, *arguments))
    if "error" in found:
        raise rebuilt(found["error"], member.name)
    return found


def rebuilt(error: Iterable[str], device: str) -> GaplessError:
    """Return the error that a device has met."""
    name, words = error
    kind = getattr(errors, name, ExecutionError)
    is_ours = isinstance(kind, type) and issubclass(kind, GaplessError)
    found: GaplessError = (kind if is_ours else ExecutionError)(f"device {device!r}: {words}")
    return found
