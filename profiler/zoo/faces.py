"""Faces: where they are (RetinaFace), and whose (ArcFace on MobileFaceNet and on ResNet-50)."""

from __future__ import annotations

import numpy as np
import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import RESIDUAL_SCALE, Blocks, Outputs, tensor_shape
from .mobilenet import V1_BODY, inverted_residuals, separable
from .weights import IMAGE, LEAKY, LINEAR, PRELU, RECTIFIED, filters

# FSRNet: a face of few pixels made sharp, with what is known of faces (Chen et al. 2018, arXiv 1711.10703).
#
# Its form is that of figure 2 there: a coarse network, an encoder, stacked hourglasses for the prior, and a
# decoder. Band says that its transposed convolution has "the wide stride value of 4" (3.2.2): so encoder and
# prior work at a quarter of the height and width here, where the paper's halve them. The input is the small
# face, already enlarged to 128 x 128.

WIDTH, PRIOR = 64, 128
"""Channels of the super-resolution, and of the prior."""

HOURGLASSES, HALVINGS = 2, 3
UP = 4
"""The stride of the transposed convolution."""


def fsrnet(net: Blocks, face: Var) -> Outputs:
    """Build FSRNet, for faces of 128 x 128."""
    x = net.conv_relu(face, "coarse.first", WIDTH, 3, after=IMAGE)
    x = _residuals(net, x, "coarse", 3)
    coarse = net.conv(x, "coarse.last", 3, 3, bias=True)
    features = _encoded(net, coarse)
    prior = _prior(net, coarse)
    x = net.concat([features, prior], "decoder.concat")
    x = net.conv_bn(x, "decoder.first", WIDTH, 3)
    kernel = net.weight("decoder.up.weight", filters((WIDTH, WIDTH, UP, UP), RECTIFIED.times(UP)))
    x = net.named("decoder.up", op.conv_transpose(x, kernel, strides=(UP, UP), kernel_shape=(UP, UP)))
    x = net.activation(net.batch_norm(x, "decoder.up.bn"), "decoder.up")
    x = _residuals(net, x, "decoder", 3)
    return {"face": net.conv(x, "decoder.last", 3, 3, bias=True)}


def _encoded(net: Blocks, x: Var) -> Var:
    x = net.conv_bn(x, "encoder.half", WIDTH, 3, stride=2, after=LINEAR)
    x = net.conv_bn(x, "encoder.quarter", WIDTH, 3, stride=2)
    x = _residuals(net, x, "encoder", 12)
    return net.conv_bn(x, "encoder.last", WIDTH, 3)


