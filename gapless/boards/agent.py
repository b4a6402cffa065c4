"""The program that gapless runs on a board: takes files, runs one command, hands out what it wrote.

It speaks with `running` over its standard input and output (`channel`), and ends with its connection: the
command is interrupted as by Ctrl-C, so that it stops its workers and keeps what it has measured.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

from ..files.run_document import RUN_FILE
from ..formulations.errors import BoardError, GaplessError
from ..formulations.processes import end_with_parent, readable
from ..version import __version__
from .channel import (
    PROTOCOL,
    About,
    Channel,
    Ended,
    Interrupt,
    Line,
    Need,
    Order,
    Ready,
    Refused,
    Want,
)
from .shelf import ANSWER, Shelf, group_digest, receive, written

_ENDING = ((signal.SIGINT, 20.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0))
"""How a command is ended, and how long each time it may take to do so."""

_READ_BYTES = 65_536
_MAX_GROUPS = 256
_MAX_SAID = 10_000


class Lost(BaseException):
    """The connection is gone, or nothing was heard for too long, or the agent was told to end."""


class Master(Channel):
    """The connection to whom the agent works for."""

    def __init__(self) -> None:
        super().__init__(0, os.dup(1))
        os.dup2(2, 1)  # whatever else is printed here is no frame

    def lost(self) -> BaseException:
        """Return what ends the agent."""
        return Lost()

    def hung(self) -> BaseException:
        """Return what ends the agent."""
        return Lost()

    def wrong(self, why: str) -> BaseException:
        """Return the error for what cannot be answered."""
        return BoardError(f"refused: {why}")


def serve(master: Master) -> None:
    """Do what the other side asks, once."""
    shelf = Shelf(alive=master.alive, holding=True)
    master.say(Ready(protocol=PROTOCOL, gapless=__version__, root=str(shelf.root)))
    order = master.told(Order)
    with shelf.held(order.run) as folder:
        shelf.sweep()  # not before: a clock that was set meanwhile makes the run that goes on look forgotten
        if order.fresh:
            shutil.rmtree(folder, ignore_errors=True)
        _take(master, shelf, folder, order)
        code = _run(master, shelf.root, folder, order)
        files = tuple(written(folder, master.alive))
        master.say(Ended(code=code, files=files))
        known = {each.name: each for each in files}
        while wanted := master.told(Want).names:
            for name in wanted:
                master.give(known[name], folder / name)
        shelf.forget(order.run)


def _take(master: Master, shelf: Shelf, folder: Path, order: Order) -> None:
    """Receive the files that are not here yet, and what a resumed run has measured elsewhere."""
    groups = order.groups[:_MAX_GROUPS]
    missing = [number for number, files in enumerate(groups) if not shelf.has(group_digest(files), files)]
    seed = () if folder.is_dir() else order.seed
    master.say(Need(groups=tuple(missing), seed=bool(seed)))
    for number in missing:
        with shelf.group(group_digest(groups[number])) as place:
            for file in groups[number]:
                receive(file, place / file.name, master.content(file.size_bytes))
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    for file in seed:
        receive(file, part / Path(file.name).name, master.content(file.size_bytes))
    if seed:
        part.rename(folder)
    folder.mkdir(exist_ok=True)


def _run(master: Master, root: Path, folder: Path, order: Order) -> int:
    """Run the command in the folder of the board, tell what it says, and return its exit code."""
    parent = os.getpid()
    with (
        (folder / ANSWER).open("wb") as answer,
        subprocess.Popen(
            [sys.executable, "-P", "-m", "gapless", *order.words],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: end_with_parent(parent),  # noqa: PLW1509 - there are no threads here
        ) as child,
    ):
        try:
            _relay(master, child, folder / RUN_FILE)
        except BaseException:
            _end(child)
            raise
    return 128 - child.returncode if child.returncode < 0 else child.returncode


def _relay(master: Master, child: subprocess.Popen[bytes], about: Path) -> None:
    """Tell what a command and its run say, until it has ended."""
    assert child.stderr
    told, said, open_ends = None, bytearray(), [child.stderr.fileno()]
    while open_ends or child.poll() is None:
        ready = master.wait(open_ends)
        for message in master.arrived():
            if isinstance(message, Interrupt):
                _signal(child, signal.SIGINT)
        for end in ready:
            data = os.read(end, _READ_BYTES)
            open_ends = open_ends if data else []
            *lines, rest = (said + data + (b"" if data or not said else b"\n")).split(b"\n")
            lines, said = ([*lines, rest], bytearray()) if len(rest) > _READ_BYTES else (lines, rest)
            for line in lines:
                master.say(Line(text=line.decode(errors="replace")))
        told = _tell(master, about, told)
        if not ready and child.poll() is not None:
            break  # something that it has left behind holds its output
    _tell(master, about, told)


def _tell(master: Master, about: Path, told: int | None) -> int | None:
    """Send the file about the run when it has changed; return when that was."""
    with suppress(OSError, ValueError):  # it is just written
        changed = about.stat().st_mtime_ns
        if changed != told:
            master.say(About(run=json.loads(about.read_bytes())))
        return changed
    return told


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a command, first as Ctrl-C does; what it still prints is not kept."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    reading = [child.stderr.fileno()] if child.stderr else []
    for number, patience_s in _ENDING:
        _signal(child, number)
        until = time.monotonic() + patience_s
        while child.poll() is None and time.monotonic() < until:
            for stream in readable(reading, 0.1):
                reading = reading if os.read(stream, _READ_BYTES) else []
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
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _lost)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    master = Master()
    try:
        serve(master)
    except Lost:
        return 1
    except Exception as error:  # all of it is told, where somebody reads it
        said = str(error) if isinstance(error, GaplessError | OSError) else repr(error)
        with suppress(Lost):
            master.say(Refused(message=said[:_MAX_SAID]))
        return 1
    return 0
