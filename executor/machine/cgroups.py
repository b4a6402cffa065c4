"""Control groups with a quota of processor time, below the group that this process is in.

Two interfaces of the kernel are spoken. In version 2 the new group is *threaded* (kernel documentation,
"Control Group v2", section "Threads"): then the group of this process may keep its processes, and every
other limit that it stands under holds for the processes in the new group too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ...formulations.errors import PlacementError
from .hierarchy import find_place
from .kernel_files import read_number, read_text, started_at

_NAME = re.compile(r"gapless-(\d+)-(\d+)-\d+")
_REMOVE_PATIENCE_S = 1.0
_REMOVE_PAUSE_S = 0.005

_ADVICE = {
    errno.EINVAL: "the group that this process is in has a tighter limit of its own: ask for less",
    errno.ENOENT: "this kernel has no quotas of processor time (CONFIG_CFS_BANDWIDTH)",
    errno.EBUSY: "the group of this process is managed by somebody else: start gapless in one of its own, "
    "e.g. `systemd-run --user --scope -p Delegate=yes gapless ...`",
}
_PERMISSION = (
    "run gapless as root (in a container: with the control groups mounted writable), or in a group that is "
    "delegated to you, e.g. `systemd-run --user --scope -p Delegate=yes gapless ...`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuGroups(ABC):
    """The place below which groups with a quota are made."""

    folder: Path  # the group of this process in the hierarchy that shares out processor time

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """Which interface of the kernel this is."""

    @abstractmethod
    def prepare(self, group: Path) -> None:
        """Make a new group fit to be given a quota."""

    @abstractmethod
    def restore(self) -> None:
        """Undo what `prepare` changed outside its group, once no group is left that needs it."""

    @abstractmethod
    def set_quota(self, group: Path, *, quota_us: int, period_us: int) -> None:
        """Give a group `quota_us` of processor time in each `period_us`, and check that it holds."""

    @abstractmethod
    def throttled_us(self, group: Path) -> int | None:
        """Return for how long processes of a group have been held back, summed over its cores."""

    def make(self, name: str, *, quota_us: int, period_us: int) -> Path:
        """Return a new group with a quota; groups of dead gapless processes are removed first.

        Raises PlacementError: it is not permitted, or the kernel refuses the quota.
        """
        group = self.folder / name
        with self._locked():
            self._sweep()
            try:
                group.mkdir()
            except OSError as error:
                raise refusal(group, error) from None
            try:
                self.prepare(group)
                self.set_quota(group, quota_us=quota_us, period_us=period_us)
            except BaseException:
                with suppress(OSError):
                    group.rmdir()
                self.restore()
                raise
        return group

    def remove(self, group: Path) -> None:
        """Remove a group once its processes are gone; what cannot be removed is swept up later."""
        until = time.monotonic() + _REMOVE_PATIENCE_S
        while not _removed(group) and time.monotonic() < until:
            time.sleep(_REMOVE_PAUSE_S)
        with self._locked():
            self.restore()

    def _sweep(self) -> None:
        for group in self.folder.glob("gapless-*"):
            owner = _NAME.fullmatch(group.name)
            if owner and started_at(int(owner[1])) != int(owner[2]):
                _removed(group)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other gapless processes from sweeping or preparing at the same time."""
        try:
            descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise refusal(self.folder, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


class CpuGroupsV1(CpuGroups):
    """Groups in the `cpu` hierarchy of version 1."""

    __slots__ = ()

    @property
    def mechanism(self) -> str:
        """Which interface of the kernel this is."""
        return "cgroup v1"

    def prepare(self, group: Path) -> None:
        """Nothing is needed."""

    def restore(self) -> None:
        """Nothing was changed."""

    def set_quota(self, group: Path, *, quota_us: int, period_us: int) -> None:
        """Give a group `quota_us` of processor time in each `period_us`, and check that it holds."""
        write_control(group / "cpu.cfs_period_us", str(period_us))
        write_control(group / "cpu.cfs_quota_us", str(quota_us))
        found = read_number(group / "cpu.cfs_quota_us"), read_number(group / "cpu.cfs_period_us")
        _require_granted(group, asked=(quota_us, period_us), found=found)

    def throttled_us(self, group: Path) -> int | None:
        """Return for how long processes of a group have been held back, summed over its cores."""
        throttled_ns = _statistic(group, "throttled_time")
        return None if throttled_ns is None else throttled_ns // 1000


class CpuGroupsV2(CpuGroups):
    """Groups in the one hierarchy of version 2."""

    __slots__ = ()

    @property
    def mechanism(self) -> str:
        """Which interface of the kernel this is."""
        return "cgroup v2"

    @property
    def _is_root(self) -> bool:
        return not (self.folder / "cgroup.type").exists()

    def prepare(self, group: Path) -> None:
        """Make it threaded, and have the group of this process share out processor time."""
        if not self._is_root:
            write_control(group / "cgroup.type", "threaded")
        if "cpu" not in (read_text(self.folder / "cgroup.subtree_control") or "").split():
            write_control(self.folder / "cgroup.subtree_control", "+cpu")

    def restore(self) -> None:
        """Stop sharing out processor time where there is no group left to get a share."""
        if not self._is_root and not any(path.is_dir() for path in self.folder.iterdir()):
            with suppress(PlacementError):
                write_control(self.folder / "cgroup.subtree_control", "-cpu")

    def set_quota(self, group: Path, *, quota_us: int, period_us: int) -> None:
        """Give a group `quota_us` of processor time in each `period_us`, and check that it holds."""
        write_control(group / "cpu.max", f"{quota_us} {period_us}")
        found = tuple((read_text(group / "cpu.max") or "").split())
        _require_granted(group, asked=(str(quota_us), str(period_us)), found=found)

    def throttled_us(self, group: Path) -> int | None:
        """Return for how long processes of a group have been held back, summed over its cores."""
        return _statistic(group, "throttled_usec")


def find_cpu_groups(*, root: Path = Path("/")) -> CpuGroups:
    """Return where groups with a quota can be made; `root` is what stands for "/"."""
    place = find_place("cpu", root=root)
    if place is None:
        raise PlacementError(
            "quotas of processor time need Linux control groups with the `cpu` controller, but no mounted "
            f"hierarchy offers it to this process: {_PERMISSION}"
        )
    return (CpuGroupsV1 if place.version == 1 else CpuGroupsV2)(folder=place.folder)


def group_name(number: int) -> str:
    """Return a name for a group of this process that tells a later one who made it."""
    pid = os.getpid()
    return f"gapless-{pid}-{started_at(pid) or 0}-{number}"


def write_control(path: Path, text: str) -> None:
    """Write a control file.

    Raises PlacementError: the kernel refuses.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY)  # never creates one: a control file that is missing is news
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise refusal(path, error, text) from None


def refusal(path: Path, error: OSError, text: str = "") -> PlacementError:
    """Return the error that says what the kernel refused, and what to do."""
    what = f"write {text!r} to {path}" if text else f"make {path}"
    code = errno.errorcode.get(error.errno or 0, str(error.errno))
    return PlacementError(
        f"quotas of processor time are not permitted here: cannot {what}: {error.strerror} ({code}); "
        f"{_ADVICE.get(error.errno or 0, _PERMISSION)}"
    )


def _removed(group: Path) -> bool:
    """Remove a group; return whether waiting for its processes to end is of no use."""
    try:
        group.rmdir()
    except OSError as error:
        return error.errno != errno.EBUSY
    return True


def _statistic(group: Path, key: str) -> int | None:
    for line in (read_text(group / "cpu.stat") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return None


def _require_granted(group: Path, *, asked: tuple[object, ...], found: tuple[object, ...]) -> None:
    if asked != found:
        raise PlacementError(f"{group}: asked for a quota and period (us) of {asked}, but found {found}")
