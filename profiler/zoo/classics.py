"""The classic convolutional networks: AlexNet, VGG-16, SqueezeNet, GoogLeNet and ResNet."""

from __future__ import annotations

from collections.abc import Callable

from spox import Var

from .blocks import CLASSES, RESIDUAL_SCALE, Blocks, Outputs, tensor_shape
from .weights import IMAGE, RECTIFIED, RECTIFIED_DEEP

CONVOLUTIONS = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
"""Channels, kernel, stride, padding: Krizhevsky 2014 (arXiv 1404.5997)."""

POOLED = (1, 2, 5)
"""Convolutions, from 1, that a pooling follows."""


def alexnet(net: Blocks, image: Var) -> Outputs:
    """Build AlexNet."""
    x = image
    for index, (channels, kernel, stride, pad) in enumerate(CONVOLUTIONS, start=1):
        after = IMAGE if index == 1 else RECTIFIED
        x = net.conv_relu(x, f"conv{index}", channels, kernel, stride=stride, pad=pad, after=after)
        if index in POOLED:
            x = net.max_pool(x, f"pool{index}", 3, stride=2)
    x = net.flatten(x, "flatten")
    for name in ("fc6", "fc7"):
        x = net.activation(net.linear(x, name, 4096), name)
    return {"logits": net.linear(x, "fc8", CLASSES)}


GROUPS = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and number of the convolutions before each pooling.

Simonyan and Zisserman 2014 (arXiv 1409.1556), table 1, column D.
"""


def vgg16(net: Blocks, image: Var) -> Outputs:
    """Build VGG-16."""
    x = image
    for group, (channels, count) in enumerate(GROUPS, start=1):
        for index in range(1, count + 1):
            after = IMAGE if group == index == 1 else RECTIFIED_DEEP
            x = net.conv_relu(x, f"conv{group}_{index}", channels, 3, after=after)
        x = net.max_pool(x, f"pool{group}", 2, stride=2)
    x = net.flatten(x, "flatten")
    for name in ("fc6", "fc7"):
        x = net.activation(net.linear(x, name, 4096), name)
    return {"logits": net.linear(x, "fc8", CLASSES)}


BODY = (
    ((16, 64), (16, 64)),
    ((32, 128), (32, 128)),
    ((48, 192), (48, 192), (64, 256), (64, 256)),
)
"""(squeezed, expanded) channels of the fire modules between two poolings.

Iandola et al. 2016 (arXiv 1602.07360); version 1.1 is the authors' own, "SqueezeNet_v1.1" in
github.com/forresti/SqueezeNet: pooling moves up, and the first convolution becomes 64 x 3 x 3.
"""


def squeezenet(net: Blocks, image: Var) -> Outputs:
    """Build SqueezeNet 1.1."""
    x = net.conv_relu(image, "stem", 64, 3, stride=2, pad=0, after=IMAGE)
    index = 1
    for group, modules in enumerate(BODY, start=1):
        x = net.max_pool(x, f"pool{group}", 3, stride=2, ceil=True)
        for squeezed, expanded in modules:
            index += 1
            x = _fire(net, x, f"fire{index}", squeezed, expanded)
    x = net.conv_relu(x, "classifier", CLASSES)
    return {"logits": net.flatten(net.global_average_pool(x, "pool"), "flatten")}


def _fire(net: Blocks, x: Var, name: str, squeezed: int, expanded: int) -> Var:
    x = net.conv_relu(x, f"{name}.squeeze", squeezed)
    sides = [net.conv_relu(x, f"{name}.expand{kernel}", expanded, kernel) for kernel in (1, 3)]
    return net.concat(sides, f"{name}.concat")


MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
"""Channels of the 1 x 1 branch, the two 3 x 3 branches (reduced, full), and after pooling.

Szegedy et al. 2014 (arXiv 1409.4842), table 1. As in torchvision, the "5 x 5" branch is 3 x 3.
"""


def googlenet(net: Blocks, image: Var) -> Outputs:
    """Build GoogLeNet."""
    x = net.conv_bn(image, "conv1", 64, 7, stride=2, after=IMAGE)
    x = net.max_pool(x, "pool1", 3, stride=2, ceil=True)
    x = net.conv_bn(net.conv_bn(x, "conv2", 64), "conv3", 192, 3)
    x = net.max_pool(x, "pool2", 3, stride=2, ceil=True)
    for name, channels in MODULES.items():
        if name == "4a":
            x = net.max_pool(x, "pool3", 3, stride=2, ceil=True)
        if name == "5a":
            x = net.max_pool(x, "pool4", 2, stride=2, ceil=True)
        x = _inception(net, x, f"inception{name}", channels)
    return net.classify(x)


def _inception(net: Blocks, x: Var, name: str, channels: tuple[int, ...]) -> Var:
    one, reduce3, full3, reduce5, full5, pooled = channels
    branches = (
        net.conv_bn(x, f"{name}.branch1", one),
        net.conv_bn(net.conv_bn(x, f"{name}.branch2.reduce", reduce3), f"{name}.branch2", full3, 3),
        net.conv_bn(net.conv_bn(x, f"{name}.branch3.reduce", reduce5), f"{name}.branch3", full5, 3),
        net.conv_bn(net.max_pool(x, f"{name}.pool", 3, stride=1, pad=1), f"{name}.branch4", pooled),
    )
    return net.concat(branches, f"{name}.concat")


WIDTHS = (64, 128, 256, 512)
"""Channels of the four groups of blocks: He et al. 2015 (arXiv 1512.03385), table 1."""

Block = Callable[[Blocks, Var, str, int, int], Var]
"""Adds one block: (network, input, name, width, stride)."""


def resnet(net: Blocks, image: Var, *, block: Block, repeats: tuple[int, ...]) -> Outputs:
    """Build a ResNet from one kind of block."""
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


def basic(net: Blocks, x: Var, name: str, width: int, stride: int) -> Var:
    """Add two convolutions past which the input goes."""
    y = net.conv_bn(x, f"{name}.conv1", width, 3, stride=stride)
    y = net.conv_bn(y, f"{name}.conv2", width, 3, scale=RESIDUAL_SCALE, activation="none")
    return _summed(net, x, y, name, stride)


def bottleneck(net: Blocks, x: Var, name: str, width: int, stride: int) -> Var:
    """Add three convolutions past which the input goes, the stride on the 3 x 3 one (version 1.5)."""
    y = net.conv_bn(x, f"{name}.conv1", width)
    y = net.conv_bn(y, f"{name}.conv2", width, 3, stride=stride)
    y = net.conv_bn(y, f"{name}.conv3", 4 * width, scale=RESIDUAL_SCALE, activation="none")
    return _summed(net, x, y, name, stride)


def _summed(net: Blocks, x: Var, y: Var, name: str, stride: int) -> Var:
    """Add the branch to its input, which is projected where the shapes differ."""
    if tensor_shape(x) != tensor_shape(y):
        x = net.conv_bn(x, f"{name}.shortcut", tensor_shape(y)[1], stride=stride, activation="none")
    return net.activation(net.add(x, y, f"{name}.add"), name)
