"""What a rule can say about any schedule of tasks."""

from __future__ import annotations

from ..expr import IntVar
from ..views import GraphView, LayerRef, whole
from .quantities import QUANTITIES
from .quantities import ScheduleQuantity as Q


class ScheduleView(GraphView):
    """Atoms of rules about schedules: a unit is busy with its layers."""

    infos = QUANTITIES

    def start_us(self, layer: LayerRef) -> IntVar:
        """Return when a layer starts, microseconds from the arrival; in a segment, when the segment does."""
        return self._variables.number(Q.START, self._tables.tasks.of[self._layer(layer)])

    def finish_us(self, layer: LayerRef) -> IntVar:
        """Return when a layer is done, microseconds from the arrival; in a segment, when the segment is."""
        return self._variables.number(Q.FINISH, self._tables.tasks.of[self._layer(layer)])

    latency_us = whole(Q.LATENCY, "the time from the arrival to the last output, microseconds")
