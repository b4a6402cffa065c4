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
from dataclasses import dataclass
from typing import Self

from ..formulations.errors import BoardError, InvalidInputError
from ..formulations.processes import readable
from . import channel
from .channel import GREETING, Channel
from .folder import harmless

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
    sys.stdout.write("{GREETING.decode()}" + what + " " + value + chr(10))
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
sys.stdout.write("{GREETING.decode()}ready " + version + chr(10))
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
    """Where a board is, and how to get there."""

    destination: str  # what ssh takes: an alias of ~/.ssh/config, user@host, or ssh://user@host:port
    ssh: tuple[str, ...] = ("ssh",)  # the ssh program with further options
    python: tuple[str, ...] = ("python3",)  # what runs Python there

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


class Connection(Channel):
    """A connection to the agent of a board."""

    def __init__(self, address: Address) -> None:
        """Start ssh; raises UnreachableError."""
        self.address = address
        self.step = "while connecting"  # what is being done, for errors
        words = address.command(*address.python, "-c", _BOOTSTRAP)
        try:
            # Ctrl-C is for this process, which tells the board: ssh is no member of its group.
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise UnreachableError(
                f"{words[0]} cannot be started: {error.strerror}; install it (`apt install openssh-client`), "
                f"or name another one in {SSH_VARIABLE}"
            ) from None
        stdin, stdout, self._errors = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin
        assert stdout
        super().__init__(stdout.fileno(), stdin.fileno())
        self._said = bytearray()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @classmethod
    @contextmanager
    def to(cls, address: Address) -> Iterator[tuple[Self, Greeting]]:
        """Connect, and yield the connection and what the board answers first.

        Raises UnreachableError, NoPythonError, BoardError: there is no connection, no Python, or no answer.
        """
        connection = cls(address)
        try:
            yield connection, connection._greeting()
        finally:
            connection._close()

    def lost(self) -> BoardError:
        """Return the error for a connection that has ended, with the last that ssh has said."""
        code, said = self._ended()
        ended = "ssh ended" if code < 0 or code == _SSH_FAILED else "gapless ended on the board"
        return BoardError(f"the connection to {self.address} was lost {self.step}: {said or ended}")

    def hung(self) -> BoardError:
        """Return the error for a board that has been silent for too long."""
        return BoardError(
            f"{self.address} has not given a sign of life for {channel.SILENCE_S:g} s, {self.step}: gapless "
            "hangs there, or the board does"
        )

    def wrong(self, why: str) -> BoardError:
        """Return the error for what no board should say."""
        return BoardError(
            f"{self.address} sends what gapless does not understand, {self.step}: {harmless(why)}"
        )

    def refused(self, message: str) -> BoardError:
        """Return the error for a refusal."""
        said = harmless(message[:_MAX_COMPLAINT_BYTES])
        return BoardError(f"{self.address} refuses {self.step}: {said}")

    def _listen(self) -> None:
        """Keep the last that ssh says, however much it is."""
        assert self._errors
        with suppress(OSError, ValueError):
            while data := os.read(self._errors.fileno(), _READ_BYTES):
                self._said += data
                del self._said[:-_MAX_COMPLAINT_BYTES]

    def _greeting(self) -> Greeting:
        """Read up to the line that begins the conversation, past what the login shell prints."""
        found, until = b"", time.monotonic() + GREETED_WITHIN_S
        while True:
            _, mark, rest = found.partition(GREETING)
            line, end, early = rest.partition(b"\n")
            if mark and end:
                state, _, said = harmless(line.decode(errors="replace")).partition(" ")
                if early:
                    self._hear(early)
                return Greeting(state=state, said=said)
            left = until - time.monotonic()
            if left < 0 or len(found) > _MAX_NOISE_BYTES:
                raise BoardError(
                    f"{self.address} gives no answer that gapless understands: is `python3` Python?"
                )
            if readable([self._source], left):
                data = os.read(self._source, _READ_BYTES)
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

    def _ended(self) -> tuple[int, str]:
        """Return the exit code of ssh, and the last that it said."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._listener.join(timeout=1)  # a helper of ssh may hold the other end
        lines = harmless(self._said.decode(errors="replace")).split("\n")
        known = [line.strip(" @\r") for line in lines]
        return code, "; ".join(line for line in known if line)

    def _close(self) -> None:
        """End ssh; the agent on the board ends by itself when it hears no more."""
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
        self._listener.join(timeout=1)
        if self._errors and not self._listener.is_alive():
            self._errors.close()
