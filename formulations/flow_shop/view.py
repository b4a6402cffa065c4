"""What a rule can say about any plan for a workload."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolVar, Expr, IntVar, count
from ..terms import Quantity as Q
from ..views import RequestView, whole
from .quantities import QUANTITIES, beside


class WorkloadView(RequestView):
    """Atoms of rules about a workload; every method returns an expression.

    Requests and units are given by name, layers by name or index; loads are without slowdown.
    """

    infos = QUANTITIES

    def cut_after(self, request: str, layer: str | int) -> BoolVar:
        """Return "a chunk of the request ends right after this layer" (not defined for the last layer)."""
        index = self._layer(request, layer)
        if index == len(self.layers(request)) - 1:
            raise InvalidProblemError(
                f"cut_after({request!r}, {layer!r}): no chunk follows the last layer; name an earlier one"
            )
        return self._variables.truth(Q.CUT, self._request(request), index + 1)

    def chunks(self, request: str) -> Expr:
        """Return the number of chunks of a request."""
        return count(self.uses(request, unit) for unit in self.units)

    def position(self, request: str) -> IntVar:
        """Return the place of a request in the order; 0 is the first."""
        return self._variables.number(Q.POSITION, self._request(request))

    def before(self, first: str, second: str) -> BoolVar:
        """Return "every unit serves the first request before the second"."""
        return self._variables.truth(Q.BEFORE, *self._two(first, second, "before"))

    def beside(self, first: str, second: str) -> BoolVar:
        """Return "chunks of both requests run at the same time"."""
        return beside(*self._two(first, second, "beside"))

    def chunk_us(self, request: str, unit: str) -> IntVar:
        """Return the time of a request on a unit without slowdown, microseconds; 0 if it skips the unit."""
        return self._variables.number(Q.CHUNK_US, self._request(request), self._unit(unit))

    def memory_while_bytes(self, request: str) -> IntVar:
        """Return the most bytes in use on the device while a chunk of the request runs."""
        return self._variables.number(Q.MEMORY_WHILE, self._request(request))

    period_us = whole(Q.PERIOD, "the largest load of a unit, microseconds")
    gapness_us = whole(Q.GAPNESS, "the largest minus the smallest load, microseconds")

    def bubbles_us(self) -> IntVar:
        """Return the idle time of all units between their first start and last end, microseconds."""
        return self._variables.number(Q.BUBBLES)

    peak_bytes = whole(Q.PEAK, "the most bytes in use at any instant")
    units_used = whole(Q.UNITS, "the number of units in use")

    energy_nj = whole(Q.ENERGY, "the energy of all units until the last request is done, nanojoules")

    def contention(self) -> IntVar:
        """Return the number of pairs of high slices in one column (P3)."""
        return self._variables.number(Q.CONTENTION)

    displacement = whole(Q.DISPLACEMENT, "by how many positions the requests are moved, altogether")
