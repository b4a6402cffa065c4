"""What a rule can say about pipelines over devices."""

from __future__ import annotations

from ..errors import InvalidProblemError
from ..expr import BoolExpr, BoolVar, IntVar, any_of
from ..nearness import meant
from ..network import Network
from ..terms import Quantities
from .quantities import QUANTITIES, PipelineQuantity
from .tables import Cluster

LayerRef = str | int
"""A layer by name or by index."""


class PipelineView:
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are given by name or index, devices by name.
    """

    def __init__(self, network: Network, cluster: Cluster) -> None:
        self._devices = cluster.devices
        self._layers = network.layer_names
        self._variables = Quantities(QUANTITIES, cluster)

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices."""
        return self._devices

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the devices: as in rules about one network on one board, which can be used here, too."""
        return self._devices

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in order."""
        return self._layers

    def on(self, layer: LayerRef, device: str) -> BoolVar:
        """Return "the device runs the layer"."""
        return self._variables.truth(PipelineQuantity.ON, self._layer(layer), self._device(device))

    def uses(self, device: str) -> BoolVar:
        """Return "the device runs at least one layer"."""
        return self._variables.truth(PipelineQuantity.USES, self._device(device))

    def sends(self, source: str, target: str) -> BoolVar:
        """Return "the first device sends its results to the second"."""
        return self._variables.truth(PipelineQuantity.SENDS, *self._two(source, target))

    def same_pipeline(self, one: str, other: str) -> BoolVar:
        """Return "both devices are in one pipeline"."""
        return self._variables.truth(PipelineQuantity.WITH, *sorted(self._two(one, other)))

    def pipelines(self) -> IntVar:
        """Return the number of pipelines."""
        return self._variables.number(PipelineQuantity.PIPELINES)

    def devices_used(self) -> IntVar:
        """Return the number of devices in use."""
        return self._variables.number(PipelineQuantity.DEVICES)

    def chunks(self) -> IntVar:
        """Return the number of chunks of all pipelines, which is that of the devices in use."""
        return self.devices_used()

    def cut_after(self, layer: LayerRef) -> BoolExpr:
        """Return "a chunk of some pipeline ends right after this layer" (not defined for the last layer)."""
        index = self._layer(layer)
        if index == len(self._layers) - 1:
            raise InvalidProblemError(
                f"cut_after({layer!r}): no chunk follows the last layer; name an earlier one"
            )
        return any_of(self.on(index, device) & ~self.on(index + 1, device) for device in self._devices)

    def busy_us(self, device: str) -> IntVar:
        """Return how long a device computes for one item, microseconds; 0 when it is not used."""
        return self._variables.number(PipelineQuantity.BUSY, self._device(device))

    def stage_us(self, device: str) -> IntVar:
        """Return how long one item takes of a device, with its messages; 0 when it is not used."""
        return self._variables.number(PipelineQuantity.STAGE, self._device(device))

    def memory_bytes(self, device: str) -> IntVar:
        """Return the bytes that a device needs; 0 when it is not used."""
        return self._variables.number(PipelineQuantity.MEMORY, self._device(device))

    def period_us(self) -> IntVar:
        """Return the largest period of a pipeline, microseconds."""
        return self._variables.number(PipelineQuantity.PERIOD)

    def latency_us(self) -> IntVar:
        """Return the latency of the slowest pipeline, microseconds."""
        return self._variables.number(PipelineQuantity.LATENCY)

    def gapness_us(self) -> IntVar:
        """Return the gapness, microseconds."""
        return self._variables.number(PipelineQuantity.GAPNESS)

    def energy_nj(self) -> IntVar:
        """Return the energy of one item, nanojoules."""
        return self._variables.number(PipelineQuantity.ENERGY)

    def traffic_bytes(self) -> IntVar:
        """Return the bytes that one item sends over links."""
        return self._variables.number(PipelineQuantity.TRAFFIC)

    def peak_bytes(self) -> IntVar:
        """Return the bytes that all devices need together."""
        return self._variables.number(PipelineQuantity.PEAK)

    def _two(self, one: str, other: str) -> tuple[int, int]:
        first, second = self._device(one), self._device(other)
        if first == second:
            raise InvalidProblemError(f"two devices are needed, {one!r} is given twice")
        return first, second

    def _device(self, name: str) -> int:
        if name in self._devices:
            return self._devices.index(name)
        hint = meant(name, self._devices, choice="the platform has")
        raise InvalidProblemError(f"no device {name!r}; {hint}")

    def _layer(self, layer: LayerRef) -> int:
        if isinstance(layer, str) and layer in self._layers:
            return self._layers.index(layer)
        if isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < len(self._layers):
            return layer
        raise InvalidProblemError(f"no layer {layer!r}; layers are 0 to {len(self._layers) - 1}, or by name")
