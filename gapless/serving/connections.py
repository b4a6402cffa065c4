"""Connections of the web server: how long one may keep it waiting, and how many there may be.

uvicorn ends a connection that is idle behind an answer. It waits for ever for a first request, for the rest
of a head or a body, and for a client that does not take its answer; it counts such connections against those
that ask; and it keeps what belongs to no body without a limit. So all of them are looked at once a second,
those that have been silent longest make room for new ones, and what they send besides bodies is counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, Protocol

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..formulations.errors import ExecutionError
from .messages import ARRIVAL, Application, Message

MOST_CONNECTIONS = 1024

MOST_AHEAD = 32
"""Requests that a client may send before the first of them is answered."""

MOST_BESIDES_BYTES = 64 * 1024
"""Bytes that may come without ending a head and without being of a body: fields, chunks that never begin."""

_LEAST_CONNECTIONS = 8
# Spare: two processes for JSON are among it, with 8 each.
_SPARE_FILES, _FILES_PER_UNIT = 48, 8
"""Open files that are left for models, and for a worker that starts: pipes, its output, a quota."""

_LOOK_S = 1.0
_START_S = 30.0
_ACCEPTED_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a client is waited for.

    `crowd`, `crowd_s`: of more bodies than this, the slowest ones get only so long: the memory for bodies is
    limited, and what they hold nobody else gets.
    """

    idle_s: float = 75.0
    """For its next request: longer than the 60 s for which proxies keep connections, which would else send
    requests into one that is just being closed."""
    head_s: float = 10.0  # for the first request, and for the rest of a head from its first byte on
    body_s: float = 20.0
    """For a body, and for it to take an answer; longer as long as more comes than `least_rate`."""
    least_rate: float = 8192.0  # bytes per second
    crowd: int = 16
    crowd_s: float = 2.0


class Phase(Enum):
    """What a connection waits for: a request, the rest of a head or body, the server, a client that reads."""

    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    WORK = auto()
    ANSWER = auto()


