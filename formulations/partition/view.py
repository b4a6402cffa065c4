"""What a rule can say about any partition."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolExpr, BoolVar, IntVar, any_of
from ..nearness import meant
from ..terms import Quantities
from .quantities import QUANTITIES
from .quantities import PartQuantity as Q
from .tables import LayerGraph

LayerRef = str | int
"""A layer by name or by index."""


class PartView:
    """Atoms of rules about partitions; every method returns an expression.

    Layers are given by name or index, units by name.
    """

    def __init__(self, graph: LayerGraph) -> None:
        self._graph = graph
        self._index = {name: index for index, name in enumerate(graph.layers)}
        self._variables = Quantities(QUANTITIES, graph)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._graph.units

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the given order."""
        return self._graph.layers

    def on(self, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs the layer"."""
        return self._variables.truth(Q.ON, self._layer(layer), self._unit(unit))

    def together(self, layer: LayerRef, other: LayerRef) -> BoolExpr:
        """Return "both layers are in one part"."""
        return any_of(self.on(layer, unit) & self.on(other, unit) for unit in self.units)

    def uses(self, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return self._variables.truth(Q.USES, self._unit(unit))

    def units_used(self) -> IntVar:
        """Return the number of units in use."""
        return self._variables.number(Q.UNITS)

    def busy_us(self, unit: str) -> IntVar:
        """Return the load of a unit, microseconds: layers and transfers; 0 when it is not used."""
        return self._variables.number(Q.BUSY, self._unit(unit))

    def transfer_us(self, unit: str) -> IntVar:
        """Return the time of a unit for tensors that it sends or receives, microseconds."""
        return self._variables.number(Q.TRANSFER, self._unit(unit))

    def memory_bytes(self, unit: str) -> IntVar:
        """Return the bytes of the layers of a unit; 0 when it is not used."""
        return self._variables.number(Q.MEMORY, self._unit(unit))

    def period_us(self) -> IntVar:
        """Return the largest load of a unit, microseconds."""
        return self._variables.number(Q.PERIOD)

    def transfers_us(self) -> IntVar:
        """Return the time of all units for transfers, microseconds."""
        return self._variables.number(Q.TRANSFERS)

    def work_us(self) -> IntVar:
        """Return the sum of the loads of all units, microseconds."""
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
