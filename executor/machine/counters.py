"""Hardware counters: whether this process may count instructions and the like, and counting them.

The kernel's own interface is used (`perf_event_open`, see its manual page): three calls of the C library
are less than any package around them.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...formulations.availability import Availability
from ...formulations.errors import ProfilingError
from ..closing import Closing
from .kernel_files import read_number

_SYSCALL_NUMBERS = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "armv7l": 364,
    "i686": 336,
    "ppc64le": 319,
    "s390x": 331,
}
"""Numbers of `perf_event_open` by machine type (kernel: arch/*/**/syscall*.tbl)."""

_ATTR_BYTES = 112
_WITH_TIMES = 1 | 1 << 1  # how long it was enabled, and how long it really counted
_USER_WITH_THREADS = 1 << 1 | 1 << 5 | 1 << 6  # inherit, exclude_kernel, exclude_hv
_FD_CLOEXEC = 8
_READING = struct.Struct("=QQQ")

_REASONS = {
    errno.ENOENT: "there are none: virtual machines often hide them, and so do some phones",
    errno.EOPNOTSUPP: "there are none: virtual machines often hide them, and so do some phones",
    errno.ENODEV: "there are none: virtual machines often hide them, and so do some phones",
    errno.ENOSYS: "this kernel was built without perf events, or a sandbox hides them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterEvent:
    """Something that the kernel can count.

    `kind`, `number`: `type` and `config` of `perf_event_attr`; kind 0 is the processor's generic events.
    """

    name: str  # for people
    number: int
    kind: int = 0


CYCLES = CounterEvent(name="cycles", number=0)
INSTRUCTIONS = CounterEvent(name="instructions", number=1)
CACHE_REFERENCES = CounterEvent(name="cache references", number=2)
CACHE_MISSES = CounterEvent(name="cache misses", number=3)
STALLED_BACKEND = CounterEvent(name="stalled cycles of the backend", number=8)


class Counters(Closing):
    """Counts events of this thread, and of all threads that it starts from now on; a context manager.

    Raises ProfilingError: the system does not let this process count one of them; the message says why, and
    what to do.
    """

    def __init__(self, events: Sequence[CounterEvent]) -> None:
        self._open: dict[CounterEvent, int] = {}
        try:
            for event in events:
                self._open[event] = _open_event(event)
        except BaseException:
            self.close()
            raise

    def count(self, work: Callable[[], object]) -> Mapping[CounterEvent, float]:
        """Do something and return how often each event happened meanwhile.

        Where there are more events than counters the kernel takes turns, and what is returned is
        extrapolated from the time for which an event was really counted.

        Raises ProfilingError: an event was not counted at all: cores of different clusters have counters of
        their own.
        """
        before = self._read()
        work()
        after = self._read()
        return {event: _difference(event, before[event], after[event]) for event in self._open}

    def close(self) -> None:
        """Stop counting. Can be called twice."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _read(self) -> dict[CounterEvent, tuple[int, int, int]]:
        return {
            event: _READING.unpack(os.read(descriptor, _READING.size))
            for event, descriptor in self._open.items()
        }


def counters_availability(events: Sequence[CounterEvent] = (INSTRUCTIONS,)) -> Availability:
    """Return whether some events of this process can be counted, by trying it."""
    try:
        Counters(events).close()
    except ProfilingError as error:
        return Availability(ok=False, reason=str(error))
    return Availability(ok=True)


def explain_errno(code: int, *, proc: Path = Path("/proc")) -> str:
    """Return why counters cannot be had, and what to do, for an error number of `perf_event_open`."""
    words = f"{os.strerror(code)} ({errno.errorcode.get(code, code)})"
    if code in (errno.EACCES, errno.EPERM):
        level = read_number(proc / "sys/kernel/perf_event_paranoid")
        return (
            f"{words}: kernel.perf_event_paranoid is {'unknown' if level is None else level}; "
            "`sudo sysctl kernel.perf_event_paranoid=2` permits to count one's own processes"
        )
    return f"{words}: {_REASONS.get(code, 'the kernel refuses')}"


def _open_event(event: CounterEvent) -> int:
    """Return a descriptor that counts an event of this thread, from now on."""
    number = _SYSCALL_NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None:
        raise ProfilingError(
            f"{event.name}: not known how to count on {platform.system()} {platform.machine()}"
        )
    attributes = struct.pack(
        "=IIQQQQQ", event.kind, _ATTR_BYTES, event.number, 0, 0, _WITH_TIMES, _USER_WITH_THREADS
    )
    buffer = ctypes.create_string_buffer(attributes, _ATTR_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    descriptor: int = library.syscall(
        *map(ctypes.c_long, (number,)),
        buffer,
        *map(ctypes.c_long, (0, -1, -1, _FD_CLOEXEC)),
    )
    if descriptor < 0:
        raise ProfilingError(f"{event.name} cannot be counted: {explain_errno(ctypes.get_errno())}")
    return descriptor


def _difference(event: CounterEvent, before: tuple[int, int, int], after: tuple[int, int, int]) -> float:
    """Return how often an event happened between two readings (count, time enabled, time counting)."""
    counted, enabled, running = (late - early for early, late in zip(before, after, strict=True))
    if running == 0 and enabled > 0:
        raise ProfilingError(
            f"{event.name} were never counted: the cores that the work ran on have counters of their own, "
            "or another program holds all counters"
        )
    return counted * (enabled / running) if running else 0.0
