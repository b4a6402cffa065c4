"""How busy this machine is: measurements on a busy one mean little."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from .cores import usable_cores
from .kernel_files import read_text

_IDLE_FIELDS = (3, 4)  # idle, iowait: see proc_stat(5)
_GUEST_FIELDS = 8  # from here on, time that user and nice hold already


def machine_load(
    *, interval_s: float = 0.2, cores: Iterable[int] | None = None, proc: Path = Path("/proc")
) -> float | None:
    """Return which share of the usable cores is busy, by all processes together, 0 to 1.

    `interval_s`: for how long to look; the kernel counts in hundredths of a second. `cores`: their numbers;
    None: those that this process may use. `proc`: where the kernel's `proc` files lie.
    None: the system does not say (Android does not, to apps).
    """
    watched = frozenset(usable_cores() if cores is None else cores)
    before = core_ticks(proc, watched)
    time.sleep(interval_s)
    after = core_ticks(proc, watched)
    if before is None or after is None:
        return None
    busy, total = (later - earlier for earlier, later in zip(before, after, strict=True))
    return busy / total if total > 0 else None


def core_ticks(proc: Path, cores: frozenset[int]) -> tuple[int, int] | None:
    """Return (busy, total) clock ticks of some cores since the boot; None where the system does not say."""
    busy = total = 0
    for line in (read_text(proc / "stat") or "").splitlines():
        name, *fields = line.split()
        number = name.removeprefix("cpu")
        if number.isdigit() and int(number) in cores:
            ticks = [int(field) for field in fields[:_GUEST_FIELDS]]
            total += sum(ticks)
            busy += sum(ticks) - sum(ticks[index] for index in _IDLE_FIELDS)
    return (busy, total) if total else None
