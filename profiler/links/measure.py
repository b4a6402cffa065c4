"""Measuring the links of a cluster: each ordered pair of devices, alone and with other traffic."""

from __future__ import annotations

import json
import random
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import count, permutations
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ...executor.cluster.device import DRIVER
from ...executor.cluster.endpoint import Address, Endpoint, Frame, LinkRate, Outlet
from ...executor.progress import Report, Step, silent
from ...formulations.errors import InvalidInputError, ProfilingError
from ...formulations.validation import Defects, FileContent
from .samples import CHECK_SIZES, FIT_SIZES, Load, MeasuredLink, MessageSample, Purpose

if TYPE_CHECKING:
    from ...executor.cluster.cluster import Cluster


# What a device does while links are measured: it sends messages of given sizes, and says when others came.
#
# It has an endpoint and links of its own for this, of the kind that requests travel over
# (`executor.cluster`): what is measured is what they will meet. Orders come from the driver the same way; so
# do the answers.

BACKGROUND = -1
"""Number of messages that are not measured."""

_HEARTBEAT_S = 2.0


def serve(settings: str, _: Callable[[str], bytes]) -> str:
    """Take part until the driver says that it is over.

    `settings`: JSON: name and host of this device, the rate of what it sends, the driver's address, and the
    key.
    """
    prober = Prober(json.loads(settings))
    try:
        prober.begin()
        while not prober.over.wait(_HEARTBEAT_S):
            prober.tell({"kind": "alive"})  # fails when the driver is gone
    finally:
        prober.close()
    return "{}"


class Prober:
    """One device among those whose links are measured."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.over = threading.Event()  # set when the driver says so, or is gone
        self._name: str = given["name"]
        self._key = bytes.fromhex(given["key"])
        self._rate = LinkRate(**given["rate"])
        self._addresses: dict[str, Address] = {DRIVER: (given["driver"][0], given["driver"][1])}
        self._outlets: dict[str, Outlet] = {}
        self._on_the_way: Counter[str] = Counter()
        self._waited_us: dict[str, float] = {}
        self._background: dict[str, int] = {}
        self._lock = threading.RLock()
        self._endpoint = Endpoint(self._name, given["host"], self._key, self._handle)

    def begin(self) -> None:
        """Tell the driver where this device listens."""
        self.tell({"kind": "here", "address": list(self._endpoint.address)})

    def tell(self, head: Mapping[str, Any]) -> None:
        """Send word to the driver."""
        self._outlet(DRIVER).post(head)

    def close(self) -> None:
        """Send and take nothing more."""
        for outlet in self._outlets.values():
            outlet.close()
        self._endpoint.close()

    def _handle(self, frame: Frame) -> None:
        head = frame.head
        match head["kind"]:
            case "meet":
                self._addresses |= {name: (at[0], at[1]) for name, at in head["addresses"].items()}
            case "send":
                self._send(head["target"], head["size"], number=head["number"])
            case "load":
                self._keep_busy(head["target"], head["size"])
            case "message":
                self._arrived(frame)
            case "got":
                self._got(frame)
            case "over":
                self.over.set()

    def _send(self, target: str, size: int, *, number: int) -> None:
        """Send a message; its head says what is known of the link now. Background has the number -1."""
        import numpy as np

        with self._lock:
            known = {"queue_us": self._waited_us.get(target, 0.0), "traffic": self._on_the_way[target]}
            self._on_the_way[target] += size
        self._outlet(target).post(
            {"kind": "message", "number": number, **known}, {"bytes": np.zeros(size, np.uint8)}
        )

    def _keep_busy(self, target: str, size: int) -> None:
        """Keep one background message of a size on the way to a device, the next when one came; 0: none."""
        with self._lock:
            runs = self._background.get(target, 0) > 0
            self._background[target] = size
        if size and not runs:
            self._send(target, size, number=BACKGROUND)

    def _arrived(self, frame: Frame) -> None:
        head = frame.head
        number, began_ns = head["number"], head["queued_ns"]
        receipt = {"number": number, "size": frame.size, "began_ns": began_ns}
        waited_us = (frame.sent_ns - began_ns) / 1000
        self._outlet(frame.sender).post({"kind": "got", "waited_us": waited_us, **receipt})
        if number >= 0:
            known = {"queue_us": head["queue_us"], "traffic_bytes": head["traffic"]}
            self.tell({"kind": "arrived", "arrived_ns": frame.arrived_ns, **known, **receipt})

    def _got(self, frame: Frame) -> None:
        head, target = frame.head, frame.sender
        with self._lock:
            self._on_the_way[target] -= head["size"]
            self._waited_us[target] = head["waited_us"]
            size = self._background.get(target, 0)
        if head["number"] >= 0:
            trip_ns = frame.arrived_ns - head["began_ns"]
            self.tell({"kind": "returned", "number": head["number"], "trip_ns": trip_ns})
        elif size:
            self._send(target, size, number=BACKGROUND)

    def _outlet(self, target: str) -> Outlet:
        with self._lock:
            if target not in self._outlets:
                rate = LinkRate() if target == DRIVER else self._rate
                self._outlets[target] = Outlet(
                    self._name, target, self._addresses[target], self._key, rate=rate, failed=self._failed
                )
            return self._outlets[target]

    def _failed(self, target: str, words: str) -> None:
        if target == DRIVER:
            self.over.set()
        else:
            self.tell({"kind": "cut", "target": target, "words": words})


MESSAGE_LIMIT_S = 120.0
"""How long one message may take: 16 MiB at 1 Mbit/s are two minutes."""

_START_LIMIT_S = 30.0
_END_LIMIT_S = 5.0
_US = 1000  # nanoseconds
_SETTLE_S = 0.05
_BACKGROUND = ((Load.LINK, 64 << 10), (Load.LINK, 1 << 20), (Load.OTHERS, 1 << 20))
_MOST_LOADED = 4 << 20
"""Largest message that is sent beside others: what it shows, larger ones show again, and slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions(FileContent):
    """How links are measured.

    Attributes
    ----------
    rounds
        Messages of each size on each link with nothing else on its way; half as many beside others.
    shards
        Messages that have the size of what a part of a network sends on, over all links.
    seed
        Of the order of messages and of the pauses between them.
    """

    rounds: int = 5
    shards: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        defects = Defects("options of links")
        if defects.check_count("rounds", self.rounds, least=2) and self.rounds > 1000:
            defects.add(f"rounds is {self.rounds}, at most 1000")
        if defects.check_count("shards", self.shards) and self.shards > 100_000:
            defects.add(f"shards is {self.shards}, at most 100000")
        defects.check_count("seed", self.seed)
        defects.raise_as(InvalidInputError)


