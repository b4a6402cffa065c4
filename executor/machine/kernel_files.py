"""Small text files in which the kernel says what there is: absent or unreadable ones are `None`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path


def read_text(path: Path) -> str | None:
    """Return the content of a file without surrounding blanks, or None where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\0 \t\n")
    except OSError:
        return None


def read_number(path: Path) -> int | None:
    """Return the whole number in a file, or None where there is none."""
    try:
        return int(read_text(path) or "")
    except ValueError:
        return None


def read_cores(path: Path) -> tuple[int, ...]:
    """Return the core numbers in a file like "0-3,8"; none where it cannot be read."""
    try:
        return parse_cores(read_text(path) or "")
    except ValueError:
        return ()


def parse_cores(text: str) -> tuple[int, ...]:
    """Return the core numbers of a list like "0-3,8", ascending."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def format_cores(numbers: Iterable[int]) -> str:
    """Return core numbers as a list like "0-3,8"."""
    ordered = sorted(numbers)
    if not ordered:
        return "none"
    starts = [ordered[0]] + [b for a, b in pairwise(ordered) if b > a + 1]
    ends = [a for a, b in pairwise(ordered) if b > a + 1] + [ordered[-1]]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


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
