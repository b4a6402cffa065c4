"""SqueezeNet 1.1: fire modules."""

from __future__ import annotations

from spox import Var

from .blocks import CLASSES, Blocks, Outputs
from .weights import IMAGE

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