def _prior(net: Blocks, x: Var) -> Var:
    x = net.conv_bn(x, "prior.half", PRIOR // 2, 7, stride=2, after=LINEAR)
    x = net.conv_bn(x, "prior.quarter", PRIOR, 3, stride=2)
    x = _residuals(net, x, "prior", 3)
    for index in range(HOURGLASSES):
        x = _hourglass(net, x, f"prior.hourglass{index}", HALVINGS)
        x = net.conv_bn(x, f"prior.after{index}", PRIOR, after=LINEAR.times(1 / 3))
    return x


def _hourglass(net: Blocks, x: Var, name: str, halvings: int) -> Var:
    """Look at ever smaller maps, and add what was seen to each larger one on the way back."""
    past = _residual(net, x, f"{name}.past{halvings}")
    y = net.max_pool(x, f"{name}.pool{halvings}", 2, stride=2)
    y = _residual(net, y, f"{name}.in{halvings}")
    inner = _hourglass(net, y, name, halvings - 1) if halvings > 1 else _residual(net, y, f"{name}.bottom")
    y = _residual(net, inner, f"{name}.out{halvings}")
    return net.add(past, net.doubled(y, f"{name}.resize{halvings}"), f"{name}.add{halvings}")


def _residuals(net: Blocks, x: Var, name: str, count: int) -> Var:
    for index in range(count):
        x = _residual(net, x, f"{name}.block{index}")
    return x


def _residual(net: Blocks, x: Var, name: str) -> Var:
    channels = tensor_shape(x)[1]
    y = net.conv_bn(x, f"{name}.conv1", channels, 3, after=LINEAR)
    y = net.conv_bn(y, f"{name}.conv2", channels, 3, scale=RESIDUAL_SCALE, activation="none")
    return net.add(x, y, f"{name}.add")


MOBILE_BODY = ((2, 64, 5, 2), (4, 128, 1, 2), (2, 128, 6, 1), (4, 128, 1, 2), (2, 128, 2, 1))
"""Expansion, channels, repeats, first stride: Chen et al. 2018 (arXiv 1804.07573), table 1."""

IMPROVED_REPEATS = (3, 4, 14, 3)
"""Blocks of each width in the residual network of ArcFace with 50 layers."""

_CHANNELS = 64
_ANCHORS = 2


def retinaface(net: Blocks, image: Var) -> Outputs:
    """Build RetinaFace on MobileNet 0.25: Deng et al. 2020 (arXiv 1905.00641), as biubug6 publishes it."""
    x = net.conv_bn(image, "stem", 8, 3, stride=2, after=IMAGE, activation="leaky")
    sides = []
    for index, (channels, stride) in enumerate(V1_BODY, start=1):
        own = channels // 4
        x = separable(net, x, f"block{index}", own, stride=stride, after=LEAKY, activation="leaky")
        if index in (5, 11, 13):
            sides.append(x)
    maps = [_leaky(net, side, f"side{index}", _CHANNELS, 1) for index, side in enumerate(sides)]
    for index in (1, 0):
        up = net.doubled(maps[index + 1], f"merge{index}.resize")
        maps[index] = _leaky(
            net, net.add(maps[index], up, f"merge{index}.add"), f"merge{index}", _CHANNELS, 3
        )
    maps = [_context(net, x, f"context{index}") for index, x in enumerate(maps)]
    heads = (("scores", 2), ("boxes", 4), ("landmarks", 10))
    found = {name: _faces(net, maps, name, size) for name, size in heads}
    found["scores"] = net.named("scores.softmax", op.softmax(found["scores"], axis=-1))
    return found


def _leaky(net: Blocks, x: Var, name: str, channels: int, kernel: int) -> Var:
    return net.conv_bn(x, name, channels, kernel, after=LEAKY, activation="leaky")


def _context(net: Blocks, x: Var, name: str) -> Var:
    """Look at a map through 3 x 3, 5 x 5 and 7 x 7 at once; the larger ones are convolutions in a row."""
    half, quarter = _CHANNELS // 2, _CHANNELS // 4
    small = net.conv_bn(x, f"{name}.3", half, 3, after=LEAKY, activation="none")
    shared = _leaky(net, x, f"{name}.5a", quarter, 3)
    middle = net.conv_bn(shared, f"{name}.5b", quarter, 3, after=LEAKY, activation="none")
    large = _leaky(net, shared, f"{name}.7b", quarter, 3)
    large = net.conv_bn(large, f"{name}.7c", quarter, 3, after=LEAKY, activation="none")
    return net.activation(net.concat([small, middle, large], f"{name}.concat"), name)


def _faces(net: Blocks, maps: list[Var], name: str, size: int) -> Var:
    rows = []
    shape = net.fixed(f"{name}.shape", np.array([1, -1, size], np.int64))
    for index, x in enumerate(maps):
        y = net.conv(x, f"{name}{index}", _ANCHORS * size, bias=True)
        y = net.named(f"{name}{index}.last", op.transpose(y, perm=(0, 2, 3, 1)))
        rows.append(net.named(f"{name}{index}.rows", op.reshape(y, shape)))
    return net.concat(rows, f"{name}.all")


def mobile_face_net(net: Blocks, face: Var) -> Outputs:
    """Build MobileFaceNet."""
    x = net.conv_bn(face, "stem", 64, 3, stride=2, after=IMAGE, activation="prelu")
    x = net.conv_bn(x, "stem.depthwise", 64, 3, groups=64, after=PRELU, activation="prelu")
    x = inverted_residuals(net, x, MOBILE_BODY, "prelu")
    x = net.conv_bn(x, "last", 512, after=LINEAR, activation="prelu")
    x = net.conv_bn(x, "global", 512, 7, pad=0, groups=512, after=PRELU, activation="none")
    x = net.conv_bn(x, "embed", 128, after=LINEAR, activation="none")
    return {"embedding": net.flatten(x, "flatten")}


def arcface_resnet50(net: Blocks, face: Var) -> Outputs:
    """Build the residual network of ArcFace: Deng et al. 2019 (arXiv 1801.07698), section 3.1."""
    x = net.conv_bn(face, "stem", 64, 3, after=IMAGE, activation="prelu")
    for row, repeats in enumerate(IMPROVED_REPEATS):
        for index in range(repeats):
            x = _improved(net, x, f"row{row}.{index}", 64 << row, 1 if index else 2)
    x = net.flatten(net.batch_norm(x, "last.bn"), "flatten")
    return {"embedding": net.batch_norm(net.linear(x, "embed", 512, after=LINEAR), "embed.bn")}


def _improved(net: Blocks, x: Var, name: str, channels: int, stride: int) -> Var:
    """Add a block of two convolutions that normalises its input, too."""
    y = net.batch_norm(x, f"{name}.bn")
    y = net.conv_bn(y, f"{name}.conv1", channels, 3, after=LINEAR, activation="prelu")
    scale = RESIDUAL_SCALE
    y = net.conv_bn(
        y, f"{name}.conv2", channels, 3, stride=stride, after=PRELU, scale=scale, activation="none"
    )
    if stride > 1:
        x = net.conv_bn(x, f"{name}.shortcut", channels, stride=stride, after=LINEAR, activation="none")
    return net.add(x, y, f"{name}.add")