class Connection(HttpToolsProtocol):
    """One connection of a client.

    `heard_s`, `heard_bytes`: when something last came, and how much did in all.
    """

    def __init__(self, kept: Connections, **how: Any) -> None:
        super().__init__(**how)
        self._kept = kept
        self._phase: tuple[Phase, RequestResponseCycle | None] = (Phase.IDLE, None)
        self._since_s = self.heard_s = self.loop.time()
        self._bytes = self.heard_bytes = 0
        self._besides_bytes = 0
        self._in_head = False
        self._asked: deque[RequestResponseCycle] = deque()  # what may not be answered yet

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Begin."""
        super().connection_made(transport)
        self._kept.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End; uvicorn tells it to the last request alone."""
        self._kept.remove(self)
        for cycle in self._unanswered():
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what the client sends."""
        self.heard_s = self.loop.time()
        self.heard_bytes += len(data)
        self._besides_bytes += len(data)
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
            if self._besides_bytes > MOST_BESIDES_BYTES:
                raise httptools.HttpParserError(f"its head has more than {MOST_BESIDES_BYTES:,} bytes")
        except httptools.HttpParserError as error:
            ours = isinstance(error, httptools.HttpParserCallbackError)
            cause = (error.__context__ if ours else None) or error
            self.logger.debug("nonsense from a client: %s", cause)
            self.send_400_response(f"the request is not valid HTTP: {cause}")

    def on_message_begin(self) -> None:
        """Note when the first byte of a request has come."""
        if len(self._unanswered()) > MOST_AHEAD:
            raise ValueError("too many requests are sent ahead")  # the parser's caller takes it for nonsense
        super().on_message_begin()
        scope: Message = self.scope  # type: ignore[assignment] # a member of our own
        scope[ARRIVAL] = self.heard_s
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of a head; those behind a body in chunks are not kept."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Have the request answered."""
        self._besides_bytes, self._in_head = 0, False
        if self.parser.should_upgrade():
            return  # it comes again
        named = any(name == b"host" for name, _ in self.headers)
        if not self.url.startswith(b"/"):
            raise ValueError("its address must be the path on this server, beginning with /")
        if self.parser.get_http_version() == "1.1" and not named:
            raise ValueError("the header Host is missing")
        super().on_headers_complete()
        self._asked.append(self.cycle)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._besides_bytes = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answer nonsense, unless it would be taken for another answer, or for a part of one."""
        unanswered = self._unanswered()
        if not unanswered or (len(unanswered) == 1 and not unanswered[0].response_started):
            self._tell(HTTPStatus.BAD_REQUEST, msg)
        self.transport.close()

    def look(self, now_s: float) -> Phase:
        """Note what it waits for now, and since when if that has changed."""
        unsent, cycle = self.transport.get_write_buffer_size(), self.cycle
        if unsent:
            phase = Phase.ANSWER
        elif cycle is None or cycle.response_complete:
            same = self._phase in ((Phase.IDLE, cycle), (Phase.HEAD, cycle))
            phase = Phase.HEAD if same and self.heard_bytes > self._bytes else Phase.IDLE
        else:
            phase = Phase.BODY if cycle.more_body and not self.flow.read_paused else Phase.WORK
        if (phase, cycle) != self._phase:
            self._phase, self._since_s = (phase, cycle), now_s
            if phase is not Phase.HEAD:
                self._bytes = unsent or self.heard_bytes
        return phase

    def silent_s(self, now_s: float) -> float:
        """Return how long the client has been waited for."""
        return now_s - max(self._since_s, self.heard_s)

    def overdue(self, now_s: float, patience: Patience) -> bool:
        """Return whether it has been waited for too long."""
        phase, _ = self._phase
        if phase is Phase.IDLE:
            limit_s = patience.head_s if self.cycle is None else patience.idle_s
        else:
            limit_s = patience.head_s if phase is Phase.HEAD else patience.body_s
        return phase is not Phase.WORK and self.behind_s(now_s, patience) > limit_s

    def behind_s(self, now_s: float, patience: Patience) -> float:
        """Return how long it has been waited for, less what bytes that had to move may take."""
        phase, _ = self._phase
        moved = self.heard_bytes - self._bytes if phase is Phase.BODY else 0
        if phase is Phase.ANSWER:
            moved = self._bytes - self.transport.get_write_buffer_size()
        return now_s - self._since_s - moved / patience.least_rate

    def end(self, code: HTTPStatus, text: str) -> None:
        """Close it; a client that has asked something, or has just come, is told why."""
        phase, cycle = self._phase
        asks = phase is Phase.BODY and cycle is not None and not cycle.response_started
        if asks or phase is Phase.HEAD or code is HTTPStatus.SERVICE_UNAVAILABLE:
            self._tell(code, text)
        self.transport.abort()  # `close` would wait for a client that does not read

    def _parse(self, data: bytes) -> None:
        """Read what has come; clients that offer another protocol (`Upgrade`) are understood in this one.

        httptools takes their bodies for the other protocol: so it reads such a head again, without the offer.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            method, version = self.parser.get_method(), self.parser.get_http_version().encode()
            fields = [b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"]
            head = b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, b"".join(fields))
            self._parse(head + data[offer.args[0] :])

    def _unanswered(self) -> deque[RequestResponseCycle]:
        while self._asked and self._asked[0].response_complete:
            self._asked.popleft()
        return self._asked

    def _tell(self, code: HTTPStatus, text: str) -> None:
        body = json.dumps({"error": text}).encode()
        head = f"HTTP/1.1 {code.value} {code.phrase}\r\ncontent-type: application/json\r\n"
        head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        self.transport.write(head.encode() + body)


class Beside(Protocol):
    """A server in the loop of the web server."""

    async def start(self) -> None:
        """Begin to listen."""

    async def stop(self, grace_s: float) -> None:
        """End when calls under way are answered, or after a while."""


