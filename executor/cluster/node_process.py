"""The program of a local node (`python -m gapless.executor.cluster.node_process`); see `keep_node`.

It starts Ray in a child of its own and waits: when its standard input is closed (`nodes.LocalCluster` ends,
however it ends) Ray is asked to end, and whatever is left is killed; a byte on it means "at once", as if the
device had lost its power. Everything that Ray starts below becomes its child when its parent is gone
(a subreaper, prctl(2)), so nothing is missed. In the end the folder of the node is removed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from ...formulations.processes import end_with_parent, readable
from ..machine.kernel_files import parse_cores

PATIENCE_S = 5.0
"""How long Ray may take to end by itself; it takes 1 s."""

_PR_SET_CHILD_SUBREAPER = 36


def keep_node(words: Sequence[str]) -> int:
    """Run a node until standard input is closed; the whole program.

    `words`: process number of the parent, cores ("0,1"; empty: all), folder of the node, words of `ray
    start`.
    """
    parent, cores, folder, *start = words
    if os.getppid() != int(parent):
        return 1
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if cores:
        os.sched_setaffinity(0, parse_cores(cores))
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        end_with_parent(keeper)
        start_ray(start)
        os._exit(0)
    try:
        _wait_and_end(child)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def start_ray(words: Sequence[str]) -> None:
    """Be `ray start`, on the loopback address alone.

    Ray takes a node address of 127.0.0.1 for a mistake and puts the address of the network in its place,
    and with that address its servers listen on all interfaces. Told that it is none, they listen on
    127.0.0.1 only (Ray 2.60; a test looks at the sockets). Where grpcio is installed, it would serve its
    client on a fixed port, which nobody here asks.
    """
    sys.modules["grpc"] = None  # type: ignore[assignment]  # as if it were not there
    from ray.scripts.scripts import main

    with loopback():
        sys.argv = ["ray", "start", *words]
        main()


@contextlib.contextmanager
def replaced(module: str, name: str, value: Any) -> Iterator[None]:
    """Replace something in a module of Ray for a while, where there is such a thing."""
    home = import_module(module)
    before = getattr(home, name, None)
    if before is None:
        yield
        return
    setattr(home, name, value)
    try:
        yield
    finally:
        setattr(home, name, before)


def loopback() -> contextlib.AbstractContextManager[None]:
    """Let Ray take 127.0.0.1 for the address of a node."""
    return replaced("ray._private.services", "resolve_ip_for_localhost", lambda host: host)


def _wait_and_end(child: int) -> None:
    """Wait for an order or the end of Ray, then end everything below this process."""
    at_once = False
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if readable([0], 0.2):
            at_once = bool(os.read(0, 1))
            break
    else:
        child = 0
    if child and not at_once:
        os.kill(child, signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and os.waitpid(child, os.WNOHANG)[0] == 0:
            time.sleep(0.02)
    while _reap():
        for pid in _below(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _reap() -> bool:
    """Collect the children that have ended; whether there are others."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _below(pid: int) -> list[int]:
    """Return the processes below one, all generations."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                # One thread that ends in between must not hide the children of the others.
                with contextlib.suppress(OSError), open(f"/proc/{one}/task/{thread}/children") as file:
                    waiting += (children := [int(word) for word in file.read().split()])
                    found += children
    return found


if __name__ == "__main__":
    sys.exit(keep_node(sys.argv[1:]))
