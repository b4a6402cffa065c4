"""ResNet: residual networks of 18, 34 and 50 layers."""

from __future__ import annotations

from collections.abc import Callable

from spox import Var

from .blocks import RESIDUAL_SCALE, Blocks, Outputs, tensor_shape
from .weights import IMAGE

WIDTHS = (64, 128, 256, 512)
"""Channels of the four groups of blocks: He et al. 2015 (arXiv 1512.03385), table 1."""

_Block = Callable[[Blocks, Var, str, int, int], Var]
"""Adds one block: (network, input, name, width, stride)."""


def resnet18(net: Blocks, image: Var) -> Outputs:
    """Build ResNet-18."""
    return _residual(net, image, _basic, (2, 2, 2, 2))


def resnet34(net: Blocks, image: Var) -> Outputs:
    """Build ResNet-34."""
    return _residual(net, image, _basic, (3, 4, 6, 3))


def resnet50(net: Blocks, image: Var) -> Outputs:
    """Build ResNet-50, with the stride on the 3 x 3 convolution (version 1.5)."""
    return _residual(net, image, _bottleneck, (3, 4, 6, 3))


def _residual(net: Blocks, image: Var, block: _Block, repeats: tuple[int, ...]) -> Outputs:
    x = net.conv_bn(image, "stem", 64, 7, stride=2, after=IMAGE)
    x = net.max_pool(x, "stem.pool", 3, stride=2, pad=1)
    for index, (width, stride) in enumerate(_blocks(repeats), start=1):
        x = block(net, x, f"block{index}", width, stride)
    return net.classify(x)


def _blocks(repeats: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return width and stride of every block: the first of each later group halves the size."""
    return [
        (width, 2 if repeat == 0 and group > 0 else 1)
        for group, (width, count) in enumerate(zip(WIDTHS, repeats, strict=True))
        for repeat in range(count)
    ]


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
    if tensor_shape(x) != tensor_shape(y):
        x = net.conv_bn(x, f"{name}.shortcut", tensor_shape(y)[1], stride=stride, activation="none")
    return net.activation(net.add(x, y, f"{name}.add"), name)