class WebServer(uvicorn.Server):
    """An application behind sockets, in an event loop of its own: that of the thread that calls `run`.

    `backlog`: how many connections are accepted at a time; `grace_s`: how long answers may take in the end.
    """

    def __init__(
        self, application: Application, connections: Connections, *, backlog: int, grace_s: float
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=connections,  # type: ignore[arg-type] # any function that makes one will do
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=backlog,
                timeout_keep_alive=round(connections.patience.idle_s),
                timeout_graceful_shutdown=round(grace_s),
            )
        )
        self.connections = connections
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._grace_s = grace_s
        self._beside: list[Beside] = []

    def stop(self) -> None:
        """Take no more connections, and have `run` end when requests under way are answered."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen: few are accepted at a time, and many may wait; asyncio has one number for both."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(MOST_CONNECTIONS)
        self._loop.set_result(asyncio.get_running_loop())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End when requests under way are answered."""
        for each in sockets or ():
            asyncio.get_running_loop().remove_reader(each)
        await asyncio.sleep(_ACCEPTED_S)  # connections that were just accepted could not be opened later
        await asyncio.gather(
            super().shutdown(sockets), *(other.stop(self._grace_s) for other in self._beside)
        )

    def start_beside(self, other: Beside) -> None:
        """Have another server start and end in the same loop; called in another thread."""

        async def start() -> None:
            await other.start()
            self._beside.append(other)

        loop = self._loop.result(_START_S)
        asyncio.run_coroutine_threadsafe(start(), loop).result(_START_S)


class Connections:
    """All connections of a server."""

    def __init__(self, most: int | None = None, patience: Patience | None = None, *, batch: int = 0) -> None:
        self.open: dict[Connection, None] = {}  # those that are open, the oldest first
        self._batch = batch
        self._most = most_connections(0, batch=batch) if most is None else most
        self.patience = patience or Patience()
        self._sweeping = False

    def leave_files_for(self, units: int) -> None:
        """Leave as many open files as the workers of this number of units need, which are open by now."""
        self._most = most_connections(units, batch=self._batch, used=len(self.open))

    def __call__(self, **how: Any) -> Connection:
        """Return a new one, as uvicorn makes them."""
        return Connection(self, **how)

    def add(self, new: Connection) -> None:
        """Take one more; where there are too many, those that were silent longest go."""
        self.open[new] = None
        if len(self.open) > self._most:
            self._make_room(new)
        if not self._sweeping:
            self._sweeping = True
            new.loop.call_later(_LOOK_S, self._sweep_again, new.loop)

    def remove(self, gone: Connection) -> None:
        """Forget one that has ended."""
        self.open.pop(gone, None)

    def sweep(self, now_s: float) -> None:
        """End those that were waited for too long."""
        patience = self.patience
        bodies = [each for each in self.open if each.look(now_s) is Phase.BODY]
        behind_s = {each: each.behind_s(now_s, patience) for each in bodies}
        slowest = sorted(bodies, key=lambda each: behind_s[each])[patience.crowd :]
        crowd = [each for each in slowest if behind_s[each] > patience.crowd_s]
        late = [each for each in self.open if each.overdue(now_s, patience)]
        for each in dict.fromkeys([*late, *crowd]):
            self._end(each, HTTPStatus.REQUEST_TIMEOUT, "the request did not come in time")

    def _sweep_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self.sweep(loop.time())
        self._sweeping = bool(self.open)
        if self._sweeping:
            loop.call_later(_LOOK_S, self._sweep_again, loop)

    def _make_room(self, new: Connection) -> None:
        """End some of the most silent ones, so that not every new one needs a look at all."""
        now_s = new.loop.time()
        waited = [each for each in self.open if each.look(now_s) is not Phase.WORK and each is not new]
        waited.sort(key=lambda each: each.silent_s(now_s), reverse=True)
        for each in waited[: max(1, self._most // 32)] or [new]:
            self._end(each, HTTPStatus.SERVICE_UNAVAILABLE, "there are too many connections; try again later")

    def _end(self, ended: Connection, code: HTTPStatus, text: str) -> None:
        self.remove(ended)
        ended.end(code, text)


def most_connections(units: int, *, batch: int, used: int = 0) -> int:
    """Return how many connections leave enough open files for workers to start.

    `batch`: how many connections may be accepted before the first of them is looked at; `used`: how many of
    the open files are connections.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    others = (len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 64) - used
    found = allowed - others - batch - _SPARE_FILES - _FILES_PER_UNIT * units
    if found < _LEAST_CONNECTIONS:
        needed = allowed - found + _LEAST_CONNECTIONS
        raise ExecutionError(
            f"this process may open {allowed} files, and {others} are open: a server needs {needed} at least "
            f"(`ulimit -n {needed}`)"
        )
    return min(MOST_CONNECTIONS, found)
