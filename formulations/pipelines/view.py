"""What a rule can say about pipelines over devices."""

from __future__ import annotations

from ..expr import BoolVar, IntVar
from ..terms import Quantity
from ..views import DeviceView, whole
from .quantities import QUANTITIES


class PipelineView(DeviceView):
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are given by name or index, devices by name.
    """

    infos = QUANTITIES

    def sends(self, source: str, target: str) -> BoolVar:
        """Return "the first device sends its results to the second"."""
        return self._variables.truth(Quantity.SENDS, *self._two(source, target))

    def same_pipeline(self, one: str, other: str) -> BoolVar:
        """Return "both devices are in one pipeline"."""
        return self._variables.truth(Quantity.WITH, *sorted(self._two(one, other)))

    pipelines = whole(Quantity.PIPELINES, "the number of pipelines")

    def chunks(self) -> IntVar:
        """Return the number of chunks of all pipelines, which is that of the devices in use."""
        return self.devices_used()

    def stage_us(self, device: str) -> IntVar:
        """Return how long one item takes of a device, with its messages; 0 when it is not used."""
        return self._variables.number(Quantity.STAGE, self._device(device))

    gapness_us = whole(Quantity.GAPNESS, "the gapness, microseconds")
    traffic_bytes = whole(Quantity.TRAFFIC, "the bytes that one item sends over links")
