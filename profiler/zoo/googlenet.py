"""GoogLeNet: inception modules, with batch normalisation and without the auxiliary classifiers."""

from __future__ import annotations

from spox import Var

from .blocks import Blocks, Outputs
from .weights import IMAGE

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
