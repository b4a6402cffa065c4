"""Contention of the ten networks on the phones: Hetero2Pipe's Table II, and what was made of it.

Table II tells about three of the networks, and Section III about a fourth, YOLOv4. What another one causes
and suffers is estimated as the paper does it: Eq. (1), fitted to Table II's three and applied to the features
of the others, which are computed here (`gapless.profiler.platforms.phone_estimates`), since our copy of
the paper has no numbers of its Fig. 2(b). Estimates never leave the range of the three.

Three rows cannot say how far such a line reaches, so the estimate is held against the paper's Observations 2
and 3. They name SqueezeNet, GoogLeNet, BERT and VGG16: high are all networks of at least the least intensity
among these. They call SqueezeNet and GoogLeNet *outliers* among light networks; MobileNetV2, the third light
one (Section VI-D), is none of them, whatever its features say: it stays below. Little cores suffer like the
big ones, and cause less in proportion to their bandwidth. The Snapdragons, which the paper does not speak of
here, have the contention of the Kirin 990.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod, sqrt

from gapless.formulations.costs import Interference, Provenance
from gapless.formulations.hardware import Platform
from gapless.formulations.network import Network
from gapless.profiler.analytic.model import UnitModel
from gapless.profiler.platforms.phone_estimates import computed_features, mean_features, table_ii_regression
from gapless.profiler.slowdown.contention.features import Features
from gapless.profiler.slowdown.contention.paper import PAPER_UNITS, paper_contention, paper_rank_one
from gapless.profiler.slowdown.contention.rank_one import NetworkFactors, RankOne, UnitPair

from .hetero2pipe import BIG, LITTLE, LITTLE_BYTES, PAPER

NAMED_HIGH = ("squeezenet", "googlenet", "bert", "vgg16")
"""Networks of high contention by the paper's Observations 2 and 3."""

NO_OUTLIERS = ("mobilenetv2",)
"""Light networks that Observation 3 does not name among its outliers."""


def phone_interference(platform: Platform, networks: Sequence[Network], kirin_big: UnitModel) -> Interference:
    """Return the interference of a phone.

    `platform`: the phone; its units are among those of the Kirin 990. `kirin_big`: the big cores of the Kirin
    990, on which the paper measured.
    """
    model = _with_little(paper_rank_one())
    features = {each.name: mean_features(computed_features(each, kirin_big)) for each in networks}
    factors = _factors(model, features)
    high_from = min(round(1000 * each.intensity) for each in factors if each.network in NAMED_HIGH)
    return replace(model, networks=_without_outliers(factors, high_from)).interference(
        platform.unit_names,
        high_from_permille=high_from,
        provenance=Provenance(
            source=f"{PAPER}, Table II and Section III, Kirin 990",
            method="rank-one model fitted to Table II; other networks by Eq. (1) from computed features",
            estimated=True,
            notes=_NOTES,
        ),
    )


_NOTES = (
    "Fitted to Table II: cpu_big against gpu; squeezenet, bert, vit. From one printed pair of networks: npu "
    "against cpu_big and gpu; yolov4, which causes as much as it suffers. Estimated: everything of "
    f"cpu_little, which suffers like cpu_big and causes 1 / {LITTLE_BYTES} of it; all other networks, by "
    "Eq. (1) from computed features (`gapless contention --platform kirin990` shows them). High are the "
    f"networks from the least of {', '.join(NAMED_HIGH)} on, which Observations 2 and 3 name; "
    f"{', '.join(NO_OUTLIERS)}, no "
    "outlier there, is kept below. The Snapdragons were not measured: they have the numbers of the Kirin 990."
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


def _factors(model: RankOne, features: Mapping[str, Features]) -> tuple[NetworkFactors, ...]:
    """Return the factors of all networks: as printed, or estimated within the range of what is printed."""
    printed = (*model.networks, _yolov4(model))
    others = sorted(set(features) - {factors.network for factors in printed})
    rows = [features[name].row for name in others]
    columns = []
    for suffered in (True, False):
        told = [each.sensitivity if suffered else each.intensity for each in model.networks]
        found = table_ii_regression(features, sensitivity=suffered).predict(rows)
        columns.append([min(max(told), max(min(told), value)) for value in found])
    estimated = (
        NetworkFactors(network=name, sensitivity=suffers, intensity=causes)
        for name, suffers, causes in zip(others, *columns, strict=True)
    )
    return (*printed, *estimated)


def _without_outliers(factors: Sequence[NetworkFactors], high_from: int) -> tuple[NetworkFactors, ...]:
    """Return the factors with the light networks that are no outliers where the low ones end."""
    low = max(each.intensity for each in factors if round(1000 * each.intensity) < high_from)
    return tuple(
        replace(each, intensity=min(each.intensity, low)) if each.network in NO_OUTLIERS else each
        for each in factors
    )


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
