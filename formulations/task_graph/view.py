"""What a rule can say about any schedule of tasks."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolExpr, BoolVar, IntVar, any_of
from ..nearness import meant
from ..terms import Quantities
from .quantities import QUANTITIES
from .quantities import ScheduleQuantity as Q
from .tables import TaskTables

LayerRef = str | int
"""A layer by name or by index."""


class ScheduleView:
    """Atoms of rules about schedules; every method returns an expression.

    Layers are given by name or index, units by name.
    """

    def __init__(self, tables: TaskTables) -> None:
        self._tables = tables
        self._index = {name: index for index, name in enumerate(tables.layers)}
        self._variables = Quantities(QUANTITIES, tables)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._tables.units

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the given order."""
        return self._tables.layers

    def on(self, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs the layer"."""
        return self._variables.truth(Q.ON, self._layer(layer), self._unit(unit))

    def together(self, layer: LayerRef, other: LayerRef) -> BoolExpr:
        """Return "both layers are on one unit"."""
        return any_of(self.on(layer, unit) & self.on(other, unit) for unit in self.units)

    def uses(self, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return self._variables.truth(Q.USES, self._unit(unit))

    def units_used(self) -> IntVar:
        """Return the number of units in use."""
        return self._variables.number(Q.UNITS)

    def busy_us(self, unit: str) -> IntVar:
        """Return the time of the layers of a unit, microseconds; 0 when it is not used."""
        return self._variables.number(Q.BUSY, self._unit(unit))

    def memory_bytes(self, unit: str) -> IntVar:
        """Return the bytes of the layers of a unit; 0 when it is not used."""
        return self._variables.number(Q.MEMORY, self._unit(unit))

    def start_us(self, layer: LayerRef) -> IntVar:
        """Return when a layer starts, microseconds from the arrival; in a segment, when the segment does."""
        return self._variables.number(Q.START, self._tables.tasks.of[self._layer(layer)])

    def finish_us(self, layer: LayerRef) -> IntVar:
        """Return when a layer is done, microseconds from the arrival; in a segment, when the segment is."""
        return self._variables.number(Q.FINISH, self._tables.tasks.of[self._layer(layer)])

    def latency_us(self) -> IntVar:
        """Return the time from the arrival to the last output, microseconds."""
        return self._variables.number(Q.LATENCY)

    def work_us(self) -> IntVar:
        """Return the time of all units for layers, microseconds."""
        return self._variables.number(Q.WORK)

    def _unit(self, name: str) -> int:
        if name in self.units:
            return self.units.index(name)
        raise InvalidProblemError(f"no unit {name!r}; {meant(name, self.units, choice='the platform has')}")

    def _layer(self, layer: LayerRef) -> int:
        if isinstance(layer, str) and layer in self._index:
            return self._index[layer]
        if isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < len(self.layers):
            return layer
        raise InvalidProblemError(f"no layer {layer!r}; layers are 0 to {len(self.layers) - 1}, or by name")
