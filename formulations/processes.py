"""Child processes that end with their parent, however it ends, and waiting for what they send.

Linux sends a child a signal of its choice when its parent is gone, even killed by SIGKILL. Elsewhere children
end when the pipe from their parent is closed.

To Linux a parent is the *thread* that made the child, and threads may end long before their process: what is
to outlive the caller is made by `in_lasting_thread`.
"""

from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Collection
from concurrent.futures import Future
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess


def readable(descriptors: Collection[int], timeout_s: float | None) -> list[int]:
    """Return the descriptors that can be read without waiting, or that are at their end.

    `timeout_s`: how long to wait for the first one, 0 not at all; None: until there is one.
    """
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    limit_ms = None if timeout_s is None else max(0.0, 1000 * timeout_s)  # poll would wait for ever below 0
    return [descriptor for descriptor, _ in poll.poll(limit_ms)]


def writable(descriptor: int, timeout_s: float) -> bool:
    """Return whether something can be written to a descriptor, or it is at its end, within some time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(max(0.0, 1000 * timeout_s)))


T = TypeVar("T")

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def end_with_parent(parent: int) -> None:
    """Be killed when the parent ends; to be called by a child as soon as it runs.

    `parent`: process number of the parent. If it is gone already, the process ends here.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def forked(work: Callable[..., object], *args: object, daemon: bool = False) -> ForkProcess:
    """Return a child that is a copy of this process, at work on a function; it ends with its parent.

    The child never collects what is garbage in its parent: some objects (servers of gRPC) wait at their end
    for threads, which no child has.
    """
    from multiprocessing import get_context

    process = get_context("fork").Process(target=_at_work, args=(os.getpid(), work, args), daemon=daemon)
    collects = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            # Newer Pythons warn that other threads are not copied by a fork. The child needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
    finally:
        if collects:
            gc.enable()
    return process


def _at_work(parent: int, work: Callable[..., object], args: tuple[object, ...]) -> None:
    gc.freeze()
    gc.enable()
    end_with_parent(parent)
    work(*args)


def name_process(name: str) -> None:
    """Have `ps` and `top` show this process under a name, of which Linux keeps 15 bytes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())


def in_lasting_thread(make: Callable[[], T]) -> T:
    """Return what a function returns, called in a thread that lives as long as this process.

    `make`: makes child processes that are to outlive the thread of the caller. What it raises is raised here.
    """
    if threading.current_thread() is threading.main_thread():
        return make()
    done: Future[T] = Future()
    _orders(os.getpid()).put((make, done))
    return done.result()


@cache
def _orders(process: int) -> SimpleQueue[tuple[Callable[[], Any], Future[Any]]]:
    """Return the orders to the lasting thread of a process: a fork of it has none of its threads."""
    orders: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
    # A daemon: other threads may need their children after the main thread is through.
    threading.Thread(target=_serve, args=(orders,), name="makes child processes", daemon=True).start()
    return orders


def _serve(orders: SimpleQueue[tuple[Callable[[], Any], Future[Any]]]) -> None:
    while True:
        make, done = orders.get()
        try:
            done.set_result(make())
        except BaseException as error:
            done.set_exception(error)
