"""What a rule can say about any plan of one network."""

from __future__ import annotations

from ..expr import BoolVar, Expr, count, linear
from ..terms import Quantity
from ..views import LayerRef, LayerView, cut_index, whole
from .quantities import QUANTITIES


class PlanView(LayerView):
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are given by name or index, units by name.
    """

    infos = QUANTITIES

    def cut_after(self, layer: LayerRef) -> BoolVar:
        """Return "a chunk ends right after this layer" (not defined for the last layer)."""
        return self._variables.truth(Quantity.CUT, cut_index(self._layers, layer) + 1)

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

    period_us = whole(Quantity.PERIOD, "the period, microseconds")
    latency_us = whole(Quantity.LATENCY, "the latency of one request, microseconds")
    stream_latency_us = whole(
        Quantity.STREAM_LATENCY, "the latency of a request in the stream, waits included, microseconds"
    )
    in_flight = whole(
        Quantity.IN_FLIGHT, "how many requests are on their way at once at the period of the plan"
    )
    gapness_us = whole(Quantity.GAPNESS, "the gapness, microseconds")
    bubbles_us = whole(Quantity.BUBBLES, "the idle time of the used units per period, microseconds")
    peak_bytes = whole(Quantity.PEAK, "the bytes needed while every chunk runs at once")
    energy_nj = whole(Quantity.ENERGY, "the energy of all units from one result to the next, nanojoules")
