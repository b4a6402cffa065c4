"""Messages of HTTP as the application sees them: header fields, bodies within limits, answers, refusals.

Of a compressed body no more is unpacked than may be; answers are packed if a client asks for it.
"""

from __future__ import annotations

import asyncio
import ctypes
import gzip
import io
import re
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..formulations.validation import shown

Message = MutableMapping[str, Any]
"""What a web server and an application (ASGI) tell each other; also the scope of a request."""

Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

Buffer = bytes | bytearray | memoryview

Headers = Mapping[str, bytes]
"""Header fields of a message by their names in lower case."""

JSON = "application/json"

ARRIVAL = "gapless.arrival_s"
"""Member of a scope: when the first byte of the request came, by the monotonic clock."""

MOST_HEADERS_BYTES = 16 * 1024

_MOST_READING = 64
"""Bodies that are read at the same time: more of them would be memory that grows under load."""

_TRIM_BYTES, _MMAP_BYTES = 64 * 1024 * 1024, 4 * 1024 * 1024
"""The server keeps up to this much freed memory, and asks the system for larger blocks one by one."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h

_WATCHED_S = 0.1
"""Whether a client leaves is looked at for requests that take longer."""

_UNCOUNTED_BYTES = 64 * 1024
"""The part of each body that is not counted: small ones are taken while large ones fill the memory."""

_ONCE = frozenset(
    {
        "accept-encoding",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "inference-header-content-length",
        "origin",
        "transfer-encoding",
    }
)
"""Fields that are read here: of two of them, a proxy in between may believe the other one."""


_WBITS = {"gzip": 31, "deflate": zlib.MAX_WBITS}
"""How zlib calls what HTTP calls by these names."""

_LEVEL = 1
"""Answers are mostly numbers, which a higher level makes 1 % smaller and several times slower."""

_LEAST_BYTES = 1024
"""Smaller answers are sent as they are."""

_AT_ONCE_BYTES = 16 * 1024
_CHOICE = re.compile(r"\s*([a-z*]+)\s*(?:;\s*q=([01](?:\.[0-9]{0,3})?)\s*)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: code, body, headers besides its length."""

    code: int
    body: Buffer
    headers: tuple[tuple[str, str], ...] = (("content-type", JSON),)


