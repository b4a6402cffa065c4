"""MobileNet, the first and the second: depthwise separable convolutions."""

from __future__ import annotations

from spox import Var

from .blocks import IMAGE, LINEAR, RESIDUAL_SCALE, Blocks, shape_of

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


def mobilenet_v1() -> bytes:
    """Return MobileNet 1.0 for images of 224 x 224."""
    net = Blocks("mobilenetv1", (1, 3, 224, 224))
    x = net.conv_bn(net.image, "stem", 32, 3, stride=2, gain=IMAGE)
    for index, (channels, stride) in enumerate(V1_BODY, start=1):
        x = net.conv_bn(x, f"block{index}.depthwise", shape_of(x)[1], 3, stride=stride, groups=shape_of(x)[1])
        x = net.conv_bn(x, f"block{index}.pointwise", channels)
    return net.classify(x)


def mobilenet_v2() -> bytes:
    """Return MobileNetV2 1.0 for images of 224 x 224."""
    net = Blocks("mobilenetv2", (1, 3, 224, 224))
    x = net.conv_bn(net.image, "stem", 32, 3, stride=2, gain=IMAGE, activation="relu6")
    index = 0
    for expansion, channels, repeats, first_stride in V2_BODY:
        for stride in (first_stride, *(1,) * (repeats - 1)):
            index += 1
            x = _inverted_residual(net, x, f"block{index}", channels, stride=stride, expansion=expansion)
    return net.classify(net.conv_bn(x, "head", 1280, gain=LINEAR, activation="relu6"))


def _inverted_residual(net: Blocks, x: Var, name: str, channels: int, *, stride: int, expansion: int) -> Var:
    before = shape_of(x)[1]
    wide = before * expansion
    summed = stride == 1 and before == channels
    y = x
    if expansion > 1:
        y = net.conv_bn(y, f"{name}.expand", wide, gain=LINEAR, activation="relu6")
    y = net.conv_bn(y, f"{name}.depthwise", wide, 3, stride=stride, groups=wide, activation="relu6")
    scale = RESIDUAL_SCALE if summed else 1.0
    y = net.conv_bn(y, f"{name}.project", channels, scale=scale, activation="none")
    return net.add(x, y, f"{name}.add") if summed else y
