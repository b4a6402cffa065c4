"""FSRNet: a face of few pixels made sharp, with what is known of faces (Chen et al. 2018, arXiv 1711.10703).

Its form is that of figure 2 there: a coarse network, an encoder, stacked hourglasses for the prior, and a
decoder. Band says that its transposed convolution has "the wide stride value of 4" (3.2.2): so encoder and
prior work at a quarter of the height and width here, where the paper's halve them. The input is the small
face, already enlarged to 128 x 128.
"""

from __future__ import annotations

import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import RESIDUAL_SCALE, Blocks, Outputs, tensor_shape
from .weights import IMAGE, LINEAR, RECTIFIED, filters

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
