"""Contention intensity of networks that were not measured: Eq. (1) over features that are computed.

The paper reads three features from the counters of the CPU (`features`). Where there are no counters,
because the device is not there, the same three are computed for each layer from what it has to do and how
long it takes:

* *instructions per cycle*: operations a microsecond, as a share of the rate of convolutions;
* *cache misses by accesses*: bytes of weights and tensors, by these and the bytes that the innermost loop
  loads. A micro-kernel for 8 x 12 numbers loads 20 of them for 192 operations;
* *stalled cycles*: the share of the time that moving the bytes takes.

The prediction is linear, and features of a chunk are the means of those of its layers, weighted by time. So
the intensity of a network or chunk is the mean of the intensities of its layers: there is one for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....formulations.errors import InvalidInputError
from ....formulations.network import Network
from ...analytic.costs import layer_times
from ...analytic.model import UnitModel
from ...analytic.work import works_of
from .features import Features

LOADED_BYTES = 20 * 4 / 192
"""Bytes that the innermost loop of a matrix product or convolution loads for each operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFeatures:
    """What one layer does to a processor, computed."""

    name: str
    time_us: float  # how long it takes there, alone
    features: Features  # see above


def computed_features(network: Network, unit: UnitModel) -> tuple[LayerFeatures, ...]:
    """Return the features of each layer of a network on a unit."""
    times = layer_times(network, unit)
    if times is None:
        raise InvalidInputError(f"{unit.unit!r} cannot run all of {network.name!r}")
    found = []
    for layer, work, time_us in zip(network.layers, works_of(network), times, strict=True):
        moved = work.weight_bytes + work.moved_bytes
        features = Features(
            instructions_per_cycle=work.flops / (time_us * unit.flops_per_us),
            miss_rate=moved / (moved + LOADED_BYTES * work.flops) if moved else 0.0,
            stall_rate=min(1.0, moved / unit.bytes_per_us / time_us),
        )
        found.append(LayerFeatures(name=layer.name, time_us=time_us, features=features))
    return tuple(found)


def mean_features(layers: Sequence[LayerFeatures]) -> Features:
    """Return the features of consecutive layers together, of a chunk or of a whole network."""
    whole_us = sum(layer.time_us for layer in layers)
    if whole_us <= 0:
        raise InvalidInputError("no layer is given: features are means over layers")

    def mean(column: int) -> float:
        return sum(layer.time_us * layer.features.row[column] for layer in layers) / whole_us

    return Features(instructions_per_cycle=mean(0), miss_rate=mean(1), stall_rate=mean(2))
