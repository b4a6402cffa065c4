"""What a rule can say about groups of devices."""

from __future__ import annotations

from ..expr import BoolVar, IntVar
from ..terms import Quantity as Q
from ..views import DeviceView, LayerRef, whole
from .quantities import QUANTITIES


class GroupView(DeviceView):
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are pieces of the network, given by name or index; devices are given by name.
    """

    infos = QUANTITIES

    def leads(self, device: str) -> BoolVar:
        """Return "the device leads its group"."""
        return self._variables.truth(Q.LEADS, self._device(device))

    def together(self, one: str, other: str) -> BoolVar:
        """Return "both devices are in one group"."""
        return self._variables.truth(Q.TOGETHER, *sorted(self._two(one, other)))

    def group_size(self, layer: LayerRef) -> IntVar:
        """Return the number of devices that serve the layer."""
        return self._variables.number(Q.SIZE, self._layer(layer))

    chunks = whole(Q.CHUNKS, "the number of chunks")

    def extra_permille(self, device: str) -> IntVar:
        """Return what of its operations a device does beyond its share, permille; 0 when it is not used."""
        return self._variables.number(Q.EXTRA, self._device(device))

    extra_flops = whole(Q.REDUNDANCY, "the operations that more than one device does")
