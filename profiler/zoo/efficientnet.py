"""EfficientNet-Lite: inverted residuals in three sizes, and the detector EfficientDet-Lite0 on top of one.

Lite: without squeeze-excite, with ReLU6; stem, head, and the repeats of the first and the last row are not
scaled (github.com/tensorflow/tpu, models/official/efficientnet/lite). The detector: Tan et al. 2020 (arXiv
1911.09070) with the sizes of github.com/google/automl, efficientdet: 64 channels, 3 cells, plain sums.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import Blocks, Outputs, tensor_shape
from .mobilenet import inverted_residual
from .weights import IMAGE, LINEAR, RECTIFIED_DEEP

BODY = (
    (3, 1, 16, 1, 1),
    (3, 6, 24, 2, 2),
    (5, 6, 40, 2, 2),
    (3, 6, 80, 3, 2),
    (5, 6, 112, 3, 1),
    (5, 6, 192, 4, 2),
    (3, 6, 320, 1, 1),
)
"""Kernel, expansion, channels, repeats, first stride: Tan and Le 2019 (arXiv 1905.11946), table 1."""

_FEATURES, CELLS, _HEAD_DEPTH = 64, 3, 3
_ANCHORS, _KINDS = 9, 90


def efficientnet(net: Blocks, image: Var, *, width: float, depth: float) -> Outputs:
    """Build EfficientNet-Lite with so many times the channels and the blocks of Lite0."""
    x = _rows(net, image, width=width, depth=depth)[-1]
    return net.classify(net.conv_bn(x, "head", 1280, after=LINEAR, activation="relu6"))


def efficientdet_lite0(net: Blocks, image: Var) -> Outputs:
    """Build EfficientDet-Lite0: what it says of all anchors; the choice among them is no part of it."""
    rows = _rows(net, image, width=1.0, depth=1.0)
    maps = [rows[2], rows[4], rows[6]]
    reduced = _resampled(net, maps[-1], "p6")
    maps.append(net.max_pool(reduced, "p6.pool", 3, stride=2, pad=1))
    maps.append(net.max_pool(maps[-1], "p7.pool", 3, stride=2, pad=1))
    for cell in range(CELLS):
        maps = _pyramid(net, maps, f"cell{cell}")
    return {
        name: net.concat([_predicted(net, x, name, level, size) for level, x in enumerate(maps, 3)], name)
        for name, size in (("classes", _KINDS), ("boxes", 4))
    }


def _rows(net: Blocks, image: Var, *, width: float, depth: float) -> list[Var]:
    x = net.conv_bn(image, "stem", 32, 3, stride=2, after=IMAGE, activation="relu6")
    rows: list[Var] = []
    for row, (kernel, expansion, channels, repeats, first_stride) in enumerate(BODY):
        count = repeats if row in (0, len(BODY) - 1) else ceil(depth * repeats)
        for index in range(count):
            stride = 1 if index else first_stride
            name, wide = f"row{row}.{index}", expansion * tensor_shape(x)[1]
            own = _rounded(width * channels)
            x = inverted_residual(net, x, name, own, stride=stride, wide=wide, kernel=kernel)
        rows.append(x)
    return rows


def _rounded(channels: float) -> int:
    """Return the next multiple of eight, but no less than nine tenths."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def _pyramid(net: Blocks, maps: list[Var], name: str) -> list[Var]:
    """Merge five maps from the coarsest down to the finest, and back up."""
    above, down = maps[-1], {len(maps) - 1: maps[-1]}
    for level in reversed(range(len(maps) - 1)):
        side = _resampled(net, maps[level], f"{name}.down{level}.side")
        above = _merged(
            net, [side, _enlarged(net, above, side, f"{name}.down{level}")], f"{name}.down{level}"
        )
        down[level] = above
    merged = [down[0]]
    for level in range(1, len(maps)):
        parts = [_resampled(net, maps[level], f"{name}.up{level}.side")]
        parts += [down[level]] if level < len(maps) - 1 else []
        parts.append(net.max_pool(merged[-1], f"{name}.up{level}.pool", 3, stride=2, pad=1))
        merged.append(_merged(net, parts, f"{name}.up{level}"))
    return merged


def _resampled(net: Blocks, x: Var, name: str) -> Var:
    """Bring a map to the channels of the pyramid."""
    if tensor_shape(x)[1] == _FEATURES:
        return x
    return net.conv_bn(x, name, _FEATURES, after=LINEAR, activation="none")


def _enlarged(net: Blocks, x: Var, like: Var, name: str) -> Var:
    sizes = tensor_shape(like)
    return net.named(
        f"{name}.resize",
        op.resize(
            x,
            sizes=net.fixed(f"sizes.{sizes[2]}", np.array(sizes, np.int64)),
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
    )


def _merged(net: Blocks, parts: list[Var], name: str) -> Var:
    total = parts[0]
    for index, part in enumerate(parts[1:], start=1):
        total = net.add(total, part, f"{name}.add{index}")
    x = net.activation(total, name, "relu6")
    return net.batch_norm(_separable(net, x, f"{name}.conv", _FEATURES), f"{name}.conv.bn")


def _separable(net: Blocks, x: Var, name: str, channels: int, *, shared: str = "") -> Var:
    depthwise, pointwise = (f"{shared}.{part}" if shared else "" for part in ("depthwise", "pointwise"))
    x = net.conv(
        x, f"{name}.depthwise", _FEATURES, 3, groups=_FEATURES, after=RECTIFIED_DEEP, shared=depthwise
    )
    return net.conv(x, f"{name}.pointwise", channels, bias=True, after=LINEAR, shared=pointwise)


def _predicted(net: Blocks, x: Var, name: str, level: int, size: int) -> Var:
    """Add a head: its convolutions are the same for all maps, its normalisations are not."""
    for index in range(_HEAD_DEPTH):
        own = f"{name}.{index}.p{level}"
        x = _separable(net, x, own, _FEATURES, shared=f"{name}.{index}")
        x = net.activation(net.batch_norm(x, f"{own}.bn"), own, "relu6")
    x = _separable(net, x, f"{name}.p{level}", _ANCHORS * size, shared=f"{name}.predict")
    x = net.named(f"{name}.p{level}.last", op.transpose(x, perm=(0, 2, 3, 1)))
    shape = net.fixed(f"{name}.shape", np.array([1, -1, size], np.int64))
    return net.named(f"{name}.p{level}.rows", op.reshape(x, shape))
