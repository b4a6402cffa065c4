"""AlexNet, the one-column version of 2014: five convolutions, three fully connected operators."""

from __future__ import annotations

from spox import Var

from .blocks import CLASSES, Blocks, Outputs
from .weights import IMAGE, RECTIFIED

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