class Refusal(Exception):
    """A message that is answered with an error of its own code."""

    def __init__(self, code: int, text: str, *, closes: bool = False, allow: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.closes = closes
        self.allow = allow  # the methods that would be answered


def headers_of(fields: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the header fields of a message."""
    found: dict[str, bytes] = {}
    size = 0
    for key, value in fields:
        name = key.decode("latin-1").lower()
        size += len(key) + len(value)
        if name in found and name in _ONCE:
            raise Refusal(400, f"the header {name} is there twice", closes=True)
        found[name] = value
    if "content-length" in found and "transfer-encoding" in found:
        raise Refusal(
            400,
            "Content-Length and Transfer-Encoding are both there: where it ends is not known",
            closes=True,
        )
    if size > MOST_HEADERS_BYTES:
        raise Refusal(431, f"the headers are larger than {MOST_HEADERS_BYTES:,} bytes")
    return found


class Bodies:
    """The bodies that are in memory."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._held_bytes = 0
        self._reading = 0

    @contextmanager
    def held(self) -> Iterator[Body]:
        """Yield a body that is to be read; its memory counts until the end of the block."""
        body = Body(self)
        try:
            yield body
        finally:
            body.release()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count one body that is being read."""
        if self._reading >= _MOST_READING:
            raise Refusal(429, f"{_MOST_READING} messages are being read; try again later")
        self._reading += 1
        try:
            yield
        finally:
            self._reading -= 1

    def count(self, more_bytes: int, *, taken: bool = False) -> None:
        """Count more memory; what is `taken` already is not refused."""
        if not taken and self._held_bytes + more_bytes > self._most_bytes:
            raise Refusal(
                429, f"messages of {self._most_bytes:,} bytes are in memory; try again later", closes=True
            )
        self._held_bytes += more_bytes


class Body:
    """One body that is being read, or was."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._counted_bytes = 0

    def release(self) -> None:
        """Count it no longer: nobody needs it any more. Can be called twice."""
        self._bodies.count(-self._counted_bytes, taken=True)
        self._counted_bytes = 0

    async def read(self, headers: Headers, receive: Receive, *, most_bytes: int, why: str) -> memoryview:
        """Return it; no more of it is kept than is allowed."""
        told = headers.get("content-length", b"0")
        told_bytes = int(told[:20]) if told.isdigit() else 0
        whole, size = _Whole(told_bytes), 0
        with self._bodies.reading():
            while told_bytes <= most_bytes:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise left()
                part, last = message.get("body", b""), not message.get("more_body", False)
                size += len(part)
                if size > most_bytes:
                    break
                self.count(size)
                if last and size == len(part):
                    return memoryview(part)
                whole.put(part)
                if last:
                    return whole.data
        raise Refusal(413, f"the body is larger than {most_bytes:,} bytes{why}", closes=True)

    def count(self, size_bytes: int, *, taken: bool = False) -> None:
        """Count the memory that it takes now; an answer is `taken`: refusing it would not free anything."""
        more_bytes = max(0, size_bytes - _UNCOUNTED_BYTES) - self._counted_bytes
        self._bodies.count(more_bytes, taken=taken)
        self._counted_bytes += more_bytes


class _Whole:
    """A body that is put together in the memory in which it stays, of which pages are taken as parts come.

    `told_bytes`: how large it will be; 0: nobody knows.
    """

    def __init__(self, told_bytes: int) -> None:
        self._told_bytes = told_bytes
        self._known: memoryview | None = None
        self._unknown = bytearray()
        self._size = 0

    @property
    def data(self) -> memoryview:
        """What has come."""
        return memoryview(self._unknown) if self._known is None else self._known[: self._size]

    def put(self, part: Buffer) -> None:
        """Add a part."""
        if not self._told_bytes:
            self._unknown += part
            return
        if self._known is None:
            import numpy as np

            self._known = np.empty(self._told_bytes, np.uint8).data
        self._known[self._size : self._size + len(part)] = part
        self._size += len(part)


async def unpacked(data: memoryview, encoding: str, *, most_bytes: int) -> memoryview:
    """Return a body as it was before its client packed it; at most `most_bytes` of it are ever made."""
    if encoding == "identity":
        return data
    encoding = "gzip" if encoding == "x-gzip" else encoding  # RFC 9110, 8.4.1.3
    if encoding not in _WBITS:
        raise Refusal(415, f"bodies in {shown(encoding)} are not taken: gzip, deflate, or as they are")
    if len(data) <= _AT_ONCE_BYTES and most_bytes <= 64 * _AT_ONCE_BYTES:
        return _unpacked(data, encoding, most_bytes)
    return await asyncio.to_thread(_unpacked, data, encoding, most_bytes)


def _unpacked(data: memoryview, encoding: str, most_bytes: int) -> memoryview:
    try:
        if not data:
            raise EOFError
        if encoding == "gzip":  # of any number of members
            found = gzip.GzipFile(fileobj=io.BytesIO(data)).read(most_bytes + 1)
        else:
            unpacker = zlib.decompressobj()
            found = unpacker.decompress(data, most_bytes + 1)
            if len(found) <= most_bytes and not unpacker.eof:
                raise EOFError
            if len(found) <= most_bytes and unpacker.unused_data:
                raise zlib.error(f"{len(unpacker.unused_data):,} bytes follow it")
    except EOFError:
        raise Refusal(400, f"the body is not in {encoding}: it ends too early") from None
    except (OSError, zlib.error) as error:
        raise Refusal(400, f"the body is not in {encoding}: {error}") from None
    if len(found) > most_bytes:
        raise Refusal(413, f"the body is larger than {most_bytes:,} bytes when it is unpacked", closes=True)
    return memoryview(found)


def chosen(accepted: str) -> str | None:
    """Return which of gzip and deflate a client prefers by its Accept-Encoding; None: answers as they are."""
    likings = dict[str, float]()
    for part in accepted.lower().replace("x-gzip", "gzip").split(","):
        if found := _CHOICE.fullmatch(part):
            likings[found[1]] = float(found[2] or 1)
    offered = {name: likings[name] for name in likings if name in _WBITS and likings[name] > 0}
    best = max(offered, key=lambda name: offered[name], default=None)
    return None if best is None or likings.get("identity", 0) > offered[best] else best


async def packed(body: Buffer, encoding: str | None) -> tuple[Buffer, str | None]:
    """Return an answer as it is sent, and the encoding that it then has; None: none."""
    if encoding is None or len(body) < _LEAST_BYTES:
        return body, None
    packer = zlib.compressobj(_LEVEL, wbits=_WBITS[encoding])
    return await asyncio.to_thread(lambda: packer.compress(body) + packer.flush()), encoding


def keep_memory() -> None:
    """Have this process keep the memory of bodies, where its C library is glibc.

    Its usual thresholds give the memory of a body back after each request. To take it again costs 0.9 ms for
    600 kB, most of it page faults: more than all else that the application does for a request.
    """
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES)


def left() -> Refusal:
    """Return what ends the work for a client that has left; nobody reads it."""
    return Refusal(400, "the client has left")


@contextmanager
def ended_with_client(receive: Receive) -> Iterator[None]:
    """Cancel what the running task waits for in this block when its client leaves."""
    task, inside, gone = asyncio.current_task(), True, False
    watches = list[asyncio.Task[None]]()

    def ended(watch: asyncio.Task[None]) -> None:
        nonlocal gone
        if inside and task is not None and not watch.cancelled():
            gone = True
            task.cancel()

    def begin() -> None:
        watches.append(asyncio.ensure_future(_leaves(receive)))
        watches[0].add_done_callback(ended)

    timer = asyncio.get_running_loop().call_later(_WATCHED_S, begin)
    try:
        yield
    except asyncio.CancelledError:
        if task is None or not gone:
            raise  # the server stops
        task.uncancel()
        raise left() from None
    finally:
        inside = False
        timer.cancel()
        for watch in watches:
            watch.cancel()


async def _leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
