"""Where this process stands in the control groups of the kernel, version 1 and 2, also both side by side."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .kernel_files import read_text


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
