"""The program that gapless runs on a board: takes files, runs one command, hands out what it wrote.

It speaks with `session` over its standard input and output (`frames`), and ends with its connection: the
command is interrupted as by Ctrl-C, so that it stops its workers and keeps what it has measured.
"""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from fcntl import ioctl
from pathlib import Path
from struct import pack
from types import FrameType
from typing import Any

from ..formulations.descriptors import readable
from ..formulations.errors import BoardError, GaplessError
from ..formulations.processes import end_with_parent
from ..version import __version__
from . import frames
from .shelf import Listed, Shelf, group_digest, receive, written

ENVIRONMENT = ("COLUMNS", "NO_COLOR", "TERM")
"""What a command on the board may be told of the terminal here."""

_ENDING = ((signal.SIGINT, 20.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
"""How a command is ended, and how long each time it may take to do so."""

_LOOK_S = 0.5
_READ_BYTES = 65_536
_MAX_GROUPS = 256


class Lost(BaseException):
    """The connection is gone, or nothing was heard for too long, or the agent was told to end."""


class Line:
    """Frames to and from the other side; any silence of `frames.SILENCE_S` raises `Lost`."""

    def __init__(self) -> None:
        self.input, self._out = 0, os.dup(1)
        os.dup2(2, 1)  # whatever else is printed here is no frame
        self._frames, self._waiting = frames.Frames(), list[tuple[bytes, bytes]]()
        self._said_at = time.monotonic()

    def heard(self) -> None:
        """Note a sign of life."""
        signal.alarm(frames.SILENCE_S)

    def alive(self) -> None:
        """Give a sign of life, if nothing was said for a while: whoever hears none thinks that this hangs."""
        if time.monotonic() - self._said_at > frames.ALIVE_EVERY_S:
            self.send(frames.frame(frames.ALIVE))

    def send(self, data: bytes) -> None:
        """Send whole frames."""
        self._said_at = time.monotonic()
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._out, view) :]
        except OSError as error:
            raise Lost from error

    def received(self) -> list[tuple[bytes, bytes]]:
        """Wait for bytes, and return the frames that are complete now."""
        data = os.read(self.input, _READ_BYTES)
        if not data:
            raise Lost
        self.heard()
        self.alive()
        waiting, self._waiting = self._waiting, []
        return [*waiting, *self._frames.feed(data)]

    def next(self, *kinds: bytes) -> tuple[bytes, bytes]:
        """Wait for the next frame, which is one of certain kinds."""
        while True:
            while not self._waiting:
                self._waiting = self.received()
            kind, payload = self._waiting.pop(0)
            if kind == frames.ALIVE:
                continue
            if kind not in kinds:
                raise BoardError(f"the message {kind!r} came where {kinds} was expected")
            return kind, payload

    def told(self, kind: bytes) -> dict[str, Any]:
        """Wait for a message of one kind, and return what it says."""
        return frames.content_of(self.next(kind)[1])

    def pieces(self) -> Iterator[bytes]:
        """Yield the pieces of a file that is sent."""
        while (found := self.next(frames.DATA, frames.END))[0] == frames.DATA:
            yield found[1]

    def give(self, path: Path) -> None:
        """Send a file."""
        with path.open("rb") as file:
            while piece := file.read(frames.PIECE_BYTES):
                self.send(frames.frame(frames.DATA, piece))
                self.heard()
        self.send(frames.frame(frames.END))


def serve(line: Line) -> None:
    """Do what the other side asks, once."""
    shelf = Shelf(alive=line.alive, holding=True)
    shelf.sweep()
    line.send(
        frames.message(
            frames.READY,
            {
                "protocol": frames.PROTOCOL,
                "gapless": __version__,
                "root": str(shelf.root),
                "python": sys.version,
            },
        )
    )
    offer = line.told(frames.OFFER)
    name = str(offer.get("run"))
    with shelf.held(name) as folder:
        if offer.get("fresh"):
            shutil.rmtree(folder, ignore_errors=True)
        _take(line, shelf, folder, offer)
        line.send(frames.frame(frames.TAKEN))
        code = _run(line, shelf.root, folder, line.told(frames.GO))
        listed = written(folder, line.alive)
        line.send(frames.message(frames.LISTED, {"code": code, "files": [asdict(each) for each in listed]}))
        wanted = line.told(frames.WANT).get("names", [])
        for each in listed:
            if each.name in wanted:
                line.give(folder / each.name)
        line.next(frames.DONE)
        shelf.forget(name)


