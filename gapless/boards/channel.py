"""What gapless here and its agent on a board say to each other: lines of JSON, and the bytes of files.

The two take turns, so that neither waits for the other to read: the board names itself (`Ready`), is told
what to do (`Order`), says which files it lacks (`Need`), takes their bytes, runs the command, and tells what
it says besides its answer (`Line`) and what its run says of itself (`About`), while it may be interrupted
(`Interrupt`); says how it ended and what was written (`Ended`), sends the files that are wanted (`Want`), and
forgets all of it when nothing is wanted any more. `Refused` takes the place of any message of the board.
`Content` stands before the bytes of each file: signs of life, which are empty lines, come from both sides at
any time, but not between those bytes.
"""

from __future__ import annotations

import json
import os
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ..formulations.errors import InvalidInputError
from ..formulations.json_files import json_tree, parse_tree
from ..formulations.processes import readable, writable
from .shelf import Listed

PROTOCOL = 4
"""Both sides must have the same."""

GREETING = b"gapless-board "
"""Begins the line before the first message; what the login shell of a board prints stands before it."""

MAX_MESSAGE_BYTES = 1 << 20

ALIVE_EVERY_S = 5.0
SILENCE_S = 60.0
"""Seconds without a sign of life after which a board ends what it was told to do, and this side leaves."""

_LOOK_S = 0.5
_READ_BYTES = 1 << 18


