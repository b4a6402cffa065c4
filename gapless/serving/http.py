"""HTTP/1.1 between a socket and an ASGI application: heads are read by h11, bodies land where they stay.

Web servers for all applications copy a body several times on its way: into the parser, out of it, into what
the application is given. Here a body of known length comes from the socket into the memory that the
application gets, and h11 reads the rest: heads, and bodies in chunks.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from time import time
from urllib.parse import unquote

import h11

from .bodies import ChunkedBody, Incoming, KnownBody
from .messages import ARRIVAL, Application, Message

SCRATCH_BYTES = 64 * 1024
"""So much is read at a time of what is no body that an application waits for."""

_MOST_HELD_BYTES = 64 * 1024
"""A client is not listened to while so much of what it has sent waits to be read."""

_HEAD_BYTES = 20 * 1024
"""So much is given to h11 at a time while it reads a head: more than it takes for one."""

_log = logging.getLogger(__name__)

Field = tuple[bytes, bytes]


class Exchange:
    """One request and its answer, as an application sees them."""

    def __init__(
        self, connection: HttpConnection, request: h11.Request, body: Incoming, *, asks: bool
    ) -> None:
        self.response_started = self.response_complete = self.disconnected = False
        self.changed = asyncio.Event()  # something has come, or the exchange is over
        self.body = body
        self._connection = connection
        self._asks = asks  # the client sends its body when it is told to
        self._head: bytes | None = None
        fields = list(request.headers)
        self.closes = request.http_version == b"1.0" or _closes(fields)
        target, _, query = request.target.partition(b"?")
        self.scope: Message = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode("latin-1"),
            "method": request.method.decode("latin-1"),
            "scheme": "http",
            "path": unquote(target.decode("latin-1")),
            "raw_path": target,
            "query_string": query,
            "root_path": "",
            "headers": fields,
            "client": connection.client,
            "server": None,
            ARRIVAL: connection.arrival_s,
        }

    @property
    def more_body(self) -> bool:
        """Whether the client has not sent all of the body."""
        return not self.body.complete

    async def run(self, application: Application) -> None:
        """Have it answered."""
        try:
            await application(self.scope, self.receive, self.send)
        except Exception as error:
            _log.error("the application failed", exc_info=error)
        if not (self.response_complete or self.disconnected):
            self._connection.refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "the server has failed")

    async def receive(self) -> Message:
        """Return the next part of the body; behind its end, that the client is answered or has left."""
        if self._asks and self.more_body and not self.response_started:
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._asks = False
        self.body.ask()
        self._connection.listen()
        while not (self.disconnected or self.response_complete):
            if not self.body.exhausted and (part := self.body.take()) is not None:
                return {"type": "http.request", "body": part, "more_body": not self.body.exhausted}
            self.changed.clear()
            await self.changed.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Send the answer: its head goes together with the first part of its body."""
        connection = self._connection
        await connection.writable.wait()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            fields = list(message["headers"])
            self.closes = self.closes or _closes(fields)
            if self.closes and not _closes(fields):
                fields.append((b"connection", b"close"))
            self._head = _head(message["status"], fields)
            return
        parts = [b"" if self.scope["method"] == "HEAD" else message.get("body", b"")]
        if self._head is not None:
            parts.insert(0, self._head)
        self._head, self.response_started = None, True
        connection.transport.writelines(parts)
        if not message.get("more_body", False):
            self.response_complete = True
            self.changed.set()
            connection.answered(self)


