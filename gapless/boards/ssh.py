"""The way to a board: the system's ssh, called with a list of arguments.

Keys, known hosts, aliases, ports, jump hosts and passwords are the business of ssh and its settings.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO, Any, Self

from ..formulations.descriptors import readable, writable
from ..formulations.errors import BoardError, InvalidInputError
from . import frames
from .translation import harmless

SSH_VARIABLE = "GAPLESS_SSH"
PYTHON_VARIABLE = "GAPLESS_REMOTE_PYTHON"

_OPTIONS = {
    "BatchMode": "yes",  # no password is asked for
    "ConnectTimeout": "10",
    "ServerAliveInterval": "5",
    "ServerAliveCountMax": "3",
    "ClearAllForwardings": "yes",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",  # an alias may have one
}
"""What is asked of ssh; the first value counts, so that those in GAPLESS_SSH come before these."""

GREETED_WITHIN_S = 90.0
_MAX_NOISE_BYTES = 1 << 20
_MAX_COMPLAINT_BYTES = 4096
_READ_BYTES = 1 << 18
_SSH_FAILED = 255
_OLDEST_PYTHON = (3, 11)

_BOOTSTRAP = f"""
import sys
if sys.path[0] == "": del sys.path[0]
def leave(what, value):
    sys.stdout.write("{frames.GREETING.decode()}" + what + " " + value + chr(10))
    sys.exit(0)
version = ".".join(map(str, sys.version_info[:3]))
if sys.version_info < {_OLDEST_PYTHON}: leave("old-python", version)
try:
    import gapless
except ImportError:
    leave("no-gapless", version)
try:
    from gapless.boards.agent import main
except ImportError as error:
    leave("old-gapless", getattr(gapless, "__version__", "?") + " " + repr(error))
sys.stdout.write("{frames.GREETING.decode()}ready " + version + chr(10))
sys.stdout.flush()
sys.exit(main())
"""
"""What Python is to run on the board; also an old one understands it."""

_DESTINATION = re.compile(r"[^\s\x00-\x1f\x7f-][^\s\x00-\x1f\x7f]{0,500}")

_ADVICE = (
    ("REMOTE HOST IDENTIFICATION HAS CHANGED", "the key of the host is another one than before: find out why "
     "(was the board installed anew?), then remove the old one with `ssh-keygen -R HOST`"),
    ("Host key verification failed", "connect once with `{ssh}` and compare the key of the host"),
    ("Permission denied", "the board lets nobody in without a password: `ssh-copy-id {destination}` takes "
     "your key there, or name it in ~/.ssh/config"),
    ("Could not resolve hostname", "no host has this name: look for a typing error, or give its address"),
    ("Connection refused", "the board is on, but no ssh server listens there: start it (`sudo systemctl "
     "start ssh`), or give the port as ssh://HOST:PORT"),
    ("timed out", "is the board on, and in the same network?"),
    ("No route to host", "is the board on, and in the same network?"),
    ("Network is unreachable", "is this machine in a network?"),
)  # fmt: skip
"""What to do about what ssh says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a board is, and how to get there.

    Attributes
    ----------
    destination
        What ssh takes: an alias of ~/.ssh/config, user@host, or ssh://user@host:port.
    ssh
        The ssh program with further options.
    python
        What runs Python there.
    """

    destination: str
    ssh: tuple[str, ...] = ("ssh",)
    python: tuple[str, ...] = ("python3",)

    def __post_init__(self) -> None:
        if not _DESTINATION.fullmatch(self.destination):
            raise InvalidInputError(
                f"{self.destination[:100]!r} names no board: give an alias of ~/.ssh/config, user@host, or "
                "ssh://user@host:port"
            )

    @classmethod
    def of(cls, destination: str) -> Self:
        """Return the address of a destination; GAPLESS_SSH and GAPLESS_REMOTE_PYTHON say the rest.

        Raises
        ------
        InvalidInputError
            One of them is malformed.
        """
        return cls(
            destination=destination,
            ssh=_words(SSH_VARIABLE, "ssh"),
            python=_words(PYTHON_VARIABLE, "python3"),
        )

    def command(self, *remote: str) -> list[str]:
        """Return the argument list that runs a program there: the shell of the board gets quoted words."""
        options = [word for name, value in _OPTIONS.items() for word in ("-o", f"{name}={value}")]
        return [*self.ssh, *options, "-T", "--", self.destination, shlex.join(remote)]

    def __str__(self) -> str:
        return self.destination


def _words(variable: str, default: str) -> tuple[str, ...]:
    text = os.environ.get(variable, "").strip() or default
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInputError(f"{variable} is {text!r}, which is no command: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What a board answers first."""

    state: str  # "ready", "old-python", "no-gapless", "old-gapless"
    said: str  # version of Python; with "old-gapless" of gapless, and why its agent cannot be used


