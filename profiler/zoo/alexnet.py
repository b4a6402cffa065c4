"""AlexNet, the one-column version of 2014: five convolutions, three fully connected operators."""

from __future__ import annotations

from .blocks import CLASSES, IMAGE, RECTIFIED, Blocks

CONVOLUTIONS = ((64, 11, 4, 2), (192, 5, 1, 2), (384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
"""Channels, kernel, stride, padding: Krizhevsky 2014 (arXiv 1404.5997)."""

POOLED = (1, 2, 5)
"""Convolutions, from 1, that a pooling follows."""


def alexnet() -> bytes:
    """Return AlexNet for images of 224 x 224."""
    net = Blocks("alexnet", (1, 3, 224, 224))
    x = net.image
    for index, (channels, kernel, stride, pad) in enumerate(CONVOLUTIONS, start=1):
        gain = IMAGE if index == 1 else RECTIFIED
        x = net.conv_relu(x, f"conv{index}", channels, kernel, stride=stride, pad=pad, gain=gain)
        if index in POOLED:
            x = net.max_pool(x, f"pool{index}", 3, stride=2)
    x = net.flatten(x, "flatten")
    for name in ("fc6", "fc7"):
        x = net.relu(net.linear(x, name, 4096), f"{name}.relu")
    return net.serialise(net.linear(x, "fc8", CLASSES))
