"""Processes that can be told from later ones with the same number."""

from __future__ import annotations

from pathlib import Path

from .kernel_files import read_text

_PROC = Path("/proc")
_ENDED = frozenset("ZX")


def boot_id(*, proc: Path = _PROC) -> str | None:
    """Return what is different after every boot; None where the system does not say."""
    return read_text(proc / "sys/kernel/random/boot_id")


def started_at(pid: int, *, proc: Path = _PROC) -> int | None:
    """Return when a process was started, in clock ticks since the boot; None when it has ended."""
    fields = _fields(pid, proc)
    return None if fields is None else int(fields[18])


def processor_ticks(pid: int, *, proc: Path = _PROC) -> int | None:
    """Return the processor time of a process so far, all threads, in clock ticks; None when it has ended."""
    fields = _fields(pid, proc)
    return None if fields is None else int(fields[10]) + int(fields[11])


def _fields(pid: int, proc: Path) -> list[str] | None:
    """Return what follows the state in proc_pid_stat(5); None when the process has ended."""
    text = read_text(proc / str(pid) / "stat")
    if text is None:
        return None
    state, *fields = text.rpartition(")")[2].split()  # its name may hold anything, brackets too
    return None if state in _ENDED else fields
