"""What a rule can say about any partition."""

from __future__ import annotations

from ..expr import IntVar
from ..views import GraphView
from .quantities import QUANTITIES
from .quantities import PartQuantity as Q


class PartView(GraphView):
    """Atoms of rules about partitions: a unit runs one part, and is busy with its layers and transfers."""

    infos = QUANTITIES

    def transfer_us(self, unit: str) -> IntVar:
        """Return the time of a unit for tensors that it sends or receives, microseconds."""
        return self._variables.number(Q.TRANSFER, self._unit(unit))

    def period_us(self) -> IntVar:
        """Return the largest load of a unit, microseconds."""
        return self._variables.number(Q.PERIOD)

    def transfers_us(self) -> IntVar:
        """Return the time of all units for transfers, microseconds."""
        return self._variables.number(Q.TRANSFERS)
