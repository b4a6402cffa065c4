"""What tells this machine from another one; nothing in it identifies its owner or this very specimen."""

from __future__ import annotations

import hashlib
import math
import platform
from dataclasses import dataclass
from pathlib import Path

from ...formulations.validation import FileContent
from .cores import Topology, read_topology
from .kernel_files import format_cores, read_text
from .memory import total_bytes

_GIB = 2**30

_UNKNOWN = "unknown processor"
_MODEL_KEYS = ("model name", "Hardware", "cpu model", "cpu", "uarch")
"""Keys of `/proc/cpuinfo` that name the processor, by architecture; "Serial" is never looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFingerprint(FileContent):
    """The machine as far as it matters for measurements."""

    model: str  # name of the processor or board
    architecture: str  # machine type, e.g. "x86_64" or "aarch64"
    clusters: tuple[str, ...]  # one line for each cluster of usable cores
    cores: tuple[int, ...]  # numbers of the usable cores
    memory_bytes: int | None  # main memory, or None
    system: str  # kernel and its release
    python: str  # version of Python

    @property
    def digest(self) -> str:
        """Twelve hexadecimal digits that depend on the hardware and the usable cores alone.

        Memory counts in whole GiB: what the kernel keeps for itself differs a little between boots.
        """
        memory_gib = None if self.memory_bytes is None else math.ceil(self.memory_bytes / _GIB)
        text = repr((self.model, self.architecture, self.clusters, self.cores, memory_gib))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def __str__(self) -> str:
        memory = [] if self.memory_bytes is None else [f"{self.memory_bytes / _GIB:.1f} GiB"]
        cores = f"cores {format_cores(self.cores)}: {'; '.join(self.clusters)}"
        parts = [self.model, self.architecture, cores, *memory, self.system, f"Python {self.python}"]
        return f"{', '.join(parts)} [{self.digest}]"


def fingerprint(*, topology: Topology | None = None, root: Path = Path("/")) -> DeviceFingerprint:
    """Return the fingerprint of this machine.

    `topology`: its usable cores; None: as `read_topology` finds them.
    """
    found = read_topology(root=root / "sys") if topology is None else topology
    return DeviceFingerprint(
        model=_model(root),
        architecture=platform.machine(),
        clusters=tuple(map(str, found.clusters)),
        cores=tuple(core.number for core in found.cores),
        memory_bytes=total_bytes(root=root),
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
    )


def _model(root: Path) -> str:
    """Return the name of the board (phones, single-board computers) or of the processor."""
    board = read_text(root / "proc/device-tree/model")
    named: dict[str, str] = {}
    parts: dict[str, None] = {}
    for line in (read_text(root / "proc/cpuinfo") or "").splitlines():
        key, value = (part.strip() for part in line.partition(":")[::2])
        if key in _MODEL_KEYS and value:
            named.setdefault(key, value)
        elif key == "CPU part":
            parts[f"part {value}"] = None
    names = [board, *map(named.get, _MODEL_KEYS), " + ".join(parts), platform.processor(), _UNKNOWN]
    name = next(filter(None, names))
    return "".join(char if char.isprintable() else " " for char in name)[:100].strip()
