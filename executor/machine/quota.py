"""Quotas of processor time: slower units, emulated by the kernel (cgroup v1 and v2)."""

from __future__ import annotations

from typing import Self

from ...formulations.errors import PlacementError


class CpuQuota:
    """A control group with a quota of processor time; freed by `close`."""

    @classmethod
    def create(cls, permille: int, *, cores: int) -> Self:
        """Make a group whose processes together get `permille` of the time of `cores` cores.

        Raises
        ------
        PlacementError
            This machine, or this user, may not make one.
        """
        raise PlacementError(f"quotas are not there yet: {permille} permille of {cores} cores")

    def add(self, pid: int) -> None:
        """Put a process, with its threads, under the quota."""

    def close(self) -> None:
        """Remove the group. Can be called twice."""
