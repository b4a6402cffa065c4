"""Quotas of processor time: slower units, emulated by the kernel.

What a quota is like was measured on one core (kernel 6.18, tick of 4 ms; `benchmarks/quotas.py`, and MNN):

* Work without end gets what was asked within 2 % when the period is two ticks. With a period of 2 ms MNN
  reached 42 % of its speed where 500 permille were asked, with 4 ms 49 %, with 8 ms 50 to 52 %: the kernel
  looks at running tasks only at its ticks, and time that is not called for in its period is lost. With
  other processes on the core, a period of one tick got 63 to 100 % of the quota, one of two ticks 97 to
  100 %. So the period is two ticks, or longer where the quota would fall below the kernel's least.
* A quota limits time, not speed. Work shorter than the quota of a period often runs at full speed, and then
  the next one waits: with 500 permille, a network of 0.9 ms took 0.9 ms in the median and 1.8 ms in the
  mean. Trust means over many periods, never medians of short runs. A unit that rests between its requests
  seems faster than a slow core would be; one that never rests (the bottleneck) does not.
* Several threads that wait for each other are held back at different times and lose more than was asked:
  two threads with 500 permille reached 50 to 88 % of half their speed. Emulate units of one core.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from pathlib import Path
from typing import Self

from ...formulations.availability import Availability
from ...formulations.errors import PlacementError
from .cgroups import CpuGroups, find_cpu_groups, group_name, write_control
from .kernel_files import read_text

MIN_QUOTA_US = 1_000
"""Least quota that the kernel takes."""

_CLOCK_MONOTONIC_COARSE = 6
_numbers = itertools.count()


class CpuQuota:
    """A control group with a quota of processor time; freed by `close`.

    `quota_us`, `period_us`: its processes together get the quota in each period.
    """

    def __init__(self, groups: CpuGroups, *, quota_us: int, period_us: int) -> None:
        self.quota_us = quota_us
        self.period_us = period_us
        self._groups = groups
        self._group = groups.make(group_name(next(_numbers)), quota_us=quota_us, period_us=period_us)

    @classmethod
    def create(cls, permille: int, *, cores: int) -> Self:
        """Make a group whose processes together get `permille` of the time of `cores` cores.

        Raises PlacementError: this machine, or this user, may not make one.
        """
        period_us = choose_period_us(permille * cores, tick_us=kernel_tick_us())
        return cls(find_cpu_groups(), quota_us=permille * cores * period_us // 1000, period_us=period_us)

    @property
    def mechanism(self) -> str:
        """Which interface of the kernel is used: "cgroup v1" or "cgroup v2"."""
        return self._groups.mechanism

    def add(self, pid: int) -> None:
        """Put a process, with its threads, under the quota."""
        write_control(self._group / "cgroup.procs", str(pid))
        if self._group.name not in (read_text(Path(f"/proc/{pid}/cgroup")) or ""):
            raise PlacementError(f"process {pid} is not in {self._group} although it was put there")

    def throttled_us(self) -> int | None:
        """Return for how long its processes have been held back, summed over cores; None: not known."""
        return self._groups.throttled_us(self._group)

    def close(self) -> None:
        """Remove the group, whose processes have ended. Can be called twice."""
        self._groups.remove(self._group)


def quota_availability() -> Availability:
    """Return whether quotas are permitted here, by making a group and removing it at once."""
    if sys.platform != "linux":
        return Availability(ok=False, reason="quotas of processor time are made by Linux control groups")
    try:
        quota = CpuQuota.create(500, cores=1)
    except PlacementError as error:
        return Availability(ok=False, reason=str(error))
    quota.close()
    return Availability(ok=True, version=quota.mechanism)


def choose_period_us(permille: int, *, tick_us: int) -> int:
    """Return the shortest period that is kept: two ticks, or what the least quota needs.

    `permille`: share of one core, may be above 1000.
    """
    return max(2 * tick_us, math.ceil(MIN_QUOTA_US * 1000 / permille))


def kernel_tick_us() -> int:
    """Return how often the kernel looks at running tasks, microseconds."""
    return max(1000, round(time.clock_getres(_CLOCK_MONOTONIC_COARSE) * 1e6))
