"""Events that take units away and bring them back: a file that names them, and zones that become too hot."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Protocol, Self

from ...formulations.coordination.behaviour import Behaviour
from ...formulations.coordination.truth import Warmth
from ...formulations.errors import InvalidInputError, RefusedRequestError
from ..machine.kernel_files import read_text
from ..progress import Report, Step, silent
from .coordinator import Coordinator

INTERVAL_S = 1.0
"""How often somebody looks."""

COOLER_C = 10.0
"""So much cooler than its limit a zone has to become before its unit is back."""


class Source(Protocol):
    """Says which units are to be away."""

    why: str
    """In words."""

    finish: bool
    """Whether what units run goes on to its end when they leave."""

    def away(self) -> set[str]:
        """Return their names."""
        ...


@dataclass(slots=True)
class ControlFile:
    """A file that names units that are to be away, one a line; without it none are."""

    path: Path
    why: str = "named in the control file"
    finish: bool = False

    def away(self) -> set[str]:
        """Return the names in the file."""
        return set((read_text(self.path) or "").split("\n")) - {""}


@dataclass(slots=True)
class HotZone:
    """A unit that is too hot, as the kernel measures it.

    `limit_c`, `back_c`: at the first it is away, at the second it is back.
    """

    unit: str
    path: Path  # where its temperature is told, in thousandths of a degree Celsius
    limit_c: float
    back_c: float
    why: str = "too hot"
    finish: bool = False
    _hot: bool = field(default=False, init=False)

    @classmethod
    def of(
        cls, unit: str, zone: str, limit_c: float, rest_kelvin: float | None = None, *, root: Path = Path("/")
    ) -> Self:
        """Return the zone of a name, e.g. "thermal_zone0", or of a type, e.g. "cpu-big-thermal".

        `rest_kelvin`: so far below the limit the unit rests; None: it is lost at the limit.
        """
        zones = sorted((root / "sys/class/thermal").glob("thermal_zone*"))
        names = {(read_text(path / "type") or "").strip(): path for path in reversed(zones)}
        names |= {path.name: path for path in zones}
        if zone not in names or read_text(names[zone] / "temp") is None:
            there = ", ".join(sorted(names)) or "none at all"
            raise InvalidInputError(f"no thermal zone {zone!r} that tells its temperature; there are {there}")
        temperature = names[zone] / "temp"
        if rest_kelvin is None:
            return cls(unit, temperature, limit_c, limit_c - COOLER_C)
        early_c = limit_c - rest_kelvin
        return cls(unit, temperature, early_c, early_c - COOLER_C, why="rests", finish=True)

    def away(self) -> set[str]:
        """Return the unit while it is too hot."""
        text = (read_text(self.path) or "").strip()
        if text.lstrip("-").isdigit():
            self._hot = int(text) / 1000 >= (self.back_c if self._hot else self.limit_c)
        return {self.unit} if self._hot else set()


class ModelledHeat:
    """Units that are too hot by a model: their temperatures follow what they have worked (`HeatModel`).

    `rest_kelvin`: so far below the limit a unit rests; None: it is lost at the limit.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        behaviour: Behaviour,
        rest_kelvin: float | None = None,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.why = "too hot by its model" if rest_kelvin is None else "rests"
        self.finish = rest_kelvin is not None
        self._coordinator, self._clock = coordinator, clock
        self._at_s = self._begin_s = clock()
        self._warmth: dict[str, Warmth] = {}
        self._busy_us: dict[str, float] = {}
        platform = coordinator.platform
        for unit, place in zip(platform.units, platform.places, strict=True):
            own = behaviour.of(unit.worker_of or unit.name)
            if own.heat is not None and platform.units[place] is unit:
                self._warmth[unit.name] = Warmth(own, own.heat, own.heat.limit_c - (rest_kelvin or 0.0))

    def away(self) -> set[str]:
        """Return the units that are too hot now."""
        platform, now_s = self._coordinator.platform, self._clock()
        busy_us = dict.fromkeys(self._warmth, 0.0)
        for counts, place in zip(self._coordinator.statistics().units, platform.places, strict=True):
            if (name := platform.unit_names[place]) in busy_us:
                busy_us[name] += counts.busy_us
        for name, warmth in self._warmth.items():
            worked_us = min(busy_us[name] - self._busy_us.get(name, 0.0), 1e6 * (now_s - self._at_s))
            before_us = 1e6 * (self._at_s - self._begin_s)
            warmth.work(before_us, busy=True)
            warmth.work(before_us + worked_us, busy=False)
            now_c = warmth.at(1e6 * (now_s - self._begin_s))
            warmth.hot = now_c >= (warmth.back_c if warmth.hot else warmth.limit_c)
        self._busy_us, self._at_s = busy_us, now_s
        return {name for name, warmth in self._warmth.items() if warmth.hot}


class UnitWatch:
    """Looks at sources now and then, and withdraws and restores units of a coordinator; a context manager."""

    def __init__(
        self,
        coordinator: Coordinator,
        sources: Sequence[Source],
        *,
        interval_s: float = INTERVAL_S,
        report: Report = silent,
    ) -> None:
        self._coordinator = coordinator
        self._sources = sources
        self._interval_s = interval_s
        self._report = report
        self._away: set[tuple[str, str]] = set()  # units, and why
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="gapless units", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more. Can be called twice."""
        self._ended.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        try:
            while True:
                self._look()
                if self._ended.wait(self._interval_s if self._sources else None):
                    return
        except RefusedRequestError:
            return  # the coordinator is closed

    def _look(self) -> None:
        """Give a unit that several sources want away for one reason back when none of them does any more."""
        now = {(unit, source.why): source.finish for source in self._sources for unit in source.away()}
        before, self._away = self._away, {*now}
        for unit, why in sorted(before ^ self._away):
            leaves = (unit, why) in now
            try:
                if leaves:
                    self._coordinator.withdraw(unit, why=why, finish=now[unit, why])
                else:
                    self._coordinator.restore(unit, why=why)
            except InvalidInputError as error:
                self._report(Step(text=f"{why}: {error}"))
            else:
                self._report(Step(text=f"unit {unit!r} {'is away: ' + why if leaves else 'is back'}"))
