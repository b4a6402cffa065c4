"""What rules can say of every kind of plan over devices; each kind derives its view from this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .errors import InvalidProblemError
from .expr import BoolExpr, BoolVar, IntVar, any_of
from .nearness import meant
from .network import Network
from .terms import Quantities, QuantityInfo
from .views import LayerRef, layer_index


class DeviceView:
    """What a rule can say about any plan of a problem; every method returns an expression.

    Layers are given by name or index, devices by name. The quantities of a kind of plans that derives from
    this class have the names that stand here.
    """

    infos: ClassVar[Mapping[str, QuantityInfo]]
    """The quantities of the formulation."""

    def __init__(self, network: Network, tables: Any) -> None:
        self._devices: tuple[str, ...] = tables.devices
        self._layers = network.layer_names
        self._variables = Quantities(self.infos, tables)

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
        """Return "the device runs the layer", alone or with others."""
        return self._variables.truth("on", self._layer(layer), self._device(device))

    def uses(self, device: str) -> BoolVar:
        """Return "the device runs at least one layer"."""
        return self._variables.truth("uses", self._device(device))

    def devices_used(self) -> IntVar:
        """Return the number of devices in use."""
        return self._variables.number("devices")

    def cut_after(self, layer: LayerRef) -> BoolExpr:
        """Return "some chunk ends right after this layer" (not defined for the last layer)."""
        index = self._layer(layer)
        if index == len(self._layers) - 1:
            raise InvalidProblemError(
                f"cut_after({layer!r}): no chunk follows the last layer; name an earlier one"
            )
        return any_of(self.on(index, device) & ~self.on(index + 1, device) for device in self._devices)

    def busy_us(self, device: str) -> IntVar:
        """Return how long a device computes for one request, microseconds; 0 when it is not used."""
        return self._variables.number("busy_us", self._device(device))

    def memory_bytes(self, device: str) -> IntVar:
        """Return the bytes that a device needs; 0 when it is not used."""
        return self._variables.number("memory_bytes", self._device(device))

    def period_us(self) -> IntVar:
        """Return the period, microseconds: of several pipelines the largest one."""
        return self._variables.number("period_us")

    def latency_us(self) -> IntVar:
        """Return the latency, microseconds: of several pipelines that of the slowest."""
        return self._variables.number("latency_us")

    def energy_nj(self) -> IntVar:
        """Return the energy of one request, nanojoules."""
        return self._variables.number("energy_nj")

    def peak_bytes(self) -> IntVar:
        """Return the bytes that all devices need together."""
        return self._variables.number("peak_bytes")

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
        return layer_index(self._layers, layer)
