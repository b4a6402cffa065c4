"""Main memory: how much there is, and how much of it models may fill."""

from __future__ import annotations

from pathlib import Path

from .hierarchy import find_place
from .kernel_files import read_number, read_text

RESERVE_SHARE = 8
"""One part in this many of the memory is left to the rest of the system."""

_ROOT = Path("/")
_LIMIT_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}


def total_bytes(*, root: Path = _ROOT) -> int | None:
    """Return the size of the main memory; None where the system does not say."""
    for line in (read_text(root / "proc/meminfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key == "MemTotal":
            return int(value.split()[0]) * 1024
    return None


def usable_bytes(*, root: Path = _ROOT) -> int | None:
    """Return how much memory models may fill: the whole less a reserve, or the limit of a container.

    The *available* memory of the moment would make each detection another platform.
    """
    total = total_bytes(root=root)
    known = _limits(root)
    if total is not None:
        known.append(total - total // RESERVE_SHARE)
    return min(known, default=None)


def _limits(root: Path) -> list[int]:
    """Return the limits of the control groups that this process is in."""
    place = find_place("memory", root=root)
    if place is None:
        return []
    found = (read_number(folder / _LIMIT_FILES[place.version]) for folder in place.upwards)
    return [limit for limit in found if limit is not None]
