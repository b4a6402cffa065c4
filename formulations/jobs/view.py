"""What a rule can say about any plan of single requests."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolExpr, BoolVar, Expr, IntVar
from ..nearness import meant
from ..terms import Quantities
from ..views import LayerRef, layer_index, unit_index
from .quantities import QUANTITIES
from .quantities import JobQuantity as Q
from .tables import JobTables


class JobView:
    """Atoms of rules about single requests; every method returns an expression.

    Requests and units are given by name, layers by name or index.
    """

    elsewhere = (
        "; one order of all requests, and what runs beside what in it, is asked with --passage ordered"
    )
    """What is said to a rule that asks for what is not here."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        self._variables = Quantities(QUANTITIES, tables)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._tables.units

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the requests."""
        return self._tables.jobs.names

    def requests_of(self, network: str) -> tuple[str, ...]:
        """Return the names of the requests of one network."""
        return tuple(r.name for r in self._tables.jobs.requests if r.network == network)

    def layers(self, request: str) -> tuple[str, ...]:
        """Return the names of the layers of a request, in order."""
        return self._tables.layer_names[self._tables.chain_of[self._request(request)]]

    def on(self, request: str, layer: str | int, unit: str) -> BoolVar:
        """Return "the unit runs this layer of the request"."""
        return self._variables.truth(
            Q.ON, self._request(request), self._layer(request, layer), self._unit(unit)
        )

    def uses(self, request: str, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer of the request"."""
        return self._variables.truth(Q.USES, self._request(request), self._unit(unit))

    def is_late(self, request: str) -> BoolVar:
        """Return "the request ends after its deadline"."""
        return self._variables.truth(Q.IS_LATE, self._request(request))

    def chunks(self, request: str) -> IntVar:
        """Return the number of chunks of a request."""
        return self._variables.number(Q.CHUNKS, self._request(request))

    def load_us(self, unit: str) -> IntVar:
        """Return the time of all chunks on a unit, microseconds."""
        return self._variables.number(Q.BUSY, self._unit(unit))

    def start_us(self, request: str) -> IntVar:
        """Return when the first chunk of a request starts, microseconds."""
        return self._variables.number(Q.START, self._request(request))

    def before(self, first: str, second: str) -> BoolExpr:
        """Return "the first request starts no later than the second"."""
        if first == second:
            raise InvalidProblemError(f"before({first!r}, {second!r}): name two different requests")
        return self.start_us(first) <= self.start_us(second)

    def finish_us(self, request: str) -> IntVar:
        """Return when the last chunk of a request ends, microseconds."""
        return self._variables.number(Q.FINISH, self._request(request))

    def latency_us(self, request: str) -> Expr:
        """Return the time from release to end of a request, microseconds."""
        return self.finish_us(request) - self._tables.jobs.requests[self._request(request)].release_us

    def makespan_us(self) -> IntVar:
        """Return the end of the last request, microseconds."""
        return self._variables.number(Q.MAKESPAN)

    def _request(self, name: str) -> int:
        if name in self.requests:
            return self.requests.index(name)
        raise InvalidProblemError(f"no request {name!r}; {meant(name, self.requests, choice='there are')}")

    def _unit(self, name: str) -> int:
        return unit_index(self.units, name)

    def _layer(self, request: str, layer: LayerRef) -> int:
        return layer_index(self.layers(request), layer, request=request)