@dataclass(frozen=True, slots=True)
class _Job:
    """Messages of some sizes over one link, beside background messages of a size."""

    source: str
    target: str
    load: Load
    background: int
    sizes: tuple[tuple[Purpose, int], ...]


def measure_messages(
    cluster: Cluster,
    shard_sizes: Sequence[int] = (),
    *,
    options: LinkOptions = LinkOptions(),
    report: Report = silent,
) -> tuple[MeasuredLink, ...]:
    """Measure how long messages take between all pairs of devices, both ways.

    `shard_sizes`: bytes of what parts of networks send on, one message each, over the links in turn.
    There is one link for each ordered pair.
    Raises ProfilingError: a device is gone, or a message did not arrive.
    """
    names = tuple(cluster.devices)
    pairs = tuple(permutations(names, 2))
    if not pairs:
        raise InvalidInputError(f"there is only one device, {', '.join(names)}: links join two")
    jobs = list(_jobs(pairs, shard_sizes, options))
    found: dict[tuple[str, str], list[MessageSample]] = {pair: [] for pair in pairs}
    with _Probers(cluster) as probers:
        for done, job in enumerate(jobs):
            words = {Load.IDLE: "alone", Load.LINK: "beside others", Load.OTHERS: "while others send"}
            text = f"messages from {job.source} to {job.target} {words[job.load]}"
            report(Step(text=text, done=done, total=len(jobs)))
            found[job.source, job.target] += probers.play(job, random.Random(f"{options.seed} {done}"))
        report(Step(text="links measured", done=len(jobs), total=len(jobs)))
    clocks = {name: member.clock for name, member in cluster.devices.items()}
    return tuple(
        MeasuredLink(
            source=source,
            target=target,
            samples=tuple(samples),
            clock_error_us=(clocks[source].error_ns + clocks[target].error_ns) / _US,
            round_trip_us=probers.round_trips_us[source, target],
        )
        for (source, target), samples in found.items()
    )


