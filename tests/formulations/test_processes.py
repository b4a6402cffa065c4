"""Child processes end with their parent, and with nothing less."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

import pytest

from gapless.formulations.processes import forked, in_lasting_thread
from tests.processes import alive, soon

SLEEP = (
    "import sys, time\n"
    "from gapless.formulations.processes import end_with_parent\n"
    "end_with_parent(int(sys.argv[1]))\n"
    "print('here', flush=True)\n"
    "time.sleep(60)\n"
)


def start(parent: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", SLEEP, str(parent)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def started_in_a_thread_that_ends(lasting: bool) -> subprocess.Popen[str]:
    """Return a child that a thread has started; the thread is over."""
    found: list[subprocess.Popen[str]] = []

    def make() -> None:
        child = in_lasting_thread(partial(start, os.getpid())) if lasting else start(os.getpid())
        assert child.stdout is not None
        assert child.stdout.readline() == "here\n"
        found.append(child)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return found[0]


def test_a_child_of_a_process_that_is_gone_ends_at_once() -> None:
    with start(os.getppid()) as child:  # as if its parent had died before it ran
        assert child.wait(60) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts threads as parents")
def test_a_child_outlives_the_thread_that_started_it() -> None:
    with started_in_a_thread_that_ends(lasting=False) as child:
        assert child.wait(60) < 0  # what this is about
    with started_in_a_thread_that_ends(lasting=True) as child:
        assert not soon(lambda: not alive(child.pid), within_s=0.5)
        child.kill()


def test_what_is_made_elsewhere_raises_here() -> None:
    caught: list[BaseException] = []

    def fail() -> None:
        try:
            in_lasting_thread(partial(int, "x"))
        except ValueError as error:
            caught.append(error)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    assert len(caught) == 1


class Waits:
    """Garbage that waits at its end for a thread, as servers of gRPC do: no child has that thread."""

    def __init__(self, reached: Callable[[], None]) -> None:
        self.reached = reached
        self.itself = self

    def __del__(self) -> None:
        self.reached()


def test_a_child_collects_no_garbage_of_its_parent() -> None:
    parent, ends, collects = os.getpid(), list[int](), gc.isenabled()
    gc.disable()  # so that it is still there when the child begins
    Waits(lambda: ends.append(os.getpid()) if os.getpid() == parent else os._exit(9))
    child = forked(gc.collect)
    child.join(60)
    assert child.exitcode == 0
    assert not gc.isenabled()
    gc.collect()
    assert ends == [parent]
    if collects:
        gc.enable()
    child = forked(lambda: os._exit(0 if gc.isenabled() else 8))
    child.join(60)
    assert child.exitcode == 0
    assert gc.isenabled() == collects