class HttpConnection(asyncio.BufferedProtocol):
    """A connection of a client, who asks one thing after the other.

    `scratch`: memory for what is read next; connections of one event loop share it.

    `cycle`: what it asked last. `arrival_s`: when that began to come.
    `heard_s`, `heard_bytes`: when something last came, and how much did in all.
    `listens`: whether it is listened to.
    """

    transport: asyncio.Transport

    def __init__(self, application: Application, scratch: bytearray, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.cycle: Exchange | None = None
        self.client: tuple[str, int] | None = None
        self.arrival_s = self.heard_s = loop.time()
        self.heard_bytes = 0
        self.listens = True
        self.writable = asyncio.Event()
        self.writable.set()
        self._application = application
        self._scratch = scratch
        self._unread = bytearray()  # what belongs to no body that is known yet
        self._parser: h11.Connection | None = None  # of a head that has begun
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # of sockets
        """Begin."""
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._unread.clear()
        self.writable.set()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.changed.set()

    def pause_writing(self) -> None:
        """Send no more until the client has taken what was sent."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Send more."""
        self.writable.set()

    def get_buffer(self, sizehint: int) -> memoryview | bytearray:
        """Return where the next bytes go."""
        target = None if self.cycle is None else self.cycle.body.buffer()
        return self._scratch if target is None else target

    def buffer_updated(self, nbytes: int) -> None:
        """Take note that bytes have come there."""
        cycle = self.cycle
        if cycle is None or cycle.body.buffer() is None:
            self.data_received(memoryview(self._scratch)[:nbytes])
            return
        self._heard(nbytes)
        cycle.body.filled(nbytes)
        if cycle.body.buffer() is None:
            cycle.changed.set()

    def data_received(self, data: bytes | memoryview) -> None:
        """Take what the client sends."""
        between = self.idle and not self._unread and self._parser is None
        self._heard(len(data))
        if between:
            self.arrival_s = self.heard_s
        self._unread += data
        self._go_on()

    def listen(self) -> None:
        """Listen to the client."""
        if not self.listens:
            self.listens = True
            self.transport.resume_reading()

    def answered(self, cycle: Exchange) -> None:
        """Close it if that was the last request; otherwise go on with the next one."""
        cycle.body.discard()
        if cycle.closes or self._stopping:
            self.transport.close()
            return
        self.arrival_s = self.heard_s
        self.listen()
        self._go_on()

    def stop(self) -> None:
        """End when what was asked is answered."""
        self._stopping = True
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def cancel(self) -> None:
        """End, whatever is asked."""
        if self._task is not None:
            self._task.cancel()
        self.transport.abort()

    def tell(self, code: HTTPStatus, text: str) -> None:
        """Send an answer of the server itself, behind which nothing more comes."""
        body = json.dumps({"error": text}).encode()
        fields = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        self.transport.write(_head(code, fields) + body)

    def refuse(self, code: HTTPStatus, text: str) -> None:
        """Close it, and say why; when an answer has begun, nothing more can be said."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.tell(code, text)
        self.transport.close()

    @property
    def idle(self) -> bool:
        """Whether what was asked is answered, and all of it has come."""
        return self.cycle is None or (self.cycle.response_complete and self.cycle.body.complete)

    def _heard(self, count: int) -> None:
        self.heard_s = self.loop.time()
        self.heard_bytes += count

    def _go_on(self) -> None:
        """Read what has come as far as that is possible now."""
        try:
            while self._unread and not self.transport.is_closing():
                cycle = self.cycle
                if cycle is not None and not cycle.body.complete:
                    self._unread = cycle.body.put(self._unread)
                    cycle.changed.set()
                elif cycle is None or cycle.response_complete:
                    self._read_head()
                else:
                    break
        except h11.RemoteProtocolError as error:
            _log.debug("nonsense from a client: %s", error)
            self.refuse(HTTPStatus.BAD_REQUEST, "Invalid HTTP request received.")
            return
        held_bytes = len(self._unread) + (0 if self.cycle is None else self.cycle.body.held_bytes)
        if held_bytes > _MOST_HELD_BYTES and self.listens:
            self.listens = False
            self.transport.pause_reading()

    def _read_head(self) -> None:
        parser = self._parser or h11.Connection(h11.SERVER)
        parser.receive_data(bytes(self._unread[:_HEAD_BYTES]))
        del self._unread[:_HEAD_BYTES]
        event = parser.next_event()
        if not isinstance(event, h11.Request):
            self._parser = parser
            return
        self._parser = None
        body: Incoming
        if any(name == b"transfer-encoding" for name, _ in event.headers):
            body = ChunkedBody(parser)
            self._unread = body.put(self._unread)
        else:
            body = KnownBody(_length(event))
            self._unread[:0] = parser.trailing_data[0]
        self.cycle = Exchange(self, event, body, asks=parser.they_are_waiting_for_100_continue)
        self._task = self.loop.create_task(self.cycle.run(self._application))


def _length(request: h11.Request) -> int:
    """Return how long a body is."""
    return int(next((value for name, value in request.headers if name == b"content-length"), b"0"))


def _closes(fields: Iterable[Field]) -> bool:
    """Return whether the connection is to end behind a message."""
    return any(
        name == b"connection" and b"close" in [word.strip().lower() for word in value.split(b",")]
        for name, value in fields
    )


def _head(code: int, fields: Iterable[Field]) -> bytes:
    lines = [b"HTTP/1.1 %d %b" % (code, HTTPStatus(code).phrase.encode()), b"date: " + _date(int(time()))]
    return b"\r\n".join([*lines, *(b"%b: %b" % field for field in fields), b"", b""])


@lru_cache(maxsize=1)
def _date(now_s: int) -> bytes:
    return formatdate(now_s, usegmt=True).encode()
