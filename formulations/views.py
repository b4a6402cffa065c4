"""What views of several formulations share: layers of a graph, requests on units, chunks on devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .errors import InvalidProblemError
from .expr import BoolExpr, BoolVar, Expr, IntVar, any_of
from .network import Network
from .terms import Quantities, QuantityInfo
from .validation import meant

if TYPE_CHECKING:
    from .requests import RequestTables

LayerRef = str | int
"""A layer by name or by index."""

_MOST_NAMED = 12


def unit_index(units: Sequence[str], name: str) -> int:
    """Return which unit a name means.

    Raises InvalidProblemError: none of them.
    """
    if name in units:
        return units.index(name)
    raise InvalidProblemError(f"no unit {name!r}; {meant(name, units, choice='the platform has')}")


def layer_index(layers: Sequence[str], layer: LayerRef, *, request: str | None = None) -> int:
    """Return which layer is meant, of a network or of that of a request.

    Raises InvalidProblemError: none of them.
    """
    if isinstance(layer, str) and layer in layers:
        return layers.index(layer)
    if isinstance(layer, int) and not isinstance(layer, bool) and 0 <= layer < len(layers):
        return layer
    lacks = "no layer" if request is None else f"request {request!r} has no layer"
    named = f"{', '.join(layers[:_MOST_NAMED])}{', ...' if len(layers) > _MOST_NAMED else ''}"
    raise InvalidProblemError(f"{lacks} {layer!r}; layers are 0 to {len(layers) - 1}, or by name: {named}")


def whole(name: str, text: str) -> Callable[[Any], IntVar]:
    """Return the method of a view that returns a number of the whole plan; `text`: what that is."""

    def method(view: Any) -> IntVar:
        variables: Quantities = view._variables
        return variables.number(name)

    method.__doc__ = f"Return {text}."
    return method


class LayerView:
    """Atoms of rules about plans that put the layers of a network on units, as expressions.

    Layers are given by name or index, units by name. What it says are quantities that such formulations call
    by the same names.

    `layers`: the names of the layers, in order; `tables`: the integer tables of the problem.
    """

    infos: ClassVar[Mapping[str, QuantityInfo]]
    """The quantities of the formulation."""

    def __init__(self, layers: Sequence[str], tables: Any) -> None:
        self._layers, self._units, self._tables = tuple(layers), tuple(tables.units), tables
        self._variables = Quantities(self.infos, tables)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return self._units

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers, in the given order."""
        return self._layers

    def on(self, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs the layer"."""
        return self._variables.truth("on", self._layer(layer), self._unit(unit))

    def uses(self, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer"."""
        return self._variables.truth("uses", self._unit(unit))

    units_used = whole("units", "the number of units in use")

    def busy_us(self, unit: str) -> IntVar:
        """Return how long a unit is busy, microseconds; 0 when it is not used."""
        return self._variables.number("busy_us", self._unit(unit))

    def memory_bytes(self, unit: str) -> IntVar:
        """Return the bytes that a unit needs; 0 when it is not used."""
        return self._variables.number("memory_bytes", self._unit(unit))

    def _unit(self, name: str) -> int:
        return unit_index(self._units, name)

    def _layer(self, layer: LayerRef) -> int:
        return layer_index(self._layers, layer)


class GraphView(LayerView):
    """Atoms of rules about plans that put the layers of a graph on units.

    `tables`: the integer tables of the problem, with the names of layers and units.
    """

    def __init__(self, tables: Any) -> None:
        super().__init__(tables.layers, tables)

    def together(self, layer: LayerRef, other: LayerRef) -> BoolExpr:
        """Return "both layers are on one unit"."""
        return any_of(self.on(layer, unit) & self.on(other, unit) for unit in self.units)

    work_us = whole("work_us", "how long all units together are busy, microseconds")


def cut_index(layers: Sequence[str], layer: LayerRef) -> int:
    """Return which layer is meant, of those after which a chunk can end and another one follow.

    Raises InvalidProblemError: none of them, or the last one.
    """
    index = layer_index(layers, layer)
    if index == len(layers) - 1:
        raise InvalidProblemError(
            f"cut_after({layer!r}): no chunk follows the last layer; name an earlier one"
        )
    return index


class RequestView:
    """Atoms of rules about requests of several networks on units; every method returns an expression.

    Requests and units are given by name, layers by name or index. What it says are quantities that such
    formulations call by the same names.

    `tables`: the integer tables of the problem.
    """

    infos: ClassVar[Mapping[str, QuantityInfo]]
    """The quantities of the formulation."""

    def __init__(self, tables: RequestTables) -> None:
        self._tables, self._entered_us = tables, tables.asked.entered_us
        self._networks = networks = {request.name: request.network for request in tables.asked.requests}
        self._index = {name: index for index, name in enumerate(networks)}
        self._variables = Quantities(self.infos, tables)

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units."""
        return tuple(self._tables.units)

    @property
    def requests(self) -> tuple[str, ...]:
        """Names of the requests, in the order of the problem."""
        return tuple(self._networks)

    def requests_of(self, network: str) -> tuple[str, ...]:
        """Return the names of the requests of one network."""
        return tuple(request for request, own in self._networks.items() if own == network)

    def layers(self, request: str) -> tuple[str, ...]:
        """Return the names of the layers of a request, in order."""
        return tuple(self._tables.layer_names[self._tables.chain_of[self._request(request)]])

    def on(self, request: str, layer: LayerRef, unit: str) -> BoolVar:
        """Return "the unit runs this layer of the request"."""
        return self._variables.truth(
            "on", self._request(request), self._layer(request, layer), self._unit(unit)
        )

    def uses(self, request: str, unit: str) -> BoolVar:
        """Return "the unit runs at least one layer of the request"."""
        return self._variables.truth("uses", self._request(request), self._unit(unit))

    def load_us(self, unit: str) -> IntVar:
        """Return the time of all chunks on a unit, microseconds."""
        return self._variables.number("busy_us", self._unit(unit))

    def start_us(self, request: str) -> IntVar:
        """Return when the first chunk of a request starts, microseconds."""
        return self._variables.number("start_us", self._request(request))

    def finish_us(self, request: str) -> IntVar:
        """Return when the last chunk of a request ends, microseconds."""
        return self._variables.number("finish_us", self._request(request))

    def latency_us(self, request: str) -> Expr:
        """Return the time from the arrival, or the release, of a request to its end, microseconds."""
        return self.finish_us(request) - self._entered_us[self._request(request)]

    makespan_us = whole("makespan_us", "the end of the last request, microseconds")

    def _request(self, name: str) -> int:
        if name in self._index:
            return self._index[name]
        raise InvalidProblemError(f"no request {name!r}; {meant(name, self.requests, choice='there are')}")

    def _two(self, first: str, second: str, rule: str) -> tuple[int, int]:
        """Return which two different requests are meant; `rule`: who asks."""
        one, other = self._request(first), self._request(second)
        if one == other:
            raise InvalidProblemError(f"{rule}({first!r}, {second!r}): name two different requests")
        return one, other

    def _unit(self, name: str) -> int:
        return unit_index(self.units, name)

    def _layer(self, request: str, layer: LayerRef) -> int:
        return layer_index(self.layers(request), layer, request=request)


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

    devices_used = whole("devices", "the number of devices in use")

    def cut_after(self, layer: LayerRef) -> BoolExpr:
        """Return "some chunk ends right after this layer" (not defined for the last layer)."""
        index = cut_index(self._layers, layer)
        return any_of(self.on(index, device) & ~self.on(index + 1, device) for device in self._devices)

    def busy_us(self, device: str) -> IntVar:
        """Return how long a device computes for one request, microseconds; 0 when it is not used."""
        return self._variables.number("busy_us", self._device(device))

    def memory_bytes(self, device: str) -> IntVar:
        """Return the bytes that a device needs; 0 when it is not used."""
        return self._variables.number("memory_bytes", self._device(device))

    period_us = whole("period_us", "the period, microseconds: of several pipelines the largest one")
    latency_us = whole("latency_us", "the latency, microseconds: of several pipelines that of the slowest")
    energy_nj = whole("energy_nj", "the energy of one request, nanojoules")
    peak_bytes = whole("peak_bytes", "the bytes that all devices need together")

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
