"""What a rule can say about any plan of one network."""

from __future__ import annotations

from collections.abc import Mapping

from ..chain import Chain
from ..errors import InvalidProblemError
from ..expr import BoolVar, Expr, IntVar, count, linear
from ..network import Network
from ..terms import Quantities, Quantity, QuantityInfo
from ..views import LayerRef, layer_index, unit_index, whole
from .quantities import QUANTITIES


class PlanView:
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are given by name or index, units by name.
    """

    def __init__(
        self, network: Network, chain: Chain, quantities: Mapping[str, QuantityInfo] = QUANTITIES
    ) -> None:
        self._units = chain.units
        self._layers = network.layer_names
        self._variables = Quantities(quantities, chain)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._units

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in order."""
        return self._layers

    def on(self, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs the layer"."""
        return self._variables.truth(Quantity.ON, self._layer(layer), self._unit(unit))

    def uses(self, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return self._variables.truth(Quantity.USES, self._unit(unit))

    def cut_after(self, layer: LayerRef) -> BoolVar:
        """Return "a chunk ends right after this layer" (not defined for the last layer)."""
        index = self._layer(layer)
        if index == len(self._layers) - 1:
            raise InvalidProblemError(
                f"cut_after({layer!r}): no chunk follows the last layer; name an earlier one"
            )
        return self._variables.truth(Quantity.CUT, index + 1)

    def chunks(self, unit: str | None = None) -> Expr:
        """Return the number of chunks, of the plan or on one unit."""
        if unit is not None:
            return self.uses(unit)
        return count(self._variables.truth(Quantity.USES, at) for at in range(len(self._units)))

    hops = whole(Quantity.HOPS, "how often a request goes from one unit to another: the number of borders")

    def position(self, layer: LayerRef) -> Expr:
        """Return the place in the pipeline of the chunk that holds the layer; 0 is the first."""
        index = self._layer(layer)
        return linear((1, self._variables.truth(Quantity.CUT, boundary)) for boundary in range(1, index + 1))

    def busy_us(self, unit: str) -> IntVar:
        """Return the busy time of a unit per period, microseconds; 0 when it is not used."""
        return self._variables.number(Quantity.BUSY, self._unit(unit))

    def memory_bytes(self, unit: str) -> IntVar:
        """Return the bytes of weights and live tensors on a unit; 0 when it is not used."""
        return self._variables.number(Quantity.MEMORY, self._unit(unit))

    period_us = whole(Quantity.PERIOD, "the period, microseconds")
    latency_us = whole(Quantity.LATENCY, "the latency of one request, microseconds")

    def stream_latency_us(self) -> IntVar:
        """Return the latency of a request in the stream, waits included, microseconds."""
        return self._variables.number(Quantity.STREAM_LATENCY)

    def in_flight(self) -> IntVar:
        """Return how many requests are on their way at once at the period of the plan."""
        return self._variables.number(Quantity.IN_FLIGHT)

    gapness_us = whole(Quantity.GAPNESS, "the gapness, microseconds")
    bubbles_us = whole(Quantity.BUBBLES, "the idle time of the used units per period, microseconds")
    peak_bytes = whole(Quantity.PEAK, "the bytes needed while every chunk runs at once")
    units_used = whole(Quantity.UNITS, "the number of units in use")
    energy_nj = whole(Quantity.ENERGY, "the energy of all units from one result to the next, nanojoules")

    def _unit(self, name: str) -> int:
        return unit_index(self._units, name)

    def _layer(self, layer: LayerRef) -> int:
        return layer_index(self._layers, layer)
