"""Quotas of processor time: slower units, emulated by control groups of the kernel.

Control groups with a quota of processor time, below the group that this process is in. Two interfaces of the
kernel are spoken. In version 2 the new group is *threaded* (kernel documentation, "Control Group v2", section
"Threads"): then the group of this process may keep its processes, and every other limit that it stands under
holds for the processes in the new group too.

Quotas of processor time: slower units, emulated by the kernel. What a quota is like was measured on one core
(kernel 6.18, tick of 4 ms; `benchmarks/quotas.py`, and MNN):

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

import errno
import fcntl
import itertools
import math
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...formulations.availability import Availability
from ...formulations.errors import PlacementError
from .kernel_files import read_number, read_text, started_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The group of this process in the hierarchy of one controller."""

    version: int
    top: Path  # where the hierarchy is mounted
    folder: Path  # the group: `top`, or a folder below it

    @property
    def upwards(self) -> Iterator[Path]:
        """The group, and the groups that it is in."""
        for folder in (self.folder, *self.folder.parents):
            yield folder
            if folder == self.top:
                return


def find_place(controller: str, *, root: Path = Path("/")) -> Place | None:
    """Return the group of this process that a controller ("cpu", "memory") governs.

    None: no mounted hierarchy offers the controller to this process.
    """
    own = _own_groups(read_text(root / "proc/self/cgroup") or "")
    for mount in _mounts(read_text(root / "proc/self/mountinfo") or ""):
        key = controller if mount.version == 1 else ""
        if key not in own or (mount.version == 1 and controller not in mount.options):
            continue
        top = root / mount.point.lstrip("/")
        place = Place(version=mount.version, top=top, folder=top / mount.inside(own[key]))
        offered = (read_text(place.folder / "cgroup.controllers") or "").split()
        if mount.version == 1 or controller in offered:
            return place
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    version: int
    origin: str
    point: str
    options: tuple[str, ...]

    def inside(self, group: str) -> str:
        """Return the path of a group below the mount, which may show a part of the hierarchy only."""
        path = os.path.relpath(group, self.origin)
        return "" if path.split("/")[0] in (".", "..") else path


def _mounts(mountinfo: str) -> Iterator[_Mount]:
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        version = {"cgroup": 1, "cgroup2": 2}.get(kind[0] if kind else "")
        if version is not None:
            yield _Mount(
                version=version,
                origin=_unescaped(fields[3]),
                point=_unescaped(fields[4]),
                options=tuple(kind[-1].split(",")),
            )


def _own_groups(text: str) -> dict[str, str]:
    """Return the group of this process by controller; "" stands for the hierarchy of version 2."""
    found = {}
    for line in text.splitlines():
        _, controllers, group = line.split(":", 2)
        found.update(dict.fromkeys(controllers.split(","), group))
    return found


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


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
