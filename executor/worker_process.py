"""The program of worker processes (`python -m gapless.executor.worker_process`), and of what forks them.

The latter, see `forking`, loads what workers need, and is told by a channel when to fork.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

from ..formulations.processes import end_with_parent
from .workers import run_worker

_MOST_DESCRIPTORS = 250
_MOST_BYTES = 200_000


def serve_forks(parent: str, channel: str) -> Sequence[str]:
    """Fork whenever the channel says so; return in a child only: the words that its program gets.

    `parent`: number of the process that asks. `channel`: descriptor of its socket. Ends the process when the
    channel is closed and no child is left.
    """
    end_with_parent(int(parent))
    return _ForkServer(socket.socket(fileno=int(channel))).serve()


class _ForkServer:
    """The children, by process number, with the descriptors to which is written how they end."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._running: dict[int, int] = {}
        self._ended: dict[int, int] = {}  # by descriptor, because it tells when nobody asks any more
        self._news, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()

    def serve(self) -> Sequence[str]:
        """Do so; see the function."""
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._poll.register(self._news, select.POLLIN)
        self._poll.register(self._channel, select.POLLIN)
        asked = True
        while asked or self._running:
            for descriptor, _ in self._poll.poll():
                if descriptor == self._news:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._news, 4096)
                    self._tell_ends()
                elif descriptor != self._channel.fileno():
                    self._reap(descriptor)
                elif (request := self._request()) is None:
                    self._poll.unregister(self._channel)
                    asked = False
                elif (words := self._answer(*request)) is not None:
                    return words
        sys.exit(0)

    def _request(self) -> tuple[Mapping[str, Any], Sequence[int]] | None:
        try:
            text, descriptors, _, _ = socket.recv_fds(self._channel, _MOST_BYTES, _MOST_DESCRIPTORS)
        except ConnectionError:  # closed before an answer was read
            return None
        return (json.loads(text), descriptors) if text else None

    def _answer(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> Sequence[str] | None:
        """Fork, and say so; return in the child what its program is told."""
        answer: Mapping[str, int] = {}
        server, child = os.getpid(), -1
        if len(descriptors) != 2 + len(request["descriptors"]):
            answer = {"errno": errno.EMFILE}  # no more files may be open here
        elif _load(request["load"]):
            try:
                child = os.fork()
            except OSError as error:
                answer = {"errno": error.errno or errno.EAGAIN}
        if child == 0:
            self._channel.detach()  # its number may be another file's soon, not to be closed with it
            _become(request, descriptors[1:])
            return [str(server), *request["words"]]
        if child > 0:
            self._running[child] = descriptors[0]
            answer = {"pid": child}
        for descriptor in descriptors[1:] if child > 0 else descriptors:
            os.close(descriptor)
        with contextlib.suppress(OSError):  # it will be asked no more
            self._channel.send(json.dumps(answer).encode())
        return None

    def _tell_ends(self) -> None:
        """Say how children have ended; they stay zombies."""
        for child, status in tuple(self._running.items()):
            found = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                continue
            code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            with contextlib.suppress(BrokenPipeError):
                os.write(status, str(code).encode())
            del self._running[child]
            self._ended[status] = child
            self._poll.register(status, 0)  # only that its other end is closed

    def _reap(self, status: int) -> None:
        """Let the number of a child go: nobody asks for it any more."""
        self._poll.unregister(status)
        os.close(status)
        os.waitpid(self._ended.pop(status), 0)


def _load(modules: Sequence[str]) -> bool:
    """Load modules, those that are there; return whether a fork is safe: there is one thread."""
    for module in modules:
        with contextlib.suppress(Exception):  # a worker that needs it says what is wrong
            import_module(module)
    gc.freeze()  # the pages of what is here are not written to by a collection in a child
    return len(os.listdir("/proc/self/task")) == 1


def _become(request: Mapping[str, Any], inherited: Sequence[int]) -> None:
    """Make a fork as a fresh program would be: its descriptors, session, folder, environment and cores."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    wanted = [1, *request["descriptors"]]
    above = 1 + max(wanted)
    held = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, above) for descriptor in inherited]
    _close_all_but(held)
    for descriptor, number in zip(held, wanted, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.dup2(1, 2)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.sched_setaffinity(0, request["cores"])
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()  # each program draws its own numbers


def _close_all_but(kept: Sequence[int]) -> None:
    """Close all descriptors but the first three and some."""
    edges = [2, *sorted(kept), os.sysconf("SC_OPEN_MAX")]
    for low, high in pairwise(edges):
        os.closerange(low + 1, high)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(run_worker(serve_forks(*given[1:]) if given[0] == "fork" else given))
