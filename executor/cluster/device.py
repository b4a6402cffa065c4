"""A device of a cluster: the actor that serves chunks there, and answers the driver's calls.

Calls come through Ray and carry JSON and bytes alone; requests and their tensors come through the endpoint.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import wraps
from importlib import import_module
from time import monotonic_ns
from typing import IO, Any

from ...formulations.errors import GaplessError
from ...formulations.hardware import Platform
from ..engines.registry import get_engine
from ..machine.state import fingerprint
from ..pipeline.worker import largest_rss_bytes
from ..workers import parse_unit
from .endpoint import Endpoint, Frame, LinkRate, Outlet
from .settings import StationSettings
from .station import Station, Turns
from .unit import ServedNetwork, ServedUnit

DRIVER = ""
"""Name of the process that uses the cluster, among its devices."""

WORKER = "\n"
"""Between the name of a device and the number of a worker there, where one of them is who sends."""

Task = Callable[[str, Callable[[str], bytes]], str]
"""What a device can be asked to do: from settings, and what returns the content of a piece by its digest."""


def _told(method: Callable[..., Mapping[str, Any]]) -> Callable[..., str]:
    """Have a method answer in JSON, also with the error that it meets: {"error": [kind, words]}."""

    @wraps(method)
    def told(*arguments: Any) -> str:
        try:
            return json.dumps(method(*arguments))
        except GaplessError as error:
            return json.dumps({"error": [type(error).__name__, str(error)]})

    return told


class Device:
    """What runs on each device; made an actor by the membership.

    `settings`: JSON: name, host (its address that the others reach), rate (`LinkRate` of what it sends).
    """

    def __init__(self, settings: str, key: bytes) -> None:
        given = json.loads(settings)
        self._name: str = given["name"]
        self._rate = LinkRate(**given["rate"])
        self._key = key
        self._addresses: dict[str, tuple[str, int]] = {}
        self._outlets: dict[str, Outlet] = {}
        self._stations: dict[int, Station | ServedUnit] = {}
        self._turns = Turns()
        self._lock = threading.RLock()
        self._closed = threading.Event()
        # Files without names: pieces of somebody's model are gone with this process, however it ends.
        self._pieces: dict[str, IO[bytes]] = {}
        self._unfinished: dict[str, IO[bytes]] = {}
        self._endpoint = Endpoint(self._name, given["host"], key, self._handle)

    def about(self) -> str:
        """Return where it listens, and what machine it is, as JSON."""
        host, port = self._endpoint.address
        return json.dumps(
            {
                "address": [host, port],
                "device": str(fingerprint()),
                "pid": os.getpid(),
                "cores": sorted(os.sched_getaffinity(0)),
            }
        )

    def connect(self, addresses: str) -> None:
        """Learn where the others listen: a JSON object by name."""
        with self._lock:
            self._addresses = {name: (at[0], at[1]) for name, at in json.loads(addresses).items()}

    def missing(self, digests: str) -> str:
        """Return which pieces it does not have, of a JSON list of digests."""
        return json.dumps([digest for digest in json.loads(digests) if digest not in self._pieces])

    def write(self, digest: str, content: bytes, *, is_last: bool) -> None:
        """Add to the content of a piece."""
        with self._lock:
            if digest not in self._unfinished:
                self._unfinished[digest] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `shut_down`
            file = self._unfinished[digest]
            file.write(content)
            if is_last:
                self._pieces[digest] = self._unfinished.pop(digest)

    @_told
    def open(self, settings: str) -> Mapping[str, Any]:
        """Open a chunk, and return the receipts of its sessions as JSON; or {"error": [kind, words]}."""
        known = StationSettings.parse(json.loads(settings))
        station = self._opened(known)
        with self._lock:
            self._stations[known.route] = station
        return {"receipts": [asdict(receipt) for receipt in station.receipts]}

    @_told
    def serve(self, number: int, settings: str) -> Mapping[str, Any]:
        """Start a worker for a coordinator, and return its process number; or {"error": [kind, words]}.

        `settings`: JSON: unit (`unit_data`), engines that it will load.
        """
        given = json.loads(settings)
        # A link of its own: when it ends, the other side knows which worker cannot answer any more.
        link = Outlet(
            f"{self._name}{WORKER}{number}",
            DRIVER,
            self._addresses[DRIVER],
            self._key,
            failed=lambda *_: None,
        )
        try:
            unit = ServedUnit(number, parse_unit(given["unit"]), given["engines"], link)
        except BaseException:
            link.close()
            raise
        with self._lock:
            self._stations[number] = unit
        return {"pid": unit.pids[0]}

    @_told
    def hold(self, number: int, settings: str) -> Mapping[str, Any]:
        """Have a worker open a network (`ServedNetwork`), and return its answer; or {"error": ...}."""
        return self._served(number).open(ServedNetwork.parse(json.loads(settings)), self._read)

    @_told
    def let_go(self, number: int, network: int) -> Mapping[str, Any]:
        """Have a worker close a network, and return its answer; or {"error": ...}."""
        return self._served(number).shut(network)

    def do(self, task: str, settings: str) -> str:
        """Have a function do something here, and return its answer; or {"error": [kind, words]}.

        `task`: "module:function" of a `Task` of gapless.
        """
        module, _, name = task.partition(":")
        if not module.startswith(f"{__name__.partition('.')[0]}."):
            return json.dumps({"error": ["InvalidInputError", f"{task!r} is no part of gapless"]})
        try:
            answer: str = getattr(import_module(module), name)(settings, self._read)
        except GaplessError as error:
            return json.dumps({"error": [type(error).__name__, str(error)]})
        return answer

    def close(self, route: int) -> None:
        """Close a chunk, if it is open; what is on its way there is forgotten."""
        with self._lock:
            station = self._stations.pop(route, None)
        if station is not None:
            station.close()

    def status(self) -> str:
        """Return what it is at, as JSON: requests that wait, messages that are being sent, memory."""
        with self._lock:
            workers = [pid for station in self._stations.values() for pid in station.pids]
            return json.dumps(
                {
                    "waiting": {route: station.waiting for route, station in self._stations.items()},
                    "processes": [os.getpid(), *workers],
                    "sending": {name: outlet.stalled_s for name, outlet in self._outlets.items()},
                    "rss_bytes": max(map(largest_rss_bytes, workers), default=0),
                }
            )

    def slow_down(self, target: str, rate: str) -> None:
        """Make the link to another device as slow as a `LinkRate` says (JSON), for trials of what follows."""
        self._outlet(target).rate = LinkRate(**json.loads(rate))

    def watch(self) -> None:
        """Return when it is closed: the driver learns of its death when this call fails."""
        self._closed.wait()

    def shut_down(self) -> None:
        """Close everything."""
        with self._lock:  # other threads open and forget some of them meanwhile
            routes, outlets = list(self._stations), list(self._outlets.values())
        for route in routes:
            self.close(route)
        for outlet in outlets:
            outlet.close()
        self._endpoint.close()
        with self._lock:
            for file in (*self._pieces.values(), *self._unfinished.values()):
                file.close()
            self._pieces.clear()
            self._unfinished.clear()
        self._closed.set()

    def _served(self, number: int) -> ServedUnit:
        with self._lock:
            unit = self._stations[number]
        assert isinstance(unit, ServedUnit), f"{number} is a chunk of a plan"
        return unit

    def _read(self, digest: str) -> bytes:
        with self._lock:
            file = self._pieces[digest]
            file.seek(0)
            return file.read()

    def _opened(self, known: StationSettings) -> Station:
        contents = {piece.digest: self._read(piece.digest) for part in known.parts for piece in part}
        units = tuple(parse_unit(unit) for unit in known.units)
        return Station(
            known,
            contents,
            Platform(name=self._name, units=units),
            get_engine(known.engine),
            outlets={name: self._outlet(name) for name in known.targets if name != self._name},
            turns=self._turns,
            failed=self._station_failed,
        )

    def _outlet(self, target: str) -> Outlet:
        """Return the link to another device; it is made when it is first needed."""
        with self._lock:
            if target not in self._outlets:
                self._outlets[target] = Outlet(
                    self._name,
                    target,
                    self._addresses[target],
                    self._key,
                    rate=LinkRate() if target == DRIVER else self._rate,
                    failed=self._link_failed,
                )
            return self._outlets[target]

    def _handle(self, frame: Frame) -> None:
        if frame.head["kind"] == "clock":
            self._outlet(frame.sender).post({"kind": "clock", "got_ns": frame.arrived_ns})
            return
        station = self._stations.get(frame.head["route"])
        if station is not None:  # else it comes late: its route was closed when a device was lost
            station.put(frame)

    def _station_failed(self, route: int, error: GaplessError) -> None:
        self._tell({"kind": "failed", "route": route, "error": [type(error).__name__, str(error)]})

    def _link_failed(self, target: str, words: str) -> None:
        with self._lock:
            self._outlets.pop(target, None)
        if target != DRIVER:
            self._tell({"kind": "cut", "target": target, "words": words, "at_ns": monotonic_ns()})

    def _tell(self, head: Mapping[str, Any]) -> None:
        self._outlet(DRIVER).post(head)
