"""Looking at processes, and killing one."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.processes import descendants, workers

__all__ = [
    "alive",
    "assert_nothing_outlives",
    "descendants",
    "many_descriptors",
    "soon",
    "workers",
]


def alive(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be reaped does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def soon(condition: Callable[[], bool], within_s: float = 60.0) -> bool:
    """Return whether something becomes true in time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


def assert_nothing_outlives(code: str) -> None:
    """Run a program that prints its descendants, kill it, and check that they are gone soon."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert children
    assert soon(lambda: not any(map(alive, children)), within_s=10)


@contextmanager
def many_descriptors(count: int = 1100) -> Iterator[None]:
    """Hold open files until what is opened now has a number beyond the reach of `select.select`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count + 500:
        pytest.skip(f"at most {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count + 500), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]
    try:
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
