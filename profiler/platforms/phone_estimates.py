"""How networks press on the memory of a phone that is not here: Eq. (1) of Hetero2Pipe at work.

For each network, and each of its parts, the features that its layers are computed to have, and the intensity
that the regression over Table II predicts from them. What plans are made with stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...formulations.costs import Interference
from ...formulations.errors import InvalidInputError
from ...formulations.files import INTERFERENCE
from ...formulations.network import Network
from ...formulations.validation import meant
from ..analytic.costs import layer_times, works_of
from ..analytic.model import UnitModel
from ..slowdown.contention.features import Features
from ..slowdown.contention.paper import paper_rank_one
from ..slowdown.contention.parts import PartContention, choose_parts, with_slices
from ..slowdown.contention.result import Part
from ..slowdown.contention.ridge import Form, Ridge, fit_ridge
from .catalog import read_shipped
from .workloads import phone_model, phone_names, phone_network

# Contention intensity of networks that were not measured: Eq. (1) over features that are computed.
#
# The paper reads three features from the counters of the CPU (`features`). Where there are no counters,
# because the device is not there, the same three are computed for each layer from what it has to do and how
# long it takes:
#
# * *instructions per cycle*: operations a microsecond, as a share of the rate of convolutions;
# * *cache misses by accesses*: bytes of weights and tensors, by these and the bytes that the innermost loop
#   loads. A micro-kernel for 8 x 12 numbers loads 20 of them for 192 operations;
# * *stalled cycles*: the share of the time that moving the bytes takes.
#
# The prediction is linear, and features of a chunk are the means of those of its layers, weighted by time. So
# the intensity of a network or chunk is the mean of the intensities of its layers: there is one for each.

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


MEASURED_ON, BIG = "kirin990", "cpu_big"
"""The phone on which the paper measured contention, and its big cores."""

ALPHA = 0.1
"""Regularisation of Eq. (1): little. Leaving one of three rows out says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedPart:
    """Layers [start, stop) of a network.

    `network`, `start`, `stop`, `first`: which layers; `first` is the name of the first.
    """

    network: str
    start: int
    stop: int
    first: str
    time_us: float  # on the big cores, alone
    features: Features  # computed, not counted
    intensity: float
    """What Eq. (1) predicts from them."""
    high: bool  # whether that is high, by the threshold of networks


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedContention:
    """Contention of networks on a phone, estimated.

    `form`, `regression`: what Eq. (1) was applied to, and its fit.
    """

    platform: str  # the phone
    form: Form
    regression: Ridge
    interference: Interference  # what plans are made with there: of the ten shipped networks
    networks: tuple[EstimatedPart, ...]  # the networks whole
    parts: tuple[EstimatedPart, ...]  # their parts, or layers

    @property
    def by_slice(self) -> Interference:
        """What plans are made with by slice: as by network, the parts being slices.

        Eq. (1) is about intensities; sensitivities stay those of the networks. Parts are scaled by their
        times on the big cores: there a chunk of the whole network has the intensity of the network. On other
        units it does not: of vgg16 on the NPU of the Kirin 990 it is 2.17 with a slice for each layer, and
        0.93 by network.
        """
        own = [
            PartContention(
                part=Part(network=each.network, start=each.start, stop=each.stop),
                time_us=each.time_us,
                causes=each.intensity,
                suffers=1.0,
            )
            for each in self.parts
        ]
        return with_slices(self.interference, own)


def estimate_contention(
    networks: Sequence[Network], *, platform: str = MEASURED_ON, form: Form = Form.CENTRED, parts: int = 0
) -> EstimatedContention:
    """Return the intensities of networks, and of their parts, on the big cores of a phone.

    `platform`: a shipped phone. The features are those on the Kirin 990, which the paper measured. `form`:
    what Eq. (1) is applied to. `parts`: in how many parts each network is looked at; 0: each layer by itself.
    """
    if platform not in phone_names():
        raise InvalidInputError(
            f"contention cannot be estimated on {platform!r}; {meant(platform, phone_names())}"
        )
    big = next(unit for unit in phone_model(MEASURED_ON).units if unit.unit == BIG)
    told = {name: computed_features(phone_network(name), big) for name in _told()}
    regression = table_ii_regression({name: mean_features(rows) for name, rows in told.items()}, form=form)
    interference = read_shipped(f"{platform}/interference.json", INTERFERENCE)
    estimator = _Estimator(big, regression, interference.high_from_permille or 0)
    return EstimatedContention(
        platform=platform,
        form=form,
        regression=regression,
        interference=interference,
        networks=tuple(part for each in networks for part in estimator.parts(each, [(0, len(each.layers))])),
        parts=tuple(part for each in networks for part in estimator.parts(each, _spans(each, parts))),
    )


@dataclass(frozen=True, slots=True)
class _Estimator:
    unit: UnitModel
    regression: Ridge
    high_from_permille: int

    def parts(self, network: Network, spans: Sequence[tuple[int, int]]) -> list[EstimatedPart]:
        """Return the parts of a network with these layers."""
        layers = computed_features(network, self.unit)
        return [self._part(network.name, start, layers[start:stop]) for start, stop in spans]

    def _part(self, network: str, start: int, layers: Sequence[LayerFeatures]) -> EstimatedPart:
        features = mean_features(layers)
        (intensity,) = self.regression.predict([features.row])
        return EstimatedPart(
            network=network,
            start=start,
            stop=start + len(layers),
            first=layers[0].name,
            time_us=sum(layer.time_us for layer in layers),
            features=features,
            intensity=intensity,
            high=round(1000 * intensity) >= self.high_from_permille,
        )


def _spans(network: Network, parts: int) -> list[tuple[int, int]]:
    if not parts:
        return [(layer, layer + 1) for layer in range(len(network.layers))]
    return [(part.start, part.stop) for part in choose_parts(network, count=parts)]


def _told() -> tuple[str, ...]:
    """Return the networks that Table II tells about."""
    return tuple(each.network for each in paper_rank_one().networks)


def table_ii_regression(
    features: Mapping[str, Features], *, form: Form = Form.CENTRED, sensitivity: bool = False
) -> Ridge:
    """Return Eq. (1) fitted to the intensities that Table II tells, of three networks.

    `features`: of these networks on the big cores of the Kirin 990, and of any others; `form`: what the
    equation is applied to; `sensitivity`: whether it is to predict what networks suffer instead, which the
    paper does not do.
    """
    rows = paper_rank_one().networks
    targets = [each.sensitivity if sensitivity else each.intensity for each in rows]
    return fit_ridge([features[each.network].row for each in rows], targets, alpha=ALPHA, form=form)
