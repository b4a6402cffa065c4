"""What the views of several formulations share: units and layers by name, and what runs where in a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from .errors import InvalidProblemError
from .expr import BoolExpr, BoolVar, IntVar, any_of
from .nearness import meant
from .terms import Quantities, QuantityInfo

LayerRef = str | int
"""A layer by name or by index."""

_MOST_NAMED = 12


def unit_index(units: Sequence[str], name: str) -> int:
    """Return which unit a name means.

    Raises
    ------
    InvalidProblemError
        None of them.
    """
    if name in units:
        return units.index(name)
    raise InvalidProblemError(f"no unit {name!r}; {meant(name, units, choice='the platform has')}")


def layer_index(layers: Sequence[str], layer: LayerRef, *, request: str | None = None) -> int:
    """Return which layer is meant, of a network or of that of a request.

    Raises
    ------
    InvalidProblemError
        None of them.
    """
    if isinstance(layer, str) and layer in layers:
        return layers.index(layer)
    if isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < len(layers):
        return layer
    lacks = "no layer" if request is None else f"request {request!r} has no layer"
    named = f"{', '.join(layers[:_MOST_NAMED])}{', ...' if len(layers) > _MOST_NAMED else ''}"
    raise InvalidProblemError(f"{lacks} {layer!r}; layers are 0 to {len(layers) - 1}, or by name: {named}")


class GraphView:
    """Atoms of rules about plans that put the layers of a graph on units; every method returns an expression.

    Layers are given by name or index, units by name. What it says are quantities that such formulations call
    by the same names.

    Parameters
    ----------
    tables
        The integer tables of the problem, with the names of layers and units.
    """

    infos: ClassVar[Mapping[str, QuantityInfo]]
    """The quantities of the formulation."""

    def __init__(self, tables: Any) -> None:
        self._tables = tables
        self._variables = Quantities(self.infos, tables)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return tuple(self._tables.units)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the given order."""
        return tuple(self._tables.layers)

    def on(self, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs the layer"."""
        return self._variables.truth("on", self._layer(layer), self._unit(unit))

    def together(self, layer: LayerRef, other: LayerRef) -> BoolExpr:
        """Return "both layers are on one unit"."""
        return any_of(self.on(layer, unit) & self.on(other, unit) for unit in self.units)

    def uses(self, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return self._variables.truth("uses", self._unit(unit))

    def units_used(self) -> IntVar:
        """Return the number of units in use."""
        return self._variables.number("units")

    def busy_us(self, unit: str) -> IntVar:
        """Return how long a unit is busy, microseconds; 0 when it is not used."""
        return self._variables.number("busy_us", self._unit(unit))

    def memory_bytes(self, unit: str) -> IntVar:
        """Return the bytes of the layers of a unit; 0 when it is not used."""
        return self._variables.number("memory_bytes", self._unit(unit))

    def work_us(self) -> IntVar:
        """Return how long all units together are busy, microseconds."""
        return self._variables.number("work_us")

    def _unit(self, name: str) -> int:
        return unit_index(self.units, name)

    def _layer(self, layer: LayerRef) -> int:
        return layer_index(self.layers, layer)
