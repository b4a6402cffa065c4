"""How good predictors are on networks, and on devices, that had no part in their training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .device import Embedding
from .examples import LEAST_US, Dataset
from .features import NetworkFeatures
from .predictors import ErrorRow, PredictionMethod

if TYPE_CHECKING:
    from numpy.typing import NDArray

Predict = Callable[[NetworkFeatures, Sequence[Embedding]], "NDArray[Any]"]
"""From a network and devices to microseconds by [device][layer]."""

FAMILIES = (
    ("alexnet", "vgg16", "bert", "bert-large", "two-tower", "fsrnet"),
    ("resnet34", "resnet50", "vit", "vit-large", "deit-small", "arcface-resnet50", "arcface-mobilenet"),
    ("inceptionv3", "inceptionv4", "mobilenetv1", "retinaface", "nasnet-single", "nasnet-large"),
    (
        *("yolov2", "yolov4", "mobilenetv3-large", "lstm-attention"),
        *("efficientnet-lite1", "efficientnet-lite2", "efficientnet-lite3", "efficientdet-lite0"),
    ),
)
"""Networks that are held out together: never the one while its sibling is learned from, but for the
yardsticks, which describe a device and so are known."""

Errors = dict[str, list[float]]
"""Relative errors, predicted over measured minus one, of "layers", "shards" and "networks"."""


def folds(networks: Sequence[str], yardsticks: Sequence[str]) -> list[tuple[str, ...]]:
    """Return which networks are held out together; networks of no known family are shared out in turn."""
    known = {name for family in FAMILIES for name in family}
    others = [name for name in networks if name not in known and name not in yardsticks]
    found = [
        (*(name for name in family if name in networks), *others[place :: len(FAMILIES)])
        for place, family in enumerate(FAMILIES)
    ]
    return [fold for fold in found if fold]


def errors_of(data: Dataset, predict: Predict) -> Errors:
    """Return the errors of a predictor on all that a data set holds.

    Shards are judged as a plan sees them: by the sum of their layers in the table of the whole network, and
    what a session costs on the device.
    """
    found: Errors = {"layers": [], "shards": [], "networks": []}
    for kind in data.types:
        for entry in kind.times:
            features = data.networks[entry.network]
            layer_us = np.maximum(predict(features, [kind.embedding])[0], 1.0)
            if entry.layer_us:
                measured = np.array(entry.layer_us)
                kept = measured >= LEAST_US
                found["layers"] += list(layer_us[kept] / measured[kept] - 1)
            for span in entry.spans:
                whole = span.stop - span.start == len(layer_us)
                predicted = layer_us[span.start : span.stop].sum() + kind.embedding.session_us
                found["networks" if whole else "shards"].append(float(predicted / span.run_us - 1))
    return found


def merged(parts: Sequence[Errors]) -> Errors:
    """Return the errors of several parts together."""
    return {what: [error for part in parts for error in part[what]] for what in parts[0]}


def rows_of(
    method: PredictionMethod | str, split: str, errors: Mapping[str, Sequence[float]]
) -> tuple[ErrorRow, ...]:
    """Return errors in a few numbers."""
    rows = []
    for what, values in errors.items():
        if values:
            absolute = np.abs(values)
            rows.append(
                ErrorRow(
                    method=str(method),
                    split=split,
                    what=what,
                    count=len(values),
                    median=float(np.median(absolute)),
                    p90=float(np.percentile(absolute, 90)),
                    above_20=float((absolute > 0.2).mean()),
                )
            )
    return tuple(rows)
