"""Inception-v3, Inception-v4 (without auxiliary classifiers) and NASNet: cells of branches.

A module is a table: some branches of convolutions in a row, whose outputs are concatenated. Szegedy et al.
2015 (arXiv 1512.00567) for version 3, and 2016 (arXiv 1602.07261), figures 3 to 9, for version 4.
"""

from __future__ import annotations

from functools import partial
from typing import Unpack

import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import Blocks, How, Outputs, tensor_shape
from .weights import IMAGE, RECTIFIED_DEEP

# NASNet-A: cells that a search has found, each of which reads the two before it.
#
# Zoph et al. 2018 (arXiv 1707.07012), figure 4; stems, filters and the halving of what a cell reads of a
# larger map as in the authors' code (github.com/tensorflow/models, slim/nets/nasnet). Left out: the auxiliary
# classifier, the shift by one pixel between the two halves of such a reading, and the one-sided padding of
# strided operators, which is symmetric here.


def nasnet(net: Blocks, image: Var, *, cells: int, filters: int, stem: int) -> Outputs:
    """Build NASNet-A with a given number of normal cells in each of its three rows."""
    x = net.conv(image, "stem", stem, 3, stride=2, pad=0, after=IMAGE)
    before, x = None, net.batch_norm(x, "stem.bn")
    for index, part in enumerate((4, 2)):
        before, x = x, _nas_reduction(net, x, before, f"stem{index}", filters // part)
    for row in range(3):
        width = filters << row
        if row:
            before, x = x, _nas_reduction(net, x, before, f"reduction{row}", width)
        for cell in range(cells):
            before, x = x, _normal(net, x, before, f"row{row}.cell{cell}", width)
    return net.classify(net.activation(x, "last"))


def _normal(net: Blocks, x: Var, before: Var | None, name: str, width: int) -> Var:
    right, left = _fitted(net, x, f"{name}.right", width), _earlier(net, x, before, f"{name}.left", width)
    sides = [
        _sum(
            net, f"{name}.0", _separable(net, right, f"{name}.0a", 5), _separable(net, left, f"{name}.0b", 3)
        ),
        _sum(
            net, f"{name}.1", _separable(net, left, f"{name}.1a", 5), _separable(net, left, f"{name}.1b", 3)
        ),
        _sum(net, f"{name}.2", _halved_average(net, right, f"{name}.2a"), left),
        _sum(
            net,
            f"{name}.3",
            _halved_average(net, left, f"{name}.3a"),
            _halved_average(net, left, f"{name}.3b"),
        ),
        _sum(net, f"{name}.4", _separable(net, right, f"{name}.4a", 3), right),
    ]
    return net.concat([left, *sides], f"{name}.concat")


def _nas_reduction(net: Blocks, x: Var, before: Var | None, name: str, width: int) -> Var:
    """Halve the size; the very first cell has nothing before it, and reads its input twice."""
    right = _fitted(net, x, f"{name}.right", width)
    left = x if before is None else _earlier(net, x, before, f"{name}.left", width)
    halve = partial(_separable, net, left, stride=2, width=width)
    pooled = net.max_pool(right, f"{name}.1a", 3, stride=2, pad=1)
    first = _sum(net, f"{name}.0", _separable(net, right, f"{name}.0a", 5, stride=2), halve(f"{name}.0b", 7))
    second = _sum(net, f"{name}.1", pooled, halve(f"{name}.1b", 7))
    third = _sum(
        net, f"{name}.2", _halved_average(net, right, f"{name}.2a", stride=2), halve(f"{name}.2b", 5)
    )
    fourth = _sum(net, f"{name}.3", _halved_average(net, first, f"{name}.3a"), second)
    again = net.max_pool(right, f"{name}.4b", 3, stride=2, pad=1)
    fifth = _sum(net, f"{name}.4", _separable(net, first, f"{name}.4a", 3), again)
    return net.concat([second, third, fourth, fifth], f"{name}.concat")


def _fitted(net: Blocks, x: Var, name: str, width: int) -> Var:
    x = net.conv(net.activation(x, name), name, width, after=RECTIFIED_DEEP)
    return net.batch_norm(x, f"{name}.bn")


def _earlier(net: Blocks, x: Var, before: Var | None, name: str, width: int) -> Var:
    """Bring what the cell before last has made to the size and width of this cell."""
    assert before is not None
    if tensor_shape(before)[2:] == tensor_shape(x)[2:]:
        return _fitted(net, before, name, width)
    active = net.activation(before, name)
    halves = []
    for half in range(2):
        kept = net.named(f"{name}.kept{half}", op.average_pool(active, kernel_shape=(1, 1), strides=(2, 2)))
        halves.append(net.conv(kept, f"{name}.half{half}", width // 2, after=RECTIFIED_DEEP))
    return net.batch_norm(net.concat(halves, f"{name}.halves"), f"{name}.bn")


def _separable(
    net: Blocks, x: Var, name: str, kernel: int, *, stride: int = 1, width: int | None = None
) -> Var:
    """Add two separable convolutions, each a convolution of every channel and one of every pixel."""
    for index in range(2):
        channels = tensor_shape(x)[1]
        x = net.activation(x, f"{name}.{index}")
        step = 1 if index else stride
        x = net.conv(
            x, f"{name}.{index}.deep", channels, kernel, stride=step, groups=channels, after=RECTIFIED_DEEP
        )
        x = net.conv(x, f"{name}.{index}.wide", width or channels)
        x = net.batch_norm(x, f"{name}.{index}.bn")
    return x


def _halved_average(net: Blocks, x: Var, name: str, *, stride: int = 1) -> Var:
    pool = op.average_pool(x, kernel_shape=(3, 3), strides=(stride, stride), pads=(1,) * 4)
    return net.named(name, pool)


def _sum(net: Blocks, name: str, x: Var, y: Var) -> Var:
    return net.add(x, y, name)


ROW, COLUMN = (1, 7), (7, 1)
SHORT_ROW, SHORT_COLUMN = (1, 3), (3, 1)

Conv = tuple[int, int | tuple[int, int]]
"""Channels and kernel."""

Branch = tuple[Conv, ...]
"""Convolutions one after the other."""


def inception_v3(net: Blocks, image: Var) -> Outputs:
    """Build Inception-v3."""
    x = _stem(net, image)
    x = net.max_pool(x, "stem.pool1", 3, stride=2)
    x = _chain(net, x, "stem.b", ((80, 1),))
    x = _chain(net, x, "stem.c", ((192, 3),), pad=0)
    x = net.max_pool(x, "stem.pool2", 3, stride=2)
    for index, pooled in enumerate((32, 64, 64), start=1):
        branches: tuple[Branch, ...] = (((64, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3)))
        x = _module(net, x, f"a{index}", branches, pooled=pooled)
    x = _reduction(net, x, "reduce_a", (((384, 3),), ((64, 1), (96, 3), (96, 3))))
    for index, c in enumerate((128, 160, 160, 192), start=1):
        branches = (
            ((192, 1),),
            ((c, 1), (c, ROW), (192, COLUMN)),
            ((c, 1), (c, COLUMN), (c, ROW), (c, COLUMN), (192, ROW)),
        )
        x = _module(net, x, f"b{index}", branches, pooled=192)
    x = _reduction(
        net, x, "reduce_b", (((192, 1), (320, 3)), ((192, 1), (192, ROW), (192, COLUMN), (192, 3)))
    )
    for index in (1, 2):
        x = _forked(net, x, f"c{index}", 320, (((384, 1),), ((448, 1), (384, 3))), fork=384, pooled=192)
    return net.classify(x)


def inception_v4(net: Blocks, image: Var) -> Outputs:
    """Build Inception-v4."""
    x = _stem_v4(net, _stem(net, image))
    for index in range(1, 5):
        branches: tuple[Branch, ...] = (((96, 1),), ((64, 1), (96, 3)), ((64, 1), (96, 3), (96, 3)))
        x = _module(net, x, f"a{index}", branches, pooled=96)
    x = _reduction(net, x, "reduce_a", (((384, 3),), ((192, 1), (224, 3), (256, 3))))
    for index in range(1, 8):
        branches = (
            ((384, 1),),
            ((192, 1), (224, ROW), (256, COLUMN)),
            ((192, 1), (192, COLUMN), (224, ROW), (224, COLUMN), (256, ROW)),
        )
        x = _module(net, x, f"b{index}", branches, pooled=128)
    x = _reduction(
        net, x, "reduce_b", (((192, 1), (192, 3)), ((256, 1), (256, ROW), (320, COLUMN), (320, 3)))
    )
    for index in range(1, 4):
        forked: tuple[Branch, ...] = (((384, 1),), ((384, 1), (448, SHORT_COLUMN), (512, SHORT_ROW)))
        x = _forked(net, x, f"c{index}", 256, forked, fork=256, pooled=256)
    return net.classify(x)


def _stem(net: Blocks, image: Var) -> Var:
    """Add the three convolutions with which both begin."""
    x = _conv(net, image, "stem.a1", 32, 3, stride=2, pad=0, after=IMAGE)
    x = _conv(net, x, "stem.a2", 32, 3, pad=0)
    return _conv(net, x, "stem.a3", 64, 3)


def _stem_v4(net: Blocks, x: Var) -> Var:
    x = _reduction(net, x, "stem.b", (((96, 3),),))
    branches: tuple[Branch, ...] = (((64, 1),), ((64, 1), (64, ROW), (64, COLUMN)))
    sides = [_chain(net, x, f"stem.c{index}", branch) for index, branch in enumerate(branches, start=1)]
    sides = [
        _conv(net, side, f"stem.c{index}.valid", 96, 3, pad=0) for index, side in enumerate(sides, start=1)
    ]
    return _reduction(net, net.concat(sides, "stem.c.concat"), "stem.d", (((192, 3),),))


def _conv(
    net: Blocks, x: Var, name: str, channels: int, kernel: int | tuple[int, int] = 1, **how: Unpack[How]
) -> Var:
    how.setdefault("after", RECTIFIED_DEEP)
    return net.conv_bn(x, name, channels, kernel, **how)


def _chain(net: Blocks, x: Var, name: str, branch: Branch, *, pad: int | None = None) -> Var:
    for index, (channels, kernel) in enumerate(branch, start=1):
        x = _conv(net, x, f"{name}.{index}", channels, kernel, pad=pad)
    return x


def _module(net: Blocks, x: Var, name: str, branches: tuple[Branch, ...], *, pooled: int) -> Var:
    """Add branches that keep the size; the last one averages, then has one convolution."""
    sides = [_chain(net, x, f"{name}.branch{index}", branch) for index, branch in enumerate(branches)]
    return net.concat([*sides, _averaged(net, x, name, pooled)], f"{name}.concat")


def _averaged(net: Blocks, x: Var, name: str, channels: int) -> Var:
    pool = op.average_pool(x, kernel_shape=(3, 3), strides=(1, 1), pads=(1,) * 4)
    return _conv(net, net.named(f"{name}.pool", pool), f"{name}.pooled", channels)


def _reduction(net: Blocks, x: Var, name: str, branches: tuple[Branch, ...]) -> Var:
    """Add branches whose last convolution halves the size, beside a pooling that does the same."""
    sides = [net.max_pool(x, f"{name}.pool", 3, stride=2)]
    for index, (*before, (channels, kernel)) in enumerate(branches):
        side = _chain(net, x, f"{name}.branch{index}", tuple(before))
        sides.append(_conv(net, side, f"{name}.branch{index}.half", channels, kernel, stride=2, pad=0))
    return net.concat(sides, f"{name}.concat")


def _forked(
    net: Blocks, x: Var, name: str, direct: int, branches: tuple[Branch, ...], *, fork: int, pooled: int
) -> Var:
    """Add branches that end in two convolutions side by side, a row and a column."""
    sides = [_conv(net, x, f"{name}.direct", direct)]
    for index, branch in enumerate(branches):
        side = _chain(net, x, f"{name}.branch{index}", branch)
        sides.append(_conv(net, side, f"{name}.branch{index}.row", fork, SHORT_ROW))
        sides.append(_conv(net, side, f"{name}.branch{index}.column", fork, SHORT_COLUMN))
    return net.concat([*sides, _averaged(net, x, name, pooled)], f"{name}.concat")
