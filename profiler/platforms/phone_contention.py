"""Contention of the ten networks on the phones: Hetero2Pipe's Table II, and what was made of it.

Table II tells about three of the networks, and Section III about a fourth, YOLOv4. What another one causes
and suffers is estimated from the bytes that it moves in a microsecond on the big cores: by the line through
Table II's three in logarithms (least squares), and never beyond them. That follows the paper's observations 2
and 3 (matrix products with large weights, and light networks such as SqueezeNet and GoogLeNet, press on the
memory), but it measures nothing, and YOLOv4 is far above that line. Little cores suffer like the big ones,
and cause less in proportion to their bandwidth. The Snapdragons, which the paper does not speak of here, have
the contention of the Kirin 990.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import exp, log, prod, sqrt

from ...formulations.costs import Interference, Provenance
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import Platform
from ...formulations.network import Network
from ..analytic.costs import time_of
from ..analytic.model import UnitModel
from ..analytic.work import works_of
from ..slowdown.contention.paper import PAPER_UNITS, paper_contention, paper_rank_one
from ..slowdown.contention.rank_one import NetworkFactors, RankOne, UnitPair
from ..slowdown.contention.split import high_from
from .phones import BIG, LITTLE, LITTLE_BYTES, PAPER


def phone_interference(platform: Platform, networks: Sequence[Network], kirin_big: UnitModel) -> Interference:
    """Return the interference of a phone.

    Parameters
    ----------
    platform
        The phone; its units are among those of the Kirin 990.
    networks
        The ten networks.
    kirin_big
        The big cores of the Kirin 990, on which the paper measured.
    """
    model = _with_little(paper_rank_one())
    model = replace(model, networks=_factors(model, _traffic(networks, kirin_big)))
    intensities = [round(1000 * factors.intensity) for factors in model.networks]
    return model.interference(
        platform.unit_names,
        high_from_permille=high_from(intensities),
        provenance=Provenance(
            source=f"{PAPER}, Table II and Section III, Kirin 990",
            method="rank-one model fitted to Table II; other networks by their memory traffic",
            estimated=True,
            notes=_NOTES,
        ),
    )


_NOTES = (
    "Fitted to Table II: cpu_big against gpu; squeezenet, bert, vit. From one printed pair of networks: npu "
    "against cpu_big and gpu; yolov4, which causes as much as it suffers. Estimated: everything of "
    f"cpu_little, which suffers like cpu_big and causes 1 / {LITTLE_BYTES} of it; all other networks, from "
    "the bytes that they move in a microsecond. High are the networks above the median of the ten; the paper "
    "prints no threshold. The Snapdragons were not measured: they have the numbers of the Kirin 990."
)


def _with_little(model: RankOne) -> RankOne:
    """Return a model with little cores: to the big ones they are what the GPU is, if slower."""
    base = {(pair.victim, pair.aggressor): pair.slowdown for pair in model.pairs}
    base[BIG, BIG] = base[BIG, "gpu"]
    more = [
        pair
        for unit in PAPER_UNITS
        for pair in (
            UnitPair(victim=LITTLE, aggressor=unit, slowdown=base[BIG, unit]),
            UnitPair(victim=unit, aggressor=LITTLE, slowdown=base[unit, BIG] / LITTLE_BYTES),
        )
    ]
    return replace(model, pairs=(*model.pairs, *more))


def _traffic(networks: Sequence[Network], unit: UnitModel) -> dict[str, float]:
    """Return the bytes of weights and tensors that each network moves in a microsecond."""
    found = {}
    for network in networks:
        time = time_of(network, unit)
        if time is None:
            raise InvalidInputError(f"{unit.unit!r} cannot run all of {network.name!r}")
        moved = sum(work.weight_bytes + work.moved_bytes for work in works_of(network))
        found[network.name] = moved / time.of(1)
    return found


def _factors(model: RankOne, traffic: Mapping[str, float]) -> tuple[NetworkFactors, ...]:
    sensitivity = _line([(traffic[fitted.network], fitted.sensitivity) for fitted in model.networks])
    intensity = _line([(traffic[fitted.network], fitted.intensity) for fitted in model.networks])
    printed = (*model.networks, _yolov4(model))
    estimated = (
        NetworkFactors(network=name, sensitivity=sensitivity(moved), intensity=intensity(moved))
        for name, moved in sorted(traffic.items())
        if name not in {factors.network for factors in printed}
    )
    return (*printed, *estimated)


def _yolov4(model: RankOne) -> NetworkFactors:
    """Return YOLOv4 beside BERT on CPU and GPU (Section III).

    Which of the two was on which unit is not said. The product of both slowdowns does not depend on it, and
    gives sensitivity x intensity; each is taken for its root.
    """
    (pair,) = (pair for pair in paper_contention().text if set(pair.units) == {BIG, "gpu"})
    bases = prod(each.slowdown for each in model.pairs if {each.victim, each.aggressor} == set(pair.units))
    network, beside = pair.networks
    other = model.of(beside)
    slowdowns = prod(percent / 100 for percent in pair.percents)
    factor = sqrt(slowdowns / (bases * other.sensitivity * other.intensity))
    return NetworkFactors(network=network, sensitivity=factor, intensity=factor)


def _line(points: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """Return the power law of least squares through points, which never leaves their range."""
    xs, ys = [log(x) for x, _ in points], [log(y) for _, y in points]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - middle_x) ** 2 for x in xs
    )

    def value(x: float) -> float:
        return exp(min(max(ys), max(min(ys), middle_y + slope * (log(x) - middle_x))))

    return value
