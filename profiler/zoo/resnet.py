"""ResNet: residual networks of 18 and 50 layers."""

from __future__ import annotations

from spox import Var

from .blocks import IMAGE, RESIDUAL_SCALE, Blocks, shape_of

WIDTHS = (64, 128, 256, 512)
"""Channels of the four groups of blocks: He et al. 2015 (arXiv 1512.03385), table 1."""


def resnet18() -> bytes:
    """Return ResNet-18 for images of 224 x 224."""
    net = Blocks("resnet18", (1, 3, 224, 224))
    x = _stem(net)
    for index, (width, stride) in enumerate(_blocks((2, 2, 2, 2)), start=1):
        x = _basic(net, x, f"block{index}", width, stride)
    return net.classify(x)


def resnet50() -> bytes:
    """Return ResNet-50 for images of 224 x 224, with the stride on the 3 x 3 convolution (version 1.5)."""
    net = Blocks("resnet50", (1, 3, 224, 224))
    x = _stem(net)
    for index, (width, stride) in enumerate(_blocks((3, 4, 6, 3)), start=1):
        x = _bottleneck(net, x, f"block{index}", width, stride)
    return net.classify(x)


def _blocks(repeats: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return width and stride of every block: the first of each later group halves the size."""
    return [
        (width, 2 if repeat == 0 and group > 0 else 1)
        for group, (width, count) in enumerate(zip(WIDTHS, repeats, strict=True))
        for repeat in range(count)
    ]


def _stem(net: Blocks) -> Var:
    x = net.conv_bn(net.image, "stem", 64, 7, stride=2, gain=IMAGE)
    return net.max_pool(x, "stem.pool", 3, stride=2, pad=1)


def _basic(net: Blocks, x: Var, name: str, width: int, stride: int) -> Var:
    y = net.conv_bn(x, f"{name}.conv1", width, 3, stride=stride)
    y = net.conv_bn(y, f"{name}.conv2", width, 3, scale=RESIDUAL_SCALE, activation="none")
    return _summed(net, x, y, name, stride)


def _bottleneck(net: Blocks, x: Var, name: str, width: int, stride: int) -> Var:
    y = net.conv_bn(x, f"{name}.conv1", width)
    y = net.conv_bn(y, f"{name}.conv2", width, 3, stride=stride)
    y = net.conv_bn(y, f"{name}.conv3", 4 * width, scale=RESIDUAL_SCALE, activation="none")
    return _summed(net, x, y, name, stride)


def _summed(net: Blocks, x: Var, y: Var, name: str, stride: int) -> Var:
    """Add the branch to its input, which is projected where the shapes differ."""
    if shape_of(x) != shape_of(y):
        x = net.conv_bn(x, f"{name}.shortcut", shape_of(y)[1], stride=stride, activation="none")
    return net.relu(net.add(x, y, f"{name}.add"), f"{name}.relu")
