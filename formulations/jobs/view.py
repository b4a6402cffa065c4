"""What a rule can say about any plan of single requests."""

from __future__ import annotations

from ..expr import BoolExpr, BoolVar, IntVar
from ..terms import Quantity as Q
from ..views import RequestView
from .quantities import QUANTITIES


class JobView(RequestView):
    """Atoms of rules about single requests; every method returns an expression.

    Requests and units are given by name, layers by name or index.
    """

    elsewhere = (
        "; one order of all requests, and what runs beside what in it, is asked with --passage ordered"
    )
    """What is said to a rule that asks for what is not here."""

    infos = QUANTITIES

    def is_late(self, request: str) -> BoolVar:
        """Return "the request ends after its deadline"."""
        return self._variables.truth(Q.IS_LATE, self._request(request))

    def chunks(self, request: str) -> IntVar:
        """Return the number of chunks of a request."""
        return self._variables.number(Q.CHUNKS, self._request(request))

    def before(self, first: str, second: str) -> BoolExpr:
        """Return "the first request starts no later than the second"."""
        self._two(first, second, "before")
        return self.start_us(first) <= self.start_us(second)
