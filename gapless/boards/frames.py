"""What gapless here and its agent on a board say to each other: frames of a kind and a payload.

The two take turns, so that neither waits for the other to read: the board names itself (READY), is offered
files (OFFER), says which it lacks (NEED), takes them (DATA, END) and says so (TAKEN); is told a command (GO)
and tells what it prints (OUT, ERR) and what its run says of itself (RUN), while it hears signs of life
and interruptions (INTERRUPT); lists what was written (LISTED), is told what is wanted (WANT), sends
it (DATA, END), and ends when it may forget all of it (DONE). REFUSED takes the place of any answer of the
board. Signs of life (ALIVE) come from both sides at any time.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

PROTOCOL = 3
"""Both sides must have the same."""

GREETING = b"gapless-board "
"""Begins the line before the first frame; what the login shell of a board prints stands before it."""

PIECE_BYTES = 256 * 1024
"""Most bytes of a file in one frame."""

MAX_PAYLOAD_BYTES = 1 << 20

ALIVE_EVERY_S = 5.0
SILENCE_S = 60
"""Seconds without a sign of life after which a board ends what it was told to do, and this side leaves."""

READY, OFFER, NEED, DATA, END, TAKEN, REFUSED = b"R", b"O", b"N", b"D", b"E", b"K", b"X"
GO, OUT, ERR, RUN, ALIVE, INTERRUPT = b"G", b"1", b"2", b"J", b"P", b"I"
LISTED, WANT, DONE = b"L", b"W", b"B"

_HEADER = struct.Struct(">cI")


class ProtocolError(ValueError):
    """Bytes that are no frames of this protocol."""


def frame(kind: bytes, payload: bytes = b"") -> bytes:
    """Return a frame."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ProtocolError(f"{len(payload)} bytes do not fit into one message")
    return _HEADER.pack(kind, len(payload)) + payload


def message(kind: bytes, content: Any) -> bytes:
    """Return a frame whose payload is JSON."""
    return frame(kind, json.dumps(content).encode())


def content_of(payload: bytes) -> dict[str, Any]:
    """Return the JSON object of a payload."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message that is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ProtocolError("a message that is no JSON object")
    return found


class Frames:
    """Makes frames of bytes as they come."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the kind and the payload of each frame that is complete now."""
        self._bytes += data
        while len(self._bytes) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._bytes)
            if length > MAX_PAYLOAD_BYTES:
                raise ProtocolError(f"a message of {length} bytes")
            end = _HEADER.size + length
            if len(self._bytes) < end:
                return
            payload = bytes(self._bytes[_HEADER.size : end])
            del self._bytes[:end]
            yield kind, payload
