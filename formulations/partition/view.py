"""What a rule can say about any partition."""

from __future__ import annotations

from ..expr import IntVar
from ..terms import Quantity as Q
from ..views import GraphView, whole
from .quantities import QUANTITIES


class PartView(GraphView):
    """Atoms of rules about partitions: a unit runs one part, and is busy with its layers and transfers."""

    infos = QUANTITIES

    def transfer_us(self, unit: str) -> IntVar:
        """Return the time of a unit for tensors that it sends or receives, microseconds."""
        return self._variables.number(Q.TRANSFER, self._unit(unit))

    period_us = whole(Q.PERIOD, "the largest load of a unit, microseconds")
    transfers_us = whole(Q.TRANSFERS, "the time of all units for transfers, microseconds")
