"""YOLOv2 and YOLOv4, up to the convolutions that predict boxes.

After the files yolov2.cfg and yolov4.cfg of darknet (github.com/AlexeyAB/darknet), for the 80 classes of
COCO. What follows in those files (decoding, suppression) is not part of the networks.
"""

from __future__ import annotations

from typing import Unpack

import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import RESIDUAL_SCALE, Blocks, How, Outputs
from .weights import IMAGE, LEAKY, MISH

DARKNET19 = (
    (32,),
    (64,),
    (128, 64, 128),
    (256, 128, 256),
    (512, 256, 512, 256, 512),
    (1024, 512, 1024, 512, 1024),
)
"""Channels of the convolutions between two poolings; kernels are 3, 1, 3, 1, 3.

Redmon and Farhadi 2016 (arXiv 1612.08242), table 6.
"""

CSP_DARKNET53 = ((64, 64, 1), (128, 64, 2), (256, 128, 8), (512, 256, 8), (1024, 512, 4))
"""Channels, channels of each of the two parts, residual blocks.

Bochkovskiy et al. 2020 (arXiv 2004.10934).
"""

BOX = 85
"""What is predicted for one box: its four sides, whether there is something, and 80 classes."""


def yolo_v2(net: Blocks, image: Var) -> Outputs:
    """Build YOLOv2: five boxes at each place."""
    x, fine = image, image
    for group, widths in enumerate(DARKNET19, start=1):
        if group > 1:
            fine, x = x, net.max_pool(x, f"pool{group - 1}", 2, stride=2)
        for index, channels in enumerate(widths, start=1):
            after = IMAGE if group == 1 else LEAKY
            x = _leaky(net, x, f"conv{group}_{index}", channels, 1 if index % 2 == 0 else 3, after=after)
    for index in (1, 2):
        x = _leaky(net, x, f"detect{index}", 1024, 3)
    fine = _leaky(net, fine, "passthrough", 64)
    fine = net.named("reorg", op.space_to_depth(fine, blocksize=2))
    x = _leaky(net, net.concat([fine, x], "concat"), "detect3", 1024, 3)
    return {"boxes": net.conv(x, "predict", 5 * BOX, bias=True, after=LEAKY)}


def yolo_v4(net: Blocks, image: Var) -> Outputs:
    """Build YOLOv4: three boxes at each place of three grids."""
    x = _mish(net, image, "stem", 32, 3, after=IMAGE)
    scales = []
    for index, (channels, part, repeats) in enumerate(CSP_DARKNET53, start=1):
        x = _cross_partial(net, x, f"csp{index}", channels, part=part, repeats=repeats)
        scales.append(x)
    *_, fine, middle, coarse = scales
    coarse = _alternating(net, coarse, "spp.before", 512, 3)
    pools = [net.max_pool(coarse, f"spp.pool{k}", k, stride=1, pad=k // 2) for k in (13, 9, 5)]
    coarse = _alternating(net, net.concat([*pools, coarse], "spp.concat"), "spp.after", 512, 3)
    middle = _merged_up(net, coarse, middle, "up1", 256)
    fine = _merged_up(net, middle, fine, "up2", 128)
    middle = _merged_down(net, fine, middle, "down1", 256)
    coarse = _merged_down(net, middle, coarse, "down2", 512)
    grids = {"fine": (fine, 256), "middle": (middle, 512), "coarse": (coarse, 1024)}
    return {name: _head(net, x, f"head_{name}", channels) for name, (x, channels) in grids.items()}


def _leaky(net: Blocks, x: Var, name: str, channels: int, kernel: int = 1, **how: Unpack[How]) -> Var:
    how.setdefault("after", LEAKY)
    return net.conv_bn(x, name, channels, kernel, activation="leaky", **how)


def _mish(
    net: Blocks, x: Var, name: str, channels: int, kernel: int = 1, *, scale: float = 1.0, **how: Unpack[How]
) -> Var:
    how.setdefault("after", MISH)
    return net.conv_bn(x, name, channels, kernel, scale=scale, activation="mish", **how)


def _cross_partial(net: Blocks, x: Var, name: str, channels: int, *, part: int, repeats: int) -> Var:
    """Halve the size, then send one part through residual blocks and the other one past them."""
    x = _mish(net, x, f"{name}.down", channels, 3, stride=2)
    past = _mish(net, x, f"{name}.past", part)
    y = _mish(net, x, f"{name}.through", part)
    for index in range(1, repeats + 1):
        z = _mish(net, y, f"{name}.block{index}.reduce", channels // 2)
        z = _mish(net, z, f"{name}.block{index}.conv", part, 3, scale=RESIDUAL_SCALE)
        y = net.add(y, z, f"{name}.block{index}.add")
    y = _mish(net, y, f"{name}.after", part)
    return _mish(net, net.concat([y, past], f"{name}.concat"), f"{name}.merge", channels)


def _alternating(net: Blocks, x: Var, name: str, channels: int, count: int) -> Var:
    """Add convolutions of 1 x 1 and 3 x 3 in turn; the latter have twice the channels."""
    for index in range(count):
        wide = index % 2
        x = _leaky(net, x, f"{name}.{index + 1}", channels << wide, 1 + 2 * wide)
    return x


def _merged_up(net: Blocks, coarse: Var, fine: Var, name: str, channels: int) -> Var:
    """Bring a coarse grid to a finer one."""
    up = net.doubled(_leaky(net, coarse, f"{name}.reduce", channels), f"{name}.upsample")
    sides = [_leaky(net, fine, f"{name}.side", channels), up]
    return _alternating(net, net.concat(sides, f"{name}.concat"), name, channels, 5)


def _merged_down(net: Blocks, fine: Var, coarse: Var, name: str, channels: int) -> Var:
    """Bring a fine grid to a coarser one."""
    down = _leaky(net, fine, f"{name}.half", channels, 3, stride=2)
    return _alternating(net, net.concat([down, coarse], f"{name}.concat"), name, channels, 5)


def _head(net: Blocks, x: Var, name: str, channels: int) -> Var:
    x = _leaky(net, x, f"{name}.conv", channels, 3)
    return net.conv(x, f"{name}.predict", 3 * BOX, bias=True, after=LEAKY)
