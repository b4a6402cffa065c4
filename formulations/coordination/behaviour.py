"""How units behave at work, beyond the table of costs: in company, when cold, when hot, and their powers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import InvalidProblemError
from ..hardware import Platform, check_sharing
from ..validation import Defects, FileContent


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatModel(FileContent):
    """Temperature of a unit that follows its power: dT/dt = (power x resistance - (T - ambient)) / time."""

    kelvin_per_w: float
    """How much warmer than its surroundings it becomes for each watt, in the end."""
    time_s: float
    """After this time 63 % of that is reached."""
    limit_c: float
    """At this temperature it is lost."""
    back_c: float
    """At this temperature it is back."""
    ambient_c: float = 25.0
    """Temperature of the surroundings, Celsius."""

    def __post_init__(self) -> None:
        defects = Defects("heat model")
        for field in ("kelvin_per_w", "time_s"):
            if not 0 < getattr(self, field) < MOST_HEAT:
                defects.add(f"{field} is {getattr(self, field)}, must be above 0 and below {MOST_HEAT:g}")
        if not -100 <= self.ambient_c <= self.back_c <= self.limit_c <= MOST_HEAT:
            defects.add("temperatures must ascend: ambient_c, back_c, limit_c")
        defects.raise_as(InvalidProblemError)


MOST_HEAT = 1e6
"""Larger numbers in a heat model are a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitBehaviour(FileContent):
    """One unit at work."""

    unit: str
    """Its name."""
    sharing_permille: tuple[int, ...] = ()
    """How long one of 1, 2, 3, ... inferences at the same time takes, in permille of its time alone (Band,
    Table 1). Behind the last number it grows by the same share for each more. Empty: in turns, two take twice
    as long."""
    busy_mw: int | None = None
    idle_mw: int | None = None
    """Its power at work, and while it waits, milliwatts; None: not known."""
    cold_permille: int = 1000
    """Time of a chunk that starts after a long idle time, in permille of that when warm (Band, Fig. 7)."""
    cold_after_us: int = 1_000_000
    """Idle time after which it is as slow as that; in between it grows in proportion."""
    tail_permille: int = 1000
    """Time of a chunk in the tail, in permille of the usual one (Band, Fig. 7)."""
    tail_share_permille: int = 0
    """How many of a thousand chunks are in the tail; which ones is drawn."""
    heat: HeatModel | None = None
    """None: it does not become too hot."""

    def __post_init__(self) -> None:
        defects = Defects(f"behaviour of unit {self.unit!r}")
        defects.check_name("unit", self.unit)
        check_sharing(defects, self.sharing_permille)
        for field in ("busy_mw", "idle_mw"):
            if (value := getattr(self, field)) is not None:
                defects.check_count(field, value)
        for field in ("cold_permille", "tail_permille"):
            defects.check_count(field, getattr(self, field), least=1000)
        defects.check_count("cold_after_us", self.cold_after_us, least=1)
        if not 0 <= self.tail_share_permille <= 1000:
            defects.add(f"tail_share_permille is {self.tail_share_permille}, must be from 0 to 1000")
        if self.heat is not None and self.busy_mw is None:
            defects.add("a heat model needs busy_mw")
        defects.raise_as(InvalidProblemError)

    def shared_permille(self, count: int) -> int:
        """Return how long one of `count` inferences at the same time takes, in permille of its time alone."""
        known = self.sharing_permille
        if count <= len(known):
            return known[count - 1]
        return 1000 * count if not known else round(known[-1] * count / len(known))


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour(FileContent):
    """How the units of one platform behave at work; units that are not listed have the defaults."""

    platform: str
    """Name of the platform."""
    units: tuple[UnitBehaviour, ...] = ()
    """Its units."""
    base_mw: int | None = None
    """Power of the rest of the device; None: not known."""
    source: str = ""
    """Where the numbers come from, and which are estimated."""

    def __post_init__(self) -> None:
        defects = Defects(f"behaviour of {self.platform!r}")
        defects.check_name("platform", self.platform)
        defects.check_unique("units", [unit.unit for unit in self.units])
        if self.base_mw is not None:
            defects.check_count("base_mw", self.base_mw)
        defects.raise_as(InvalidProblemError)

    def energy_mj(self, busy_us: Mapping[str, float], time_us: float) -> float | None:
        """Return the energy of the device in millijoule; None: the power of a unit that worked is not known.

        `busy_us`: how long something ran on each unit. `time_us`: how long it took in all.
        """
        units = [self.of(unit) for unit in busy_us]
        unknown = {unit.unit for unit in units if unit.busy_mw is None}
        if len(unknown) == len(units) or any(busy_us[name] for name in unknown):
            return None
        worked = sum(
            (unit.busy_mw or 0) * busy_us[unit.unit] + (unit.idle_mw or 0) * (time_us - busy_us[unit.unit])
            for unit in units
        )
        return ((self.base_mw or 0) * time_us + worked) / 1e6

    def on(self, platform: Platform) -> Behaviour:
        """Return the same, where the units of a platform say what is not known of them here."""
        own = []
        for unit in platform.units:
            known = self.of(unit.name)
            busy_mw, idle_mw = known.busy_mw, known.idle_mw
            if busy_mw is None:
                busy_mw, idle_mw = unit.power_mw, unit.idle_mw if idle_mw is None else idle_mw
            sharing = known.sharing_permille or unit.sharing_permille
            own.append(replace(known, busy_mw=busy_mw, idle_mw=idle_mw, sharing_permille=sharing))
        others = (each for each in self.units if each.unit not in platform.unit_names)
        return replace(self, units=(*own, *others))

    def of(self, unit: str) -> UnitBehaviour:
        """Return the behaviour of a unit."""
        return next((each for each in self.units if each.unit == unit), UnitBehaviour(unit=unit))