class Message:
    """What one side says; a later version may say more."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"extra": "ignore", "strict": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready(Message):
    """How a board names itself: all versions do it alike, so that each can refuse another one clearly."""

    protocol: int
    gapless: str  # its version
    root: str  # folder of the shelf

    def __post_init__(self) -> None:
        if len(Path(self.root).parts) < 2 or not Path(self.root).is_absolute():
            raise InvalidInputError(f"root is {self.root[:60]!r}, must be the path of a folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order(Message):
    """What a board is to do."""

    words: tuple[str, ...]  # of the command, with the paths that files have there
    run: str  # the name of what it writes
    fresh: bool  # whether what there may be of that run is removed first
    groups: tuple[tuple[Listed, ...], ...]  # files that it needs; those of a group belong together
    seed: tuple[Listed, ...]  # files that the run begins with where the board has nothing of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Need(Message):
    """What a board lacks."""

    groups: tuple[int, ...]  # by number
    seed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(Message):
    """What the command says besides its answer."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class About(Message):
    """What the run says of itself."""

    run: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt(Message):
    """End the command in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Message):
    """What came of a command."""

    code: int  # its exit code
    files: tuple[Listed, ...]  # what it wrote; its answer among them

    def __post_init__(self) -> None:
        if not 0 <= self.code <= 255:
            raise InvalidInputError(f"code is {self.code}, must be an exit code from 0 to 255")


@dataclass(frozen=True, slots=True, kw_only=True)
class Want(Message):
    """Which of the files are to be sent; without names: all is well, and nothing is to be kept."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Content(Message):
    """The bytes of a file follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Message):
    """Why a board does not go on."""

    message: str


_KINDS: dict[str, type[Message]] = {
    kind.__name__: kind for kind in (Order, Need, Line, About, Interrupt, Ended, Want, Content, Refused)
}

_READY = struct.Struct(">cI")
"""What stands before the text of `Ready`, which is no line."""

Told = TypeVar("Told", bound=Message)


def greeted(ready: Ready) -> bytes:
    """Return how a board names itself as bytes."""
    text = json.dumps(asdict(ready)).encode()
    return _READY.pack(b"R", len(text)) + text


def encoded(message: Message) -> bytes:
    """Return the line of a message."""
    text = json.dumps({"is": type(message).__name__, **asdict(message)})  # type: ignore[call-overload]
    if len(text) >= MAX_MESSAGE_BYTES:
        raise InvalidInputError(f"{len(text)} bytes do not fit into one message to a board: name fewer files")
    return text.encode() + b"\n"


def decoded(line: bytes) -> Message:
    """Return the message of a line; raises InvalidInputError."""
    tree = json_tree(line, "a message")
    kind = _KINDS.get(str(tree.pop("is", None)))
    if kind is None:
        raise InvalidInputError(f"a message that is none: {line[:60].decode(errors='replace')!r}")
    return parse_tree(tree, kind, wrong=f"the message {kind.__name__} is not valid")


class Channel(ABC):
    """Messages and files to and from the other side; each side has errors of its own for what fails."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        os.set_blocking(target, False)
        self._came = bytearray()
        self._heard_s = self._said_s = time.monotonic()

    @abstractmethod
    def lost(self) -> BaseException:
        """Return the error for a connection that has ended."""

    @abstractmethod
    def hung(self) -> BaseException:
        """Return the error for a side that has been silent for too long."""

    @abstractmethod
    def wrong(self, why: str) -> BaseException:
        """Return the error for what the other side should not have said."""

    def refused(self, message: str) -> BaseException:
        """Return the error for a refusal."""
        return self.wrong(f"a refusal: {message}")

    def alive(self) -> None:
        """Give a sign of life, if nothing was said for a while: whoever hears none thinks that this hangs."""
        if time.monotonic() - self._said_s > min(ALIVE_EVERY_S, SILENCE_S):
            self._send(b"\n")

    def say(self, message: Message) -> None:
        """Send a message."""
        self._send(greeted(message) if isinstance(message, Ready) else encoded(message))

    def wait(self, others: Collection[int] = ()) -> list[int]:
        """Wait for bytes of the other side, or of other descriptors, which are returned, for a moment."""
        ready = readable([self._source, *others], min(_LOOK_S, SILENCE_S))
        if self._source in ready:
            self._hear(os.read(self._source, _READ_BYTES))
        elif time.monotonic() - self._heard_s > SILENCE_S:
            raise self.hung()
        self.alive()
        return [each for each in ready if each != self._source]

    def arrived(self) -> Iterator[Message]:
        """Yield the messages that are complete, signs of life apart."""
        while (end := self._came.find(b"\n")) >= 0:
            line = bytes(self._came[:end])
            del self._came[: end + 1]
            if not line:
                continue
            try:
                message = decoded(line)
            except InvalidInputError as error:
                raise self.wrong(str(error)) from None
            if isinstance(message, Refused):
                raise self.refused(message.message)
            yield message
        if len(self._came) > MAX_MESSAGE_BYTES:
            raise self.wrong("a message without an end")

    def next(self) -> Message:
        """Wait for the next message."""
        while True:
            for message in self.arrived():
                return message
            self.wait()

    def ready(self) -> Ready:
        """Wait for how a board names itself, or for its refusal."""
        head = next(self._pieces(1))
        if head != b"R":
            self._came[:0] = head
            raise self.wrong(f"{type(self.next()).__name__} where Ready was expected")
        _, size = _READY.unpack(head + b"".join(self._pieces(_READY.size - 1)))
        if size > MAX_MESSAGE_BYTES:
            raise self.wrong(f"a message of {size} bytes")
        try:
            tree = json_tree(b"".join(self._pieces(size)), "a message")
            return parse_tree(tree, Ready, wrong="the message Ready is not valid")
        except InvalidInputError as error:
            raise self.wrong(str(error)) from None

    def told(self, kind: type[Told]) -> Told:
        """Wait for the next message, which is of a kind."""
        message = self.next()
        if not isinstance(message, kind):
            raise self.wrong(f"{type(message).__name__} where {kind.__name__} was expected")
        return message

    def give(self, listed: Listed, path: Path, sent: Callable[[int], object] = lambda size: None) -> None:
        """Send the bytes of a file, as many as were announced; `sent` is told the size of each piece."""
        left = listed.size_bytes
        with path.open("rb") as file:
            self.say(Content())
            while left and (piece := file.read(min(left, _READ_BYTES))):
                self._send(piece)
                left -= len(piece)
                sent(len(piece))
        if left:
            raise InvalidInputError(f"{path} changed while it was sent")

    def content(self, size: int) -> Iterator[bytes]:
        """Yield the bytes of a file of some size, past signs of life that came before it."""
        self.told(Content)
        yield from self._pieces(size)

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            while not self._came:
                self.wait()
            piece = bytes(self._came[:size])
            del self._came[: len(piece)]
            size -= len(piece)
            yield piece

    def _hear(self, data: bytes) -> None:
        if not data:
            raise self.lost()
        self._heard_s = time.monotonic()
        self._came += data

    def _send(self, data: bytes) -> None:
        self._said_s = time.monotonic()
        view = memoryview(data)
        try:
            while view:
                if not writable(self._target, SILENCE_S):
                    raise self.hung()
                try:
                    view = view[os.write(self._target, view) :]
                except BlockingIOError:  # a signal handler was faster
                    continue
        except OSError:
            self._hear_refusal()
            raise self.lost() from None

    def _hear_refusal(self) -> None:
        """Raise what the other side has said before it stopped listening, if it has."""
        with suppress(OSError):  # it has said nothing more: the caller raises that it is lost
            while readable([self._source], SILENCE_S) and (data := os.read(self._source, _READ_BYTES)):
                self._came += data
                for _ in self.arrived():
                    pass
