"""MobileNet, the first three: depthwise separable convolutions."""

from __future__ import annotations

from collections.abc import Iterable

import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import CLASSES, RESIDUAL_SCALE, Activation, Blocks, Outputs, tensor_shape
from .weights import HARD_SWISH, IMAGE, LINEAR, PRELU, RECTIFIED, After

V1_BODY = (
    *((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)),
    *((512, 1),) * 5,
    *((1024, 2), (1024, 1)),
)
"""Channels and stride of each separable convolution: Howard et al. 2017 (arXiv 1704.04861), table 1."""

V2_BODY = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, repeats, first stride: Sandler et al. 2018 (arXiv 1801.04381), table 2."""

V3_BODY: tuple[tuple[int, int, int, int, Activation, int], ...] = (
    (3, 16, 16, 0, "relu", 1),
    (3, 64, 24, 0, "relu", 2),
    (3, 72, 24, 0, "relu", 1),
    (5, 72, 40, 24, "relu", 2),
    (5, 120, 40, 32, "relu", 1),
    (5, 120, 40, 32, "relu", 1),
    (3, 240, 80, 0, "hard_swish", 2),
    (3, 200, 80, 0, "hard_swish", 1),
    (3, 184, 80, 0, "hard_swish", 1),
    (3, 184, 80, 0, "hard_swish", 1),
    (3, 480, 112, 120, "hard_swish", 1),
    (3, 672, 112, 168, "hard_swish", 1),
    (5, 672, 160, 168, "hard_swish", 2),
    (5, 960, 160, 240, "hard_swish", 1),
    (5, 960, 160, 240, "hard_swish", 1),
)
"""Kernel, expanded channels, channels, squeezed channels (0: no squeeze-excite), activation, stride.

Howard et al. 2019 (arXiv 1905.02244), table 1. Squeezed are a quarter of the expanded channels, rounded to
a multiple of eight as in torchvision.
"""

_AFTER = {"relu": RECTIFIED, "relu6": RECTIFIED, "hard_swish": HARD_SWISH, "prelu": PRELU}

_GATED = 2.0
"""What makes up for a gate of squeeze-excite, which is about one half."""


def mobilenet_v1(net: Blocks, image: Var) -> Outputs:
    """Build MobileNet 1.0."""
    x = net.conv_bn(image, "stem", 32, 3, stride=2, after=IMAGE)
    for index, (channels, stride) in enumerate(V1_BODY, start=1):
        x = separable(net, x, f"block{index}", channels, stride=stride)
    return net.classify(x)


def mobilenet_v2(net: Blocks, image: Var) -> Outputs:
    """Build MobileNetV2 1.0."""
    return net.classify(mobilenet_v2_features(net, image))


def mobilenet_v2_features(net: Blocks, image: Var) -> Var:
    """Add MobileNetV2 1.0 without its classifier."""
    x = net.conv_bn(image, "stem", 32, 3, stride=2, after=IMAGE, activation="relu6")
    x = inverted_residuals(net, x, V2_BODY, "relu6")
    return net.conv_bn(x, "head", 1280, after=LINEAR, activation="relu6")


def mobilenet_v3_large(net: Blocks, image: Var) -> Outputs:
    """Build MobileNetV3-Large 1.0."""
    x = net.conv_bn(image, "stem", 16, 3, stride=2, after=IMAGE, activation="hard_swish")
    for index, (kernel, wide, channels, squeezed, activation, stride) in enumerate(V3_BODY, start=1):
        x = inverted_residual(
            net, x, f"block{index}", channels, stride=stride, wide=wide, kernel=kernel, activation=activation,
            squeezed=squeezed,
        )  # fmt: skip
    x = net.conv_bn(x, "head", 960, after=LINEAR, activation="hard_swish")
    x = net.flatten(net.global_average_pool(x, "pool"), "flatten")
    x = net.activation(net.linear(x, "hidden", 1280, after=HARD_SWISH), "hidden", "hard_swish")
    return {"logits": net.linear(x, "classifier", CLASSES, after=HARD_SWISH)}


def separable(
    net: Blocks,
    x: Var,
    name: str,
    channels: int,
    *,
    stride: int,
    after: After = RECTIFIED,
    activation: Activation = "relu",
) -> Var:
    """Add a convolution of each channel by itself, and one of each pixel."""
    before = tensor_shape(x)[1]
    x = net.conv_bn(
        x, f"{name}.depthwise", before, 3, stride=stride, groups=before, after=after, activation=activation
    )
    return net.conv_bn(x, f"{name}.pointwise", channels, after=after, activation=activation)


def inverted_residuals(
    net: Blocks, x: Var, body: Iterable[tuple[int, int, int, int]], activation: Activation
) -> Var:
    """Add blocks; `body`: expansion, channels, repeats, first stride."""
    index = 0
    for expansion, channels, repeats, first_stride in body:
        for stride in (first_stride, *(1,) * (repeats - 1)):
            index += 1
            wide = expansion * tensor_shape(x)[1]
            x = inverted_residual(
                net, x, f"block{index}", channels, stride=stride, wide=wide, activation=activation
            )
    return x


def inverted_residual(
    net: Blocks,
    x: Var,
    name: str,
    channels: int,
    *,
    stride: int,
    wide: int,
    kernel: int = 3,
    activation: Activation = "relu6",
    squeezed: int = 0,
) -> Var:
    """Add a block that widens, convolves each channel by itself, and narrows; summed where shapes agree.

    `squeezed`: channels of its squeeze-excite; 0: none.
    """
    before, after, y = tensor_shape(x)[1], _AFTER[activation], x
    summed = stride == 1 and before == channels
    if wide > before:
        y = net.conv_bn(y, f"{name}.expand", wide, after=LINEAR, activation=activation)
    y = net.conv_bn(
        y, f"{name}.depthwise", wide, kernel, stride=stride, groups=wide, after=after, activation=activation
    )
    if squeezed:
        y = _squeeze_excite(net, y, f"{name}.gate", squeezed)
        after = after.times(_GATED)
    scale = RESIDUAL_SCALE if summed else 1.0
    y = net.conv_bn(y, f"{name}.project", channels, after=after, scale=scale, activation="none")
    return net.add(x, y, f"{name}.add") if summed else y


def _squeeze_excite(net: Blocks, x: Var, name: str, squeezed: int) -> Var:
    """Multiply each channel by a number between 0 and 1 that depends on the means of all."""
    y = net.conv_relu(net.global_average_pool(x, f"{name}.pool"), f"{name}.squeeze", squeezed)
    y = net.conv(y, f"{name}.excite", tensor_shape(x)[1], bias=True)
    y = net.named(f"{name}.hard_sigmoid", op.hard_sigmoid(y, alpha=1.0 / 6.0))
    return net.named(f"{name}.scale", op.mul(x, y))