def _take(line: Line, shelf: Shelf, folder: Path, offer: dict[str, Any]) -> None:
    """Receive the files that are not here yet, and what a resumed run has measured elsewhere."""
    groups = [[Listed.read(file) for file in files] for files in offer.get("groups", [])[:_MAX_GROUPS]]
    missing = [number for number, files in enumerate(groups) if not shelf.has(group_digest(files), files)]
    seed = [] if folder.is_dir() else [Listed.read(file) for file in offer.get("seed", [])]
    line.send(frames.message(frames.NEED, {"groups": missing, "seed": bool(seed)}))
    for number in missing:
        with shelf.group(group_digest(groups[number])) as place:
            for file in groups[number]:
                receive(file, place / file.name, line.pieces())
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    for file in seed:
        receive(file, part / Path(file.name).name, line.pieces())
    if seed:
        part.rename(folder)
    folder.mkdir(exist_ok=True)


def _run(line: Line, root: Path, folder: Path, order: dict[str, Any]) -> int:
    """Run the command in the folder of the board, tell what it prints, and return its exit code."""
    words = [str(word) for word in order.get("words", [])]
    said = {name: str(text) for name, text in order.get("environment", {}).items() if name in ENVIRONMENT}
    streams = [_stream(order.get("terminal"), name) for name in ("out", "err")]
    parent = os.getpid()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "gapless", *words],
        cwd=root,
        env={**os.environ, **said},
        stdin=subprocess.DEVNULL,
        stdout=streams[0][1],
        stderr=streams[1][1],
        start_new_session=True,
        preexec_fn=lambda: end_with_parent(parent),  # noqa: PLW1509 - there are no threads here
    )
    for _, end in streams:
        os.close(end)
    reading = {streams[0][0]: frames.OUT, streams[1][0]: frames.ERR}
    try:
        _relay(line, child, reading, folder / Path(str(order.get("about"))).name)
    except BaseException:
        _end(child, reading)
        raise
    return 128 - child.returncode if child.returncode < 0 else child.returncode


def _relay(line: Line, child: subprocess.Popen[bytes], reading: dict[int, bytes], about: Path) -> None:
    """Tell what a command prints and what its run says of itself, until it has ended."""
    told: int | None = None
    while reading or child.poll() is None:
        ready = readable([line.input, *reading], _LOOK_S)
        line.alive()
        for kind, _ in line.received() if line.input in ready else ():
            if kind == frames.INTERRUPT:
                _signal(child, signal.SIGINT)
        for stream in [each for each in reading if each in ready]:
            if data := _read(stream):
                line.send(frames.frame(reading[stream], data))
            else:
                del reading[stream]
        told = _tell(line, about, told)
        if not ready and child.poll() is not None:
            break  # something that it has left behind holds its output
    _tell(line, about, told)


def _tell(line: Line, about: Path, told: int | None) -> int | None:
    """Send the file about the run when it has changed; return when that was."""
    with suppress(OSError):
        changed = about.stat().st_mtime_ns
        if changed != told and (text := about.read_bytes()) and len(text) < frames.MAX_PAYLOAD_BYTES:
            line.send(frames.frame(frames.RUN, text))
        return changed
    return told


def _read(stream: int) -> bytes:
    try:
        return os.read(stream, _READ_BYTES)
    except OSError:  # how a terminal ends
        return b""


def _stream(terminal: Any, name: str) -> tuple[int, int]:
    """Return where to read what a command prints, and what it prints to: a terminal if there is one here."""
    size = terminal.get(name) if isinstance(terminal, dict) else None
    if not isinstance(size, Sequence) or len(size) != 2:
        return os.pipe()
    ours, its = pty.openpty()
    lines, columns = (min(max(int(each), 1), 9999) for each in size)
    ioctl(its, termios.TIOCSWINSZ, pack("HHHH", lines, columns, 0, 0))
    modes = termios.tcgetattr(its)
    modes[1] &= ~termios.OPOST  # lines end as they are written: they do so on the other side
    termios.tcsetattr(its, termios.TCSANOW, modes)
    return ours, its


def _end(child: subprocess.Popen[bytes], reading: dict[int, bytes]) -> None:
    """End a command, first as Ctrl-C does; what it still prints is not kept."""
    for each in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    for number, patience_s in _ENDING:
        _signal(child, number)
        until = time.monotonic() + patience_s
        while child.poll() is None and time.monotonic() < until:
            ready = readable(reading, 0.1)
            for stream in ready:
                if not _read(stream):
                    del reading[stream]
            if not reading:
                time.sleep(0.05)
        if child.poll() is not None:
            return


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def _lost(number: int, frame: FrameType | None) -> None:
    raise Lost


def main() -> int:
    """Serve one connection; return the exit code."""
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _lost)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    line = Line()
    line.heard()
    try:
        serve(line)
    except Lost:
        return 1
    except Exception as error:  # all of it is told, where somebody reads it
        said = str(error) if isinstance(error, GaplessError | OSError) else repr(error)
        with suppress(Lost):
            line.send(frames.message(frames.REFUSED, {"message": said[:10_000]}))
        return 1
    return 0
