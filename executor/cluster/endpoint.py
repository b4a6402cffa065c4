"""How devices send each other tensors: connections of their own, a thread for each direction.

A message is a small JSON head and the raw bytes of its tensors; nothing is pickled. Both ends of a
connection prove that they know the key of the cluster (HMAC, `multiprocessing.connection`). Sending and
receiving have threads of their own, so that neither waits for computing (EPipe 3.1.2, Fig. 5).

Ray carries none of it: between two nodes of one machine its object store took 9 to 19 ms for 200 kB to
1 MB, a connection less than 1 ms (`benchmarks/transports.py`).
"""

from __future__ import annotations

import json
import math
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from queue import SimpleQueue
from time import monotonic_ns, sleep
from typing import TYPE_CHECKING, Any

from ...formulations.errors import ExecutionError
from ..model import ITEM_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

Address = tuple[str, int]
"""Host and port."""

CONNECT_LIMIT_S = 20
"""How long it may take to reach another device, and all of it until a device has proved who it is."""

MOST_STRANGERS = 64
"""Connections at once whose other side has not proved that it knows the key; the oldest makes room."""

_AGAIN_S = 0.1
"""Until the next connection is taken, where none could be: all files may be open."""

_SILENT_S, _PROBED_AFTER_S, _PROBES = 15, 5, 3
"""A connection has ended when nothing came through for so long; when one at rest is probed, and how often."""

