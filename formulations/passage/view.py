"""What a rule can say about any plan whose units may have several chunks."""

from __future__ import annotations

from collections.abc import Sequence

from ..chain import Chain
from ..chunking.view import PlanView
from ..expr import Expr, any_of, count
from ..terms import Quantity
from .quantities import QUANTITIES


class PassageView(PlanView):
    """What a rule can say about any plan of a problem; every method returns an expression.

    The same words as for plans with one chunk per unit; a time or a number of bytes of a unit is that of all
    its chunks.
    """

    infos = QUANTITIES

    def __init__(self, layers: Sequence[str], chain: Chain) -> None:
        super().__init__(layers, chain)
        self._pools = tuple(chain.pools.values())

    def chunks(self, unit: str | None = None) -> Expr:
        """Return the number of chunks, of the plan or on one unit."""
        if unit is not None:
            return self._variables.number(Quantity.CHUNKS, self._unit(unit))
        return self.hops() + 1

    def resources_used(self) -> Expr:
        """Return the number of resources in use: of units, those that take turns counted once."""
        return count(
            any_of(self._variables.truth(Quantity.USES, unit) for unit in own) for own in self._pools
        )
