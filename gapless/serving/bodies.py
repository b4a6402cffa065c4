"""Bodies of requests as they come in: where their bytes go until an application takes them."""

from __future__ import annotations

from typing import Protocol

import h11

_PART_BYTES = 1024 * 1024
"""A body comes in parts of this size: no more memory is taken for one than it will soon have."""


class Incoming(Protocol):
    """A body that comes.

    `complete`: whether the client has sent all of it; `exhausted`: whether the application has taken it.
    """

    exhausted: bool

    @property
    def complete(self) -> bool:
        """Whether the client has sent all of it."""

    @property
    def held_bytes(self) -> int:
        """How much has come before the application asked for it."""

    def buffer(self) -> memoryview | None:
        """Return where its next bytes go; None: they are to be `put`."""

    def filled(self, count: int) -> None:
        """Take note that bytes have come into the buffer."""

    def put(self, data: bytearray) -> bytearray:
        """Take what belongs to it, and return the rest. Raises h11.RemoteProtocolError: it is nonsense."""

    def ask(self) -> None:
        """Make ready for the next part."""

    def take(self) -> bytes | memoryview | None:
        """Return the next part; None: it has not come."""

    def discard(self) -> None:
        """Keep nothing of it any more: the request is answered."""


class KnownBody:
    """A body whose length the head says: the socket writes it where the application will read it."""

    def __init__(self, length: int) -> None:
        self.exhausted = False
        self._left = length
        self._early = bytearray()
        self._part: memoryview | None = None
        self._filled = 0
        self._wanted = True

    @property
    def complete(self) -> bool:
        """Whether the client has sent all of it."""
        return not self._left

    @property
    def held_bytes(self) -> int:
        """How much has come before the application asked for it."""
        return len(self._early)

    def buffer(self) -> memoryview | None:
        """Return where its next bytes go."""
        return None if self._part is None else self._part[self._filled :] or None

    def filled(self, count: int) -> None:
        """Take note that bytes have come."""
        self._filled += count
        self._left -= count

    def put(self, data: bytearray) -> bytearray:
        """Take what belongs to it, and return the rest."""
        own, rest = data[: self._left], data[self._left :]
        self._left -= len(own)
        if self._wanted:
            self._early += own
            self._move()
        return rest

    def ask(self) -> None:
        """Make ready for the next part."""
        size = min(len(self._early) + self._left, _PART_BYTES)
        if self._part is None and size:
            import numpy as np

            self._part, self._filled = np.empty(size, np.uint8).data, 0
        self._move()

    def take(self) -> bytes | memoryview | None:
        """Return the next part."""
        part = self._part
        if part is not None and self._filled < len(part):
            return None
        self._part = None
        self.exhausted = not (self._left or self._early)
        return b"" if part is None else part

    def discard(self) -> None:
        """Keep nothing of it."""
        self._wanted, self._part = False, None
        self._early.clear()

    def _move(self) -> None:
        """Move what came early into the part that was asked for."""
        if self._part is not None and self._early:
            moved = self._early[: len(self._part) - self._filled]
            self._part[self._filled : self._filled + len(moved)] = moved
            self._filled += len(moved)
            del self._early[: len(moved)]


class ChunkedBody:
    """A body in chunks, which h11 puts together."""

    def __init__(self, parser: h11.Connection) -> None:
        self.exhausted = self.complete = False
        self._parser = parser
        self._ready = bytearray()
        self._wanted = True

    @property
    def held_bytes(self) -> int:
        """How much has come before the application asked for it."""
        return len(self._ready)

    def buffer(self) -> None:
        """Return None: its bytes are to be read by h11."""

    def filled(self, count: int) -> None:
        """Not called: there is no buffer."""

    def put(self, data: bytearray) -> bytearray:
        """Take what belongs to it, and return the rest."""
        if data:  # nothing would be the end of the connection
            self._parser.receive_data(bytes(data))
        while isinstance(event := self._parser.next_event(), h11.Data):
            if self._wanted:
                self._ready += event.data
        self.complete = isinstance(event, h11.EndOfMessage)
        return bytearray(self._parser.trailing_data[0] if self.complete else b"")

    def ask(self) -> None:
        """Do nothing: parts are as they come."""

    def take(self) -> bytes | None:
        """Return what has come."""
        if not self._ready and not self.complete:
            return None
        part, self.exhausted = bytes(self._ready), self.complete
        self._ready.clear()
        return part

    def discard(self) -> None:
        """Keep nothing of it."""
        self._wanted = False
        self._ready.clear()
