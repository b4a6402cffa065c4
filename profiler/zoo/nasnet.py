"""NASNet-A: cells that a search has found, each of which reads the two before it.

Zoph et al. 2018 (arXiv 1707.07012), figure 4; stems, filters and the halving of what a cell reads of a larger
map as in the authors' code (github.com/tensorflow/models, slim/nets/nasnet). Left out: the auxiliary
classifier, the shift by one pixel between the two halves of such a reading, and the one-sided padding of
strided operators, which is symmetric here.
"""

from __future__ import annotations

from functools import partial

import spox.opset.ai.onnx.v17 as op
from spox import Var

from .blocks import Blocks, Outputs, tensor_shape
from .weights import IMAGE, RECTIFIED_DEEP


def nasnet(net: Blocks, image: Var, *, cells: int, filters: int, stem: int) -> Outputs:
    """Build NASNet-A with a given number of normal cells in each of its three rows."""
    x = net.conv(image, "stem", stem, 3, stride=2, pad=0, after=IMAGE)
    before, x = None, net.batch_norm(x, "stem.bn")
    for index, part in enumerate((4, 2)):
        before, x = x, _reduction(net, x, before, f"stem{index}", filters // part)
    for row in range(3):
        width = filters << row
        if row:
            before, x = x, _reduction(net, x, before, f"reduction{row}", width)
        for cell in range(cells):
            before, x = x, _normal(net, x, before, f"row{row}.cell{cell}", width)
    return net.classify(net.activation(x, "last"))


nasnet_large = partial(nasnet, cells=6, filters=168, stem=96)
nasnet_single = partial(nasnet, cells=1, filters=44, stem=32)


def _normal(net: Blocks, x: Var, before: Var | None, name: str, width: int) -> Var:
    right, left = _fitted(net, x, f"{name}.right", width), _earlier(net, x, before, f"{name}.left", width)
    sides = [
        _sum(
            net, f"{name}.0", _separable(net, right, f"{name}.0a", 5), _separable(net, left, f"{name}.0b", 3)
        ),
        _sum(
            net, f"{name}.1", _separable(net, left, f"{name}.1a", 5), _separable(net, left, f"{name}.1b", 3)
        ),
        _sum(net, f"{name}.2", _averaged(net, right, f"{name}.2a"), left),
        _sum(net, f"{name}.3", _averaged(net, left, f"{name}.3a"), _averaged(net, left, f"{name}.3b")),
        _sum(net, f"{name}.4", _separable(net, right, f"{name}.4a", 3), right),
    ]
    return net.concat([left, *sides], f"{name}.concat")


def _reduction(net: Blocks, x: Var, before: Var | None, name: str, width: int) -> Var:
    """Halve the size; the very first cell has nothing before it, and reads its input twice."""
    right = _fitted(net, x, f"{name}.right", width)
    left = x if before is None else _earlier(net, x, before, f"{name}.left", width)
    halve = partial(_separable, net, left, stride=2, width=width)
    pooled = net.max_pool(right, f"{name}.1a", 3, stride=2, pad=1)
    first = _sum(net, f"{name}.0", _separable(net, right, f"{name}.0a", 5, stride=2), halve(f"{name}.0b", 7))
    second = _sum(net, f"{name}.1", pooled, halve(f"{name}.1b", 7))
    third = _sum(net, f"{name}.2", _averaged(net, right, f"{name}.2a", stride=2), halve(f"{name}.2b", 5))
    fourth = _sum(net, f"{name}.3", _averaged(net, first, f"{name}.3a"), second)
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


def _averaged(net: Blocks, x: Var, name: str, *, stride: int = 1) -> Var:
    pool = op.average_pool(x, kernel_shape=(3, 3), strides=(stride, stride), pads=(1,) * 4)
    return net.named(name, pool)


def _sum(net: Blocks, name: str, x: Var, y: Var) -> Var:
    return net.add(x, y, name)
