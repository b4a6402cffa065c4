"""VGG-16: thirteen convolutions of 3 x 3, three fully connected operators."""

from __future__ import annotations

from spox import Var

from .blocks import CLASSES, Blocks, Outputs
from .weights import IMAGE, RECTIFIED_DEEP

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