def _jobs(
    pairs: Sequence[tuple[str, str]], shard_sizes: Sequence[int], options: LinkOptions
) -> Iterator[_Job]:
    for index, (source, target) in enumerate(pairs):
        alone = [(Purpose.FIT, size) for size in FIT_SIZES] + [(Purpose.CHECK, size) for size in CHECK_SIZES]
        shards = tuple((Purpose.SHARD, size) for size in shard_sizes[index :: len(pairs)])
        yield _Job(source, target, Load.IDLE, 0, tuple(alone) * options.rounds + shards)
        beside = tuple(one for one in alone if one[1] <= _MOST_LOADED) * max(1, options.rounds // 2)
        for load, size in _BACKGROUND:
            yield _Job(source, target, load, size, beside)


class _Probers:
    """The driver's side of all devices at it (`there.Prober`); a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self.round_trips_us: dict[tuple[str, str], float] = {}
        self._cluster = cluster
        self._key = secrets.token_bytes(32)
        self._frames: SimpleQueue[Frame] = SimpleQueue()
        self._numbers = count()
        self._outlets: dict[str, Outlet] = {}
        self._serving: dict[str, Future[Any]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> _Probers:
        with ExitStack() as stack:
            names = tuple(self._cluster.devices)
            pool = stack.enter_context(ThreadPoolExecutor(max_workers=len(names)))
            endpoint = Endpoint(DRIVER, self._cluster.host, self._key, self._frames.put)
            stack.callback(endpoint.close)  # before the pool ends: who waits for the driver ends as well
            stack.callback(self._end)
            for name in names:
                self._serving[name] = pool.submit(
                    self._cluster.do, name, serve, self._settings(name, endpoint.address)
                )
            addresses: dict[str, Address] = {}
            while len(addresses) < len(names):
                frame = self._next("here", time.monotonic() + _START_LIMIT_S)
                host, port = frame.head["address"]
                addresses[frame.sender] = (host, port)
                self._outlets[frame.sender] = Outlet(
                    DRIVER, frame.sender, (host, port), self._key, failed=lambda *_: None
                )
            self._tell({"kind": "meet", "addresses": addresses})
            self._cluster.set_clocks()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.close()

    def play(self, job: _Job, chance: random.Random) -> list[MessageSample]:
        """Send the messages of a job in random order, and return what they took."""
        sizes = list(job.sizes)
        chance.shuffle(sizes)
        mean = 0
        with self._background(job) as links:
            if links:
                mean = links * job.background // len(list(permutations(self._outlets, 2)))
            samples = []
            for purpose, size in sizes:
                if job.load is not Load.IDLE:
                    time.sleep(chance.uniform(0, 0.01))  # anywhere in the course of the others
                samples.append(self._sent(job, purpose, size, mean))
        return samples

    def _sent(self, job: _Job, purpose: Purpose, size: int, mean: int) -> MessageSample:
        number = next(self._numbers)
        order = {"kind": "send", "target": job.target, "size": size, "number": number}
        self._outlets[job.source].post(order)
        deadline = time.monotonic() + MESSAGE_LIMIT_S
        told: dict[str, Mapping[str, Any]] = {}
        while len(told) < 2:
            head = self._next("", deadline).head
            if head.get("number") == number:
                told[head["kind"]] = head
        there = told["arrived"]
        offsets = [self._cluster.member(name).clock.offset_ns for name in (job.source, job.target)]
        latency_ns = there["arrived_ns"] + offsets[1] - there["began_ns"] - offsets[0]
        if job.load is Load.IDLE and size == FIT_SIZES[0]:
            pair, trip_us = (job.source, job.target), told["returned"]["trip_ns"] / _US
            self.round_trips_us[pair] = min(trip_us, self.round_trips_us.get(pair, trip_us))
        return MessageSample(
            size=size,
            latency_us=max(1, latency_ns) / _US,
            queue_us=there["queue_us"],
            traffic_bytes=there["traffic_bytes"],
            mean_traffic_bytes=mean,
            load=job.load,
            purpose=purpose,
        )

    @contextmanager
    def _background(self, job: _Job) -> Iterator[int]:
        """Keep other links busy meanwhile; yields their number."""
        busy = {
            Load.IDLE: [],
            Load.LINK: [(job.source, job.target)],
            Load.OTHERS: [pair for pair in permutations(self._outlets, 2) if pair[0] != job.source],
        }[job.load]
        for source, target in busy:
            self._outlets[source].post({"kind": "load", "target": target, "size": job.background})
        if busy:
            time.sleep(_SETTLE_S)
        try:
            yield len(busy)
        finally:
            for source, target in busy:
                self._outlets[source].post({"kind": "load", "target": target, "size": 0})
            if busy:
                time.sleep(_SETTLE_S)

    def _next(self, kind: str, deadline: float) -> Frame:
        """Return the next message from a device, of a kind or of any ("")."""
        while time.monotonic() < deadline:
            for name, serving in self._serving.items():
                if serving.done():
                    serving.result()
                    raise ProfilingError(f"device {name!r} stopped measuring messages")
            try:
                frame = self._frames.get(timeout=0.2)
            except Empty:
                continue
            if frame.head["kind"] == "cut":
                raise ProfilingError(
                    f"the link from {frame.sender} to {frame.head['target']} was cut while it was measured: "
                    f"{frame.head['words']}"
                )
            if kind in ("", frame.head["kind"]):
                return frame
        raise ProfilingError("a message did not arrive in time; is a device overloaded, or gone?")

    def _tell(self, head: Mapping[str, Any]) -> None:
        for outlet in self._outlets.values():
            outlet.post(head)

    def _end(self) -> None:
        self._tell({"kind": "over"})
        for name, outlet in self._outlets.items():
            with suppress(TimeoutError):
                self._serving[name].exception(timeout=_END_LIMIT_S)
            outlet.close()

    def _settings(self, name: str, driver: Address) -> dict[str, Any]:
        member = self._cluster.member(name)
        return {
            "name": name,
            "host": member.address[0],
            "rate": asdict(member.rate),
            "driver": list(driver),
            "key": self._key.hex(),
        }
