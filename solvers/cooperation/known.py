"""What is known of the quantities of every plan that has some chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...formulations.cooperation.plans import Parts
from ...formulations.cooperation.quantities import TERMS
from ...formulations.cooperation.service import Part, Service
from ...formulations.cooperation.tables import Groups
from ...formulations.expr import Interval, IntVar, Variable
from ...formulations.terms import Quantity as Q

_OF_DEVICE: dict[str, str] = {Q.BUSY: "compute_us", Q.EXTRA: "extra_permille", Q.MEMORY: "memory_bytes"}
_FIELDS = {info.field: name for name, info in TERMS.items()}


class Known:
    """The least and the greatest value that a quantity can still take."""

    def __init__(self, groups: Groups, parts: Parts, bounds: Mapping[str, int]) -> None:
        self._groups, self._parts, self._bounds = groups, parts, bounds
        self._own: dict[int, Part] = {device: part for part in parts for device in part[2]}

    def __call__(self, variable: Variable) -> Interval:
        """Return the interval of a quantity."""
        name, high = variable.name, variable.high if isinstance(variable, IntVar) else 1
        value = None
        if name in _READ:
            value = _READ[name](self, *variable.args)
        elif name in _OF_DEVICE:
            value = self._number(_OF_DEVICE[name], *variable.args)
        if value is not None:
            return value, value
        return max(0, min(high, self._bounds.get(_FIELDS.get(name, ""), 0))), high

    def _at(self, layer: int) -> Part | None:
        return next((part for part in self._parts if part[0] <= layer < part[1]), None)

    def _on(self, layer: int, device: int) -> int | None:
        part = self._at(layer)
        if part is not None:
            return int(device in part[2])
        return 0 if device in self._own else None

    def _uses(self, device: int) -> int | None:
        return 1 if device in self._own else None

    def _leads(self, device: int) -> int | None:
        return int(self._service(device).leader == device) if device in self._own else None

    def _together(self, one: int, other: int) -> int | None:
        found = self._own.get(one, self._own.get(other))
        return None if found is None else int(one in found[2] and other in found[2])

    def _size(self, layer: int) -> int | None:
        part = self._at(layer)
        return None if part is None else len(part[2])

    def _number(self, field: str, device: int) -> int | None:
        if device not in self._own:
            return None
        values: tuple[int, ...] = getattr(self._service(device), field)
        return values[self._own[device][2].index(device)]

    def _service(self, device: int) -> Service:
        service = self._groups.service(self._own[device])
        assert service is not None
        return service


_READ: dict[str, Callable[..., int | None]] = {
    Q.ON: Known._on,
    Q.USES: Known._uses,
    Q.LEADS: Known._leads,
    Q.TOGETHER: Known._together,
    Q.SIZE: Known._size,
}
