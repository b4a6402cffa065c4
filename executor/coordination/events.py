"""Events that take units away and bring them back: a file that names them, and zones that become too hot."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, Self

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

    def away(self) -> set[str]:
        """Return their names."""
        ...


@dataclass(slots=True)
class ControlFile:
    """A file that names units that are to be away, one a line; without it none are."""

    path: Path
    why: str = "named in the control file"

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
    _hot: bool = field(default=False, init=False)

    @classmethod
    def of(cls, unit: str, zone: str, limit_c: float, *, root: Path = Path("/")) -> Self:
        """Return the zone of a name, e.g. "thermal_zone0", or of a type, e.g. "cpu-big-thermal"."""
        zones = sorted((root / "sys/class/thermal").glob("thermal_zone*"))
        names = {(read_text(path / "type") or "").strip(): path for path in reversed(zones)}
        names |= {path.name: path for path in zones}
        if zone not in names or read_text(names[zone] / "temp") is None:
            there = ", ".join(sorted(names)) or "none at all"
            raise InvalidInputError(f"no thermal zone {zone!r} that tells its temperature; there are {there}")
        return cls(unit, names[zone] / "temp", limit_c, limit_c - COOLER_C)

    def away(self) -> set[str]:
        """Return the unit while it is too hot."""
        text = (read_text(self.path) or "").strip()
        if text.lstrip("-").isdigit():
            self._hot = int(text) / 1000 >= (self.back_c if self._hot else self.limit_c)
        return {self.unit} if self._hot else set()


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
        self._away: dict[str, set[str]] = {}
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
                for source in self._sources:
                    self._look(source)
                if self._ended.wait(self._interval_s if self._sources else None):
                    return
        except RefusedRequestError:
            return  # the coordinator is closed

    def _look(self, source: Source) -> None:
        before, now = self._away.get(source.why, set()), source.away()
        self._away[source.why] = now
        for unit in sorted(before ^ now):
            leaves = unit in now
            try:
                change = self._coordinator.withdraw if leaves else self._coordinator.restore
                change(unit, why=source.why)
            except InvalidInputError as error:
                self._report(Step(text=f"{source.why}: {error}"))
            else:
                self._report(Step(text=f"unit {unit!r} {'is away: ' + source.why if leaves else 'is back'}"))
