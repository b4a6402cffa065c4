"""Power that this machine says it draws, where it counts that and lets us read it.

Three places are looked at, and the first that can be read counts: the energy counters of RAPL (packages of
processors, /sys/class/powercap, which most systems let only root read), energy counters of hwmon, and the
largest power that a sensor of hwmon tells: boards have one for their supply, and others for parts of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from .kernel_files import read_number, read_text

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
