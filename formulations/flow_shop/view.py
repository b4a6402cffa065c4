"""What a rule can say about any plan for a workload."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolVar, Expr, IntVar, count
from ..nearness import meant
from ..views import LayerRef, layer_index, unit_index
from .quantities import FlowQuantity, beside, quantities_of
from .tables import FlowShop


class WorkloadView:
    """Atoms of rules about a workload; every method returns an expression.

    Requests and units are given by name, layers by name or index.
    """

    def __init__(self, shop: FlowShop) -> None:
        self._shop = shop
        self._variables = quantities_of(shop)
        self._requests = {name: index for index, name in enumerate(shop.workload.names)}

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._shop.units

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the requests, in order of arrival."""
        return self._shop.workload.names

    def requests_of(self, network: str) -> tuple[str, ...]:
        """Return the names of the requests of one network."""
        return tuple(r.name for r in self._shop.workload.requests if r.network == network)

    def layers(self, request: str) -> tuple[str, ...]:
        """Return the names of the layers of a request, in order."""
        return self._shop.layer_names[self._shop.chain_of[self._request(request)]]

    def on(self, request: str, layer: str | int, unit: str) -> BoolVar:
        """Return "the unit runs this layer of the request"."""
        return self._variables.truth(
            FlowQuantity.ON, self._request(request), self._layer(request, layer), self._unit(unit)
        )

    def uses(self, request: str, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer of the request"."""
        return self._variables.truth(FlowQuantity.USES, self._request(request), self._unit(unit))

    def cut_after(self, request: str, layer: str | int) -> BoolVar:
        """Return "a chunk of the request ends right after this layer" (not defined for the last layer)."""
        index = self._layer(request, layer)
        if index == len(self.layers(request)) - 1:
            raise InvalidProblemError(
                f"cut_after({request!r}, {layer!r}): no chunk follows the last layer; name an earlier one"
            )
        return self._variables.truth(FlowQuantity.CUT, self._request(request), index + 1)

    def chunks(self, request: str) -> Expr:
        """Return the number of chunks of a request."""
        return count(self.uses(request, unit) for unit in self.units)

    def position(self, request: str) -> IntVar:
        """Return the place of a request in the order; 0 is the first."""
        return self._variables.number(FlowQuantity.POSITION, self._request(request))

    def before(self, first: str, second: str) -> BoolVar:
        """Return "every unit serves the first request before the second"."""
        one, other = self._request(first), self._request(second)
        if one == other:
            raise InvalidProblemError(f"before({first!r}, {second!r}): name two different requests")
        return self._variables.truth(FlowQuantity.BEFORE, one, other)

    def beside(self, first: str, second: str) -> BoolVar:
        """Return "chunks of both requests run at the same time"."""
        one, other = self._request(first), self._request(second)
        if one == other:
            raise InvalidProblemError(f"beside({first!r}, {second!r}): name two different requests")
        return beside(one, other)

    def chunk_us(self, request: str, unit: str) -> IntVar:
        """Return the time of a request on a unit without slowdown, microseconds; 0 if it skips the unit."""
        return self._variables.number(FlowQuantity.CHUNK_US, self._request(request), self._unit(unit))

    def load_us(self, unit: str) -> IntVar:
        """Return the time of all chunks on a unit without slowdown, microseconds."""
        return self._variables.number(FlowQuantity.LOAD, self._unit(unit))

    def start_us(self, request: str) -> IntVar:
        """Return when the first chunk of a request starts, microseconds."""
        return self._variables.number(FlowQuantity.START, self._request(request))

    def finish_us(self, request: str) -> IntVar:
        """Return when the last chunk of a request ends, microseconds."""
        return self._variables.number(FlowQuantity.FINISH, self._request(request))

    def latency_us(self, request: str) -> Expr:
        """Return the time from arrival to exit of a request, microseconds."""
        arrival = self._shop.workload.requests[self._request(request)].arrival_us
        return self.finish_us(request) - arrival

    def memory_while_bytes(self, request: str) -> IntVar:
        """Return the most bytes in use on the device while a chunk of the request runs."""
        return self._variables.number(FlowQuantity.MEMORY_WHILE, self._request(request))

    def makespan_us(self) -> IntVar:
        """Return the end of the last request, microseconds."""
        return self._variables.number(FlowQuantity.MAKESPAN)

    def period_us(self) -> IntVar:
        """Return the largest load of a unit, microseconds."""
        return self._variables.number(FlowQuantity.PERIOD)

    def gapness_us(self) -> IntVar:
        """Return the largest minus the smallest load, microseconds."""
        return self._variables.number(FlowQuantity.GAPNESS)

    def bubbles_us(self) -> IntVar:
        """Return the idle time of all units between their first start and last end, microseconds."""
        return self._variables.number(FlowQuantity.BUBBLES)

    def peak_bytes(self) -> IntVar:
        """Return the most bytes in use at any instant."""
        return self._variables.number(FlowQuantity.PEAK)

    def units_used(self) -> IntVar:
        """Return the number of units in use."""
        return self._variables.number(FlowQuantity.UNITS)

    def energy_nj(self) -> IntVar:
        """Return the energy of all units until the last request is done, nanojoules."""
        return self._variables.number(FlowQuantity.ENERGY)

    def contention(self) -> IntVar:
        """Return the weighted number of pairs of high requests that are close in the order (P3)."""
        return self._variables.number(FlowQuantity.CONTENTION)

    def displacement(self) -> IntVar:
        """Return by how many positions the requests are moved, altogether."""
        return self._variables.number(FlowQuantity.DISPLACEMENT)

    def _request(self, name: str) -> int:
        if name in self._requests:
            return self._requests[name]
        hint = meant(name, self._requests, choice="the workload has")
        raise InvalidProblemError(f"no request {name!r}; {hint}")

    def _unit(self, name: str) -> int:
        return unit_index(self.units, name)

    def _layer(self, request: str, layer: LayerRef) -> int:
        return layer_index(self.layers(request), layer, request=request)