_MOST_HEAD_BYTES = 1 << 20
_MOST_TENSOR_BYTES = 1 << 34
_NS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A message that has come in.

    `sent_ns`, `arrived_ns`: when its sending began, by the sender's clock, and when it was here as a whole,
    by ours.
    """

    sender: str  # who sent it
    head: Mapping[str, Any]  # what it says
    tensors: Tensors  # what came with it, by name
    sent_ns: int
    arrived_ns: int

    @property
    def size(self) -> int:
        """Bytes of its tensors."""
        return sum(array.nbytes for array in self.tensors.values())


Handler = Callable[[Frame], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRate:
    """A link that is slower than it is, for trials: what each message waits before it is sent."""

    bytes_per_second: int | None = None  # rate; None: as fast as it goes
    latency_us: int = 0  # added to each message

    def wait_s(self, size: int) -> float:
        """Return how long a message of a given number of bytes waits."""
        rate = self.bytes_per_second
        return self.latency_us / 1e6 + (0.0 if rate is None else size / rate)


class Endpoint:
    """Where messages for one device come in; each connection has a thread that reads it.

    `handler`: called with each message, by the thread of its connection: the messages of one sender in order.
    `gone`: called by the same thread, with the name of the sender, when its connection has ended.
    """

    def __init__(
        self,
        name: str,
        host: str,
        key: bytes,
        handler: Handler,
        *,
        gone: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self._key = key
        self._handler = handler
        self._gone = gone
        self._listening = socket.create_server((host, 0))
        self._listening.settimeout(1.0)
        self._open: set[Connection] = set()
        self._strangers: dict[Connection, int] = {}
        self._closed = False
        self._lock = threading.Lock()
        _start_thread(f"accept {name}", self._accept)

    @property
    def address(self) -> Address:
        """Where others connect to."""
        host, port = self._listening.getsockname()[:2]
        return host, port

    def close(self) -> None:
        """Take nothing more in. Can be called twice."""
        with self._lock:
            self._closed = True
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            for connection in self._open:
                _hang_up(connection)

    def _accept(self) -> None:
        while not self._closed:
            self._end_strangers()
            try:
                connection = _connection(self._listening.accept()[0])
            except TimeoutError:
                continue
            except OSError:  # the other side has gone, or there is no file left for it: that passes
                sleep(_AGAIN_S)
                continue
            with self._lock:
                self._strangers[connection] = monotonic_ns()
            try:
                _start_thread(f"read {self.name}", self._read, connection)
            except RuntimeError:  # no thread left for it
                with self._lock:
                    del self._strangers[connection]
                connection.close()
                sleep(_AGAIN_S)

    def _end_strangers(self) -> None:
        """Hang up on those who take too long to prove that they know the key, or are too many."""
        with self._lock:
            oldest = sorted(self._strangers.items(), key=lambda item: item[1])
            late_ns = monotonic_ns() - CONNECT_LIMIT_S * _NS
            for place, (connection, since_ns) in enumerate(oldest):
                if since_ns < late_ns or place < len(oldest) - MOST_STRANGERS:
                    _hang_up(connection)

    def _read(self, connection: Connection) -> None:
        """Read one connection to its end, after the other side has proved that it knows the key."""
        with self._lock:
            if self._closed:  # it came in at the last moment
                self._strangers.pop(connection, None)
                connection.close()
                return
            self._open.add(connection)
        sender = None
        try:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            sender = connection.recv_bytes(_MOST_HEAD_BYTES).decode()
            with self._lock:
                del self._strangers[connection]
            _limit_waiting(connection, 0)
            while True:
                self._handler(_receive(connection, sender))
        except (OSError, EOFError, AuthenticationError, ValueError, AssertionError):
            pass  # it has gone, or is none of ours: whoever waits for its messages says what that means
        finally:
            with self._lock:
                self._open.discard(connection)
                self._strangers.pop(connection, None)
                connection.close()
            if sender is not None:
                self._gone(sender)


class Outlet:
    """One link, from here to another device: what is to be sent waits in its queue.

    `failed`: called once, by the sending thread, when the target can no longer be reached.
    `ended`: called by another thread when the target ends the connection, also while nothing is sent; None:
    nobody looks for that. Neither is called when it was closed.
    """

    def __init__(
        self,
        sender: str,
        target: str,
        address: Address,
        key: bytes,
        *,
        rate: LinkRate = LinkRate(),
        failed: Callable[[str, str], None],
        ended: Callable[[str, str], None] | None = None,
    ) -> None:
        self.target = target
        self.rate = rate
        self._failed = failed
        self._closed = False
        self._queue: SimpleQueue[tuple[dict[str, Any], Tensors] | None] = SimpleQueue()
        self._sending: tuple[str, int] | None = None
        self._connection = _connect(sender, target, address, key)
        _start_thread(f"send {sender} to {target}", self._send_all)
        if ended is not None:
            _start_thread(f"watch {sender} to {target}", self._watch, ended)

    def post(self, head: Mapping[str, Any], tensors: Tensors | None = None) -> None:
        """Send a message behind those that wait; returns at once. The tensors must stay as they are."""
        self._queue.put(({**head, "queued_ns": monotonic_ns()}, tensors or {}))

    @property
    def stalled_s(self) -> tuple[str, float] | None:
        """What is being sent now, and since when, seconds; None: nothing."""
        sending = self._sending
        return None if sending is None else (sending[0], (monotonic_ns() - sending[1]) / _NS)

    def close(self) -> None:
        """Send nothing more. Can be called twice."""
        self._closed = True
        self._queue.put(None)
        _hang_up(self._connection)

    def _send_all(self) -> None:
        while (message := self._queue.get()) is not None:
            head, tensors = message
            self._sending = (str(head.get("about", head["kind"])), monotonic_ns())
            try:
                self._send(head, tensors)
            except (OSError, ValueError) as error:
                if not self._closed:
                    self._failed(self.target, str(error))
                return
            self._sending = None

    def _watch(self, ended: Callable[[str, str], None]) -> None:
        """Wait until the connection ends: nothing else comes from the other side."""
        words = "the other side has ended it"
        try:
            self._connection.recv_bytes(1)
        except EOFError:
            pass  # which is what the words say
        except OSError as error:
            words = str(error)
        if not self._closed:
            ended(self.target, words)

    def _send(self, head: dict[str, Any], tensors: Tensors) -> None:
        sent_ns = monotonic_ns()
        wait_s = self.rate.wait_s(sum(array.nbytes for array in tensors.values()))
        if wait_s > 0 and head["kind"] != "clock":
            sleep(wait_s)
        specs = [[name, str(array.dtype), list(array.shape)] for name, array in tensors.items()]
        self._connection.send_bytes(json.dumps({**head, "sent_ns": sent_ns, "tensors": specs}).encode())
        for array in tensors.values():
            if array.nbytes:
                self._connection.send_bytes(array.data.cast("B"))


def _connect(sender: str, target: str, address: Address, key: bytes) -> Connection:
    """Return a connection to another device."""
    try:
        connection = _connection(socket.create_connection(address, timeout=CONNECT_LIMIT_S))
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
        connection.send_bytes(sender.encode())
        _limit_waiting(connection, 0)
    except (OSError, EOFError, AuthenticationError) as error:
        where = f"{address[0]}:{address[1]}"
        raise ExecutionError(
            f"device {sender!r} cannot connect to device {target!r} at {where}: {error}; "
            "all devices must reach each other over TCP (is there a firewall between them?)"
        ) from None
    return connection


def _connection(opened: socket.socket) -> Connection:
    opened.settimeout(None)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBED_AFTER_S)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, (_SILENT_S - _PROBED_AFTER_S) // _PROBES)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _SILENT_S)
    connection = Connection(opened.detach())
    # A listener that closes while it is connected to can leave a connection that nobody ever answers.
    _limit_waiting(connection, CONNECT_LIMIT_S)
    return connection


def _limit_waiting(connection: Connection, seconds: int) -> None:
    """Let reading fail with an OSError after a given number of seconds without a byte; 0: never."""
    with _socket_of(connection) as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))


def _receive(connection: Connection, sender: str) -> Frame:
    """Read one message.

    Raises OSError, EOFError, ValueError: it has ended, or does not keep to the form.
    """
    import numpy as np

    head = json.loads(connection.recv_bytes(_MOST_HEAD_BYTES))
    sent_ns = head.pop("sent_ns")
    tensors = {}
    for name, dtype, shape in head.pop("tensors"):
        if dtype not in ITEM_BYTES or not 0 <= math.prod(shape) * ITEM_BYTES[dtype] <= _MOST_TENSOR_BYTES:
            raise ValueError(f"a tensor of {dtype} {shape}")
        array = tensors[name] = np.empty(shape, dtype=dtype)
        if array.nbytes:
            connection.recv_bytes_into(array.data.cast("B"))
    return Frame(sender=sender, head=head, tensors=tensors, sent_ns=sent_ns, arrived_ns=monotonic_ns())


def _hang_up(connection: Connection) -> None:
    """End a connection that another thread may be at."""
    with suppress(OSError, ValueError), _socket_of(connection) as raw:
        raw.shutdown(socket.SHUT_RDWR)


@contextmanager
def _socket_of(connection: Connection) -> Iterator[socket.socket]:
    """Lend the socket of a connection, which stays open."""
    raw = socket.socket(fileno=connection.fileno())
    try:
        yield raw
    finally:
        raw.detach()


def _start_thread(name: str, target: Callable[..., None], *arguments: Any) -> None:
    threading.Thread(target=target, args=arguments, name=name, daemon=True).start()
