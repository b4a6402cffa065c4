"""What tells this machine from another one, and what it was like while something was measured."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Self

from ...formulations.validation import FileContent
from .cores import Topology, read_topology, usable_cores
from .kernel_files import format_cores, processor_ticks, read_number, read_text
from .quota import find_place

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


_MICRO = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSource:
    """Where the power of a machine is read."""

    name: str  # what people call it
    files: tuple[Path, ...]
    """Counters of energy in microjoules that begin again at 0, or one sensor of power in microwatts."""
    wraps_at: tuple[int, ...] = ()
    """For each counter the value after which it begins again, microjoules; none for a sensor."""


def power_source(root: Path = Path("/")) -> PowerSource | None:
    """Return where the power of this machine can be read, or None; `root` stands for "/"."""
    found = (look(root / "sys/class") for look in (_rapl, _energy_sensors, _power_sensor))
    return next((source for source in found if source is not None), None)


def _rapl(root: Path) -> PowerSource | None:
    zones = [
        zone
        for zone in sorted(root.glob("powercap/*:*"))
        if (read_text(zone / "name") or "").startswith("package")
        and None not in (read_number(zone / "energy_uj"), read_number(zone / "max_energy_range_uj"))
    ]
    if not zones:
        return None
    return PowerSource(
        name=f"RAPL, {', '.join(str(read_text(zone / 'name')) for zone in zones)}",
        files=tuple(zone / "energy_uj" for zone in zones),
        wraps_at=tuple(read_number(zone / "max_energy_range_uj") or 0 for zone in zones),
    )


def _energy_sensors(root: Path) -> PowerSource | None:
    files = _readable(root.glob("hwmon/hwmon*/energy*_input"))
    if not files:
        return None
    # These counters have 64 bits.
    return PowerSource(name=f"hwmon, {_chips(files)}", files=files, wraps_at=(2**64,) * len(files))


def _power_sensor(root: Path) -> PowerSource | None:
    files = _readable(root.glob("hwmon/hwmon*/power*_average")) or _readable(
        root.glob("hwmon/hwmon*/power*_input")
    )
    if not files:
        return None
    supply = max(files, key=lambda path: read_number(path) or 0)
    return PowerSource(name=f"hwmon, {_chips([supply])}", files=(supply,))


def _readable(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(path for path in sorted(paths) if read_number(path) is not None)


def _chips(files: Iterable[Path]) -> str:
    return ", ".join(dict.fromkeys(read_text(path.parent / "name") or path.parent.name for path in files))


class PowerMeter:
    """Adds up what a source says: `look` is called at the beginning, now and then, and at the end."""

    def __init__(self, source: PowerSource, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._joules = self._seconds = 0.0
        self._last: tuple[float, list[int]] | None = None

    @property
    def watts(self) -> float | None:
        """Mean power between the first and the last look; None where there is none."""
        return self._joules / self._seconds if self._seconds > 0 else None

    def look(self) -> None:
        """Read the source; what was spent since the last look is added up."""
        told = [read_number(path) for path in self._source.files]
        values = [value for value in told if value is not None]
        if len(values) < len(told):  # it was taken away: what was added up until then stands
            self._last = None
            return
        now = self._clock()
        if self._last is not None:
            then, before = self._last
            self._seconds += now - then
            self._joules += self._spent(before, values, now - then)
        self._last = now, values

    def _spent(self, before: list[int], values: list[int], seconds: float) -> float:
        """Return the joules between two looks."""
        if not self._source.wraps_at:
            return seconds * (before[0] + values[0]) / 2 / _MICRO
        pairs = zip(before, values, self._source.wraps_at, strict=True)
        return sum((new - old) % most if new < old else new - old for old, new, most in pairs) / _MICRO


_EVERY_S = 0.5
"""Time between two looks at clocks and temperatures."""

_PLAUSIBLE_MILLICELSIUS = range(1, 150_000)
"""Zones that are asleep report zero, negative or absurd temperatures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState(FileContent):
    """What a machine was like for a while; what the system does not tell is None."""

    others: float | None = None
    """Share of the usable cores that other programs kept busy, 0 to 1."""
    mhz: float | None = None
    """Mean clock of the usable cores."""
    celsius: float | None = None
    """Temperature of the hottest zone."""
    watts: float | None = None
    watts_by: str = ""
    """Mean power of the machine, as it says itself, and where that was read (`power.py`); empty: nowhere."""


class MachineWatch:
    """Watches the machine inside a `with` block; `state` says afterwards what it was like.

    `processes`: numbers of the processes that are not "other programs": those that are measured, and this
    one.
    """

    def __init__(self, processes: Iterable[int], *, root: Path = Path("/")) -> None:
        self.state = MachineState()
        self._own = tuple(processes)
        self._proc = root / "proc"
        self._cores = frozenset(usable_cores())
        cpus = root / "sys/devices/system/cpu"
        self._clocks = _told(cpus / f"cpu{core}/cpufreq/scaling_cur_freq" for core in self._cores)
        self._zones = _told(sorted(root.glob("sys/class/thermal/thermal_zone*/temp")))
        self._power = power_source(root)
        self._meter = None if self._power is None else PowerMeter(self._power)
        self._mhz: list[float] = []
        self._celsius: list[float] = []
        self._over = threading.Event()
        self._looking: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._before = self._ticks()
        if self._clocks or self._zones or self._meter:
            self._looking = threading.Thread(target=self._look, daemon=True)
            self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._ticks()
        if self._looking is not None:
            self._over.set()
            self._looking.join()
        self.state = MachineState(
            others=_others(self._before, after),
            mhz=fmean(self._mhz) if self._mhz else None,
            celsius=max(self._celsius, default=None),
            watts=None if self._meter is None else self._meter.watts,
            watts_by="" if self._power is None else self._power.name,
        )

    def _look(self) -> None:
        """Look at clocks and temperatures now and then, while what is measured is at work."""
        while True:
            self._mhz += [khz / 1000 for khz in map(read_number, self._clocks) if khz is not None]
            heat = map(read_number, self._zones)
            self._celsius += [
                milli / 1000 for milli in heat if milli is not None and milli in _PLAUSIBLE_MILLICELSIUS
            ]
            if self._meter is not None:
                self._meter.look()
            if self._over.wait(_EVERY_S):
                if self._meter is not None:
                    self._meter.look()
                return

    def _ticks(self) -> tuple[int, int, int] | None:
        """Return (busy, total, our own) clock ticks; None where the system does not say."""
        cores = core_ticks(self._proc, self._cores)
        own = [processor_ticks(pid, proc=self._proc) for pid in self._own]
        if cores is None or None in own:
            return None
        return *cores, sum(filter(None, own))


def own_processes(workers: Iterable[int]) -> tuple[int, ...]:
    """Return the numbers of this process and of its workers."""
    return os.getpid(), *workers


def _told(paths: Iterable[Path]) -> Sequence[Path]:
    return [path for path in paths if read_number(path) is not None]


def _others(before: tuple[int, int, int] | None, after: tuple[int, int, int] | None) -> float | None:
    if before is None or after is None:
        return None
    busy, total, own = (later - earlier for earlier, later in zip(before, after, strict=True))
    return min(1.0, max(0.0, (busy - own) / total)) if total > 0 else None


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