class UnreachableError(BoardError):
    """A board that ssh does not get to."""


class NoPythonError(BoardError):
    """A board without the Python that is asked for."""


@dataclass(slots=True)
class Connection:
    """A connection to the agent of a board."""

    address: Address  # where it leads
    step: str = "while connecting"  # what is being done, for errors
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _complaints: bytearray = field(default_factory=bytearray, init=False)
    _listener: threading.Thread | None = field(default=None, init=False)
    _frames: frames.Frames = field(default_factory=frames.Frames, init=False)
    _waiting: list[tuple[bytes, bytes]] = field(default_factory=list, init=False)
    _early: bytes = field(default=b"", init=False)

    @classmethod
    @contextmanager
    def to(cls, address: Address) -> Iterator[tuple[Self, Greeting]]:
        """Connect, and yield the connection and what the board answers first.

        Raises UnreachableError, NoPythonError, BoardError: there is no connection, no Python, or no answer.
        """
        connection = cls(address)
        try:
            connection._start()
            yield connection, connection._greeting()
        finally:
            connection._close()

    def send(self, data: bytes) -> None:
        """Send whole frames."""
        assert self._process
        assert self._process.stdin
        view, descriptor = memoryview(data), self._process.stdin.fileno()
        try:
            while view:
                if not writable(descriptor, frames.SILENCE_S):
                    raise self._hung()
                with suppress(BlockingIOError):  # somebody else was faster
                    view = view[os.write(descriptor, view) :]
        except OSError:
            self._raise_refusal()
            raise self._lost() from None

    def interrupt(self) -> None:
        """Interrupt the command on the board; signal handlers may call it: a frame is written at once."""
        self.send(frames.frame(frames.INTERRUPT))

    def next(self, *kinds: bytes) -> tuple[bytes, bytes]:
        """Wait for the next frame, which is one of certain kinds.

        Raises
        ------
        BoardError
            The connection is lost, the board refuses, or says something else.
        """
        while True:
            while not self._waiting:
                data, self._early = self._early or self._read(), b""
                if not data:
                    raise self._lost()
                try:
                    self._waiting = list(self._frames.feed(data))
                except frames.ProtocolError as error:
                    raise self._not_understood(error) from None
            kind, payload = self._waiting.pop(0)
            if kind != frames.ALIVE:
                break
        if kind == frames.REFUSED:
            raise self._refusal(payload)
        if kind not in kinds:
            raise BoardError(f"{self.address} sends {kind!r} where {kinds} was expected, {self.step}")
        return kind, payload

    def told(self, kind: bytes) -> dict[str, Any]:
        """Wait for a message of one kind, and return what it says; errors as for `next`."""
        return self.content(self.next(kind)[1])

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces of a file that is sent; errors as for `next`."""
        while (found := self.next(frames.DATA, frames.END))[0] == frames.DATA:
            yield found[1]

    def content(self, payload: bytes) -> dict[str, Any]:
        """Return what a message says; errors as for `next`."""
        try:
            return frames.content_of(payload)
        except frames.ProtocolError as error:
            raise self._not_understood(error) from None

    def items(self, content: dict[str, Any], name: str) -> list[Any]:
        """Return a list that the board has sent in a message; errors as for `next`."""
        found = content.get(name)
        if not isinstance(found, list):
            raise self.wrong(name, found, "a list")
        return found

    def wrong(self, name: str, found: Any, must: str) -> BoardError:
        """Return the error for a value that the board has sent."""
        return BoardError(f"{self.address} sent {name}: {harmless(repr(found)[:60])}, must be {must}")

    def _not_understood(self, error: frames.ProtocolError) -> BoardError:
        text = harmless(str(error))
        return BoardError(f"{self.address} sends what gapless does not understand: {text}")

    def _refusal(self, payload: bytes) -> BoardError:
        said = harmless(str(self.content(payload).get("message"))[:_MAX_COMPLAINT_BYTES])
        return BoardError(f"{self.address} refuses {self.step}: {said}")

    def _hung(self) -> BoardError:
        return BoardError(
            f"{self.address} has not given a sign of life for {frames.SILENCE_S} s, {self.step}: gapless "
            "hangs there, or the board does"
        )

    def _raise_refusal(self) -> None:
        """Raise what the board has said before it stopped listening, if it has."""
        assert self._process
        assert self._process.stdout
        with suppress(OSError, frames.ProtocolError):
            while data := self._read(beat=False):
                for kind, payload in self._frames.feed(data):
                    if kind == frames.REFUSED:
                        raise self._refusal(payload)

    def _start(self) -> None:
        words = self.address.command(*self.address.python, "-c", _BOOTSTRAP)
        try:
            # Ctrl-C is for this process, which tells the board: ssh is no member of its group.
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            assert self._process.stdin
            os.set_blocking(self._process.stdin.fileno(), False)
            self._listener = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
            self._listener.start()
        except OSError as error:
            raise UnreachableError(
                f"{words[0]} cannot be started: {error.strerror}; install it (`apt install openssh-client`), "
                f"or name another one in {SSH_VARIABLE}"
            ) from None

    def _listen(self, complaints: IO[bytes]) -> None:
        """Keep the last that ssh says, however much it is."""
        with suppress(OSError, ValueError):
            while data := os.read(complaints.fileno(), _READ_BYTES):
                self._complaints += data
                del self._complaints[:-_MAX_COMPLAINT_BYTES]

    def _read(self, *, beat: bool = True) -> bytes:
        """Wait for bytes, with a sign of life now and then; empty at the end."""
        assert self._process
        assert self._process.stdout
        descriptor, until = self._process.stdout.fileno(), time.monotonic() + frames.SILENCE_S
        while not readable([descriptor], min(frames.ALIVE_EVERY_S, frames.SILENCE_S)):
            if time.monotonic() > until:
                raise self._hung()
            if beat:
                self.send(frames.frame(frames.ALIVE))
        return os.read(descriptor, _READ_BYTES)

    def _greeting(self) -> Greeting:
        """Read up to the line that begins the conversation, past what the login shell prints."""
        assert self._process
        assert self._process.stdout
        descriptor, found, until = self._process.stdout.fileno(), b"", time.monotonic() + GREETED_WITHIN_S
        while True:
            _, mark, rest = found.partition(frames.GREETING)
            line, end, self._early = rest.partition(b"\n")
            if mark and end:
                state, _, said = harmless(line.decode(errors="replace")).partition(" ")
                return Greeting(state=state, said=said)
            left = until - time.monotonic()
            if left < 0 or len(found) > _MAX_NOISE_BYTES:
                raise BoardError(
                    f"{self.address} gives no answer that gapless understands: is `python3` Python?"
                )
            if readable([descriptor], left):
                data = os.read(descriptor, _READ_BYTES)
                if not data:
                    raise self._not_started()
                found += data

    def _not_started(self) -> BoardError:
        code, said = self._ended()
        if code == _SSH_FAILED:
            again = shlex.join([*self.address.ssh, self.address.destination])
            advice = next(
                (text for words, text in _ADVICE if words in said), "`{ssh}` must work without a password"
            )
            cure = advice.format(ssh=again, destination=self.address.destination)
            return UnreachableError(f"cannot reach {self.address}: {said or 'ssh fails'}; {cure}")
        python = shlex.join(self.address.python)
        return NoPythonError(
            f"{self.address} cannot run {python} (exit code {code}{f': {said}' if said else ''}): install "
            f"Python 3.11 or newer there, or say which one with {PYTHON_VARIABLE}"
        )

    def _lost(self) -> BoardError:
        code, said = self._ended()
        ended = "ssh ended" if code < 0 or code == _SSH_FAILED else "gapless ended on the board"
        why = said or ended
        return BoardError(f"the connection to {self.address} was lost {self.step}: {why}")

    def _ended(self) -> tuple[int, str]:
        """Return the exit code of ssh, and the last that it said."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._listener is not None
        self._listener.join(timeout=1)  # a helper of ssh may hold the other end
        lines = harmless(self._complaints.decode(errors="replace")).split("\n")
        known = [line.strip(" @\r") for line in lines]
        return code, "; ".join(line for line in known if line)

    def _close(self) -> None:
        """End ssh; the agent on the board ends by itself when it hears no more."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert stream is not None
                stream.close()
        for end in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(timeout=2)
                break
            except subprocess.TimeoutExpired:
                end()
        self._process.wait()
        assert self._listener is not None
        assert self._process.stderr is not None
        self._listener.join(timeout=1)
        if not self._listener.is_alive():
            self._process.stderr.close()
