"""Which processes a process has started, and their memory."""

from __future__ import annotations

import os
import re
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return the processes that a process, and these, have started."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended meanwhile
        return []
    children = [int(c) for thread in threads for c in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return [one for child in children for one in (child, *descendants(child))]


def workers(pid: int) -> set[int]:
    """Return the running processes that a process has started, without what forks some of them."""
    found = set(descendants(pid))
    servers = {child for child in found if _forks(child) and not _forks(_parent(child))}
    return {child for child in found - servers if _runs(child)}


def resident_bytes(pid: int) -> int:
    """Return the memory of a process, shared pages in parts (PSS); 0: it has ended."""
    rows = _read(f"/proc/{pid}/smaps_rollup").splitlines()
    return sum(int(row.split()[1]) * 1024 for row in rows if row.startswith(b"Pss:"))


def _runs(pid: int) -> bool:
    state = re.search(rb"^State:\t(.)", _read(f"/proc/{pid}/status"), re.MULTILINE)
    return state is not None and state[1] not in b"ZX"  # zombies, and what is gone in a moment


def _forks(pid: int) -> bool:
    return b"worker_process\0fork" in _read(f"/proc/{pid}/cmdline")


def _parent(pid: int) -> int:
    return int((_read(f"/proc/{pid}/stat").rpartition(b")")[2].split() or [b"0"] * 2)[1])


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
