"""Hardware counters: whether this process may count instructions."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

from ...formulations.availability import Availability
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
_TYPE_HARDWARE, _COUNT_INSTRUCTIONS = 0, 1
_DISABLED_USER_ONLY = 1 | 1 << 5 | 1 << 6  # disabled, exclude_kernel, exclude_hv
_FD_CLOEXEC = 8

_REASONS = {
    errno.ENOENT: "there are none: virtual machines often hide them, and so do some phones",
    errno.EOPNOTSUPP: "there are none: virtual machines often hide them, and so do some phones",
    errno.ENODEV: "there are none: virtual machines often hide them, and so do some phones",
    errno.ENOSYS: "this kernel was built without perf events, or a sandbox hides them",
}


def counters_availability() -> Availability:
    """Return whether instructions of this process can be counted, by trying it."""
    number = _SYSCALL_NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None:
        return Availability(ok=False, reason=f"not known how on {platform.system()} {platform.machine()}")
    attributes = struct.pack(
        "=IIQQQQQ", _TYPE_HARDWARE, _ATTR_BYTES, _COUNT_INSTRUCTIONS, 0, 0, 0, _DISABLED_USER_ONLY
    )
    buffer = ctypes.create_string_buffer(attributes, _ATTR_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    descriptor = library.syscall(
        *map(ctypes.c_long, (number,)),
        buffer,
        *map(ctypes.c_long, (0, -1, -1, _FD_CLOEXEC)),
    )
    if descriptor < 0:
        return Availability(ok=False, reason=explain(ctypes.get_errno()))
    os.close(descriptor)
    return Availability(ok=True)


def explain(code: int, *, proc: Path = Path("/proc")) -> str:
    """Return why counters cannot be had, and what to do, for an error number of `perf_event_open`."""
    words = f"{os.strerror(code)} ({errno.errorcode.get(code, code)})"
    if code in (errno.EACCES, errno.EPERM):
        level = read_number(proc / "sys/kernel/perf_event_paranoid")
        return (
            f"{words}: kernel.perf_event_paranoid is {'unknown' if level is None else level}; "
            "`sudo sysctl kernel.perf_event_paranoid=2` permits to count one's own processes"
        )
    return f"{words}: {_REASONS.get(code, 'the kernel refuses')}"
