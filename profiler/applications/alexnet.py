"""The small AlexNet of BetterTogether for images of 32 x 32, dense and with pruned convolutions, in numpy.

Shapes and layers are those of its Table II (IISWC 2025), a batch of 128 images a request; weights are random,
the same in every process. Of the sparse network the paper says that the filters were pruned and kept as
compressed sparse rows, but not how many weights are left: `DENSITY` is a choice of this project.

Tensors are (images, channels, height, width). Each convolution has a kernel for a CPU, and another algorithm
for other kinds of units, equal up to rounding; both **run on a core**, like those of `octree`. The third one
is for OpenCL devices.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ...executor.callable_layers import ANY_UNIT, CallableLayer, CallableModel, Function
from ...executor.model import TensorSpec
from ...executor.opencl_functions import OPENCL
from ...formulations.hardware import UnitKind
from . import convolutions_opencl
from .convolutions import GatheredRows, MatrixProduct, ShiftedSum, SparseProduct, pruned
from .convolutions_opencl import classification, dense_convolution, sparse_convolution

if TYPE_CHECKING:
    from .convolutions import Array

BATCH = 128
"""Images a request, as in Table II."""

DENSITY = 0.1
"""Share of the weights of each filter that pruning leaves."""

SIZE, CHANNELS, CLASSES = 32, 3, 10
FILTERS = (16, 32, 64, 64, 64)
"""Channels that each convolution gives; all have kernels of 3 x 3, stride 1, padding 1 (Table II)."""

POOLED = (1, 2, 5)
"""Convolutions, from 1, that a pooling of 2 x 2 follows."""

Kernels = Callable[["Array", "Array"], dict[str, Function]]
"""From weights (filters, channels, 3, 3) and biases (filters,) to a function for each kind of unit."""


def dense_alexnet(batch: int = BATCH, *, seed: int = 0) -> CallableModel:
    """Return the dense network, for a batch of images a request.

    A CPU multiplies matrices (im2col); other units add up the nine shifted images.
    """
    return _alexnet("cifar-alexnet-dense", batch, seed, _dense)


def sparse_alexnet(batch: int = BATCH, *, density: float = DENSITY, seed: int = 0) -> CallableModel:
    """Return the network with pruned convolutions, for a batch of images a request.

    A CPU goes through compressed sparse rows (scipy); other units gather the rows that a filter needs.

    `density`: share of the weights of each filter that is left, those of largest magnitude.
    """
    return _alexnet("cifar-alexnet-sparse", batch, seed, partial(_sparse, density=density))


def max_pool(images: Array) -> Array:
    """Return the largest of each 2 x 2 pixels."""
    even, odd = images[:, :, ::2], images[:, :, 1::2]
    rows = np.maximum(even, odd)
    return np.maximum(rows[..., ::2], rows[..., 1::2])


def _dense(weights: Array, biases: Array) -> dict[str, Function]:
    return {
        OPENCL: dense_convolution(weights, biases),
        UnitKind.CPU: MatrixProduct(weights=weights, biases=biases),
        ANY_UNIT: ShiftedSum(weights=weights, biases=biases),
    }


def _sparse(weights: Array, biases: Array, *, density: float) -> dict[str, Function]:
    rows = pruned(weights, density)
    return {
        OPENCL: sparse_convolution(rows, biases),
        UnitKind.CPU: SparseProduct(rows=rows, biases=biases),
        ANY_UNIT: GatheredRows(rows=rows, biases=biases),
    }


def _alexnet(name: str, batch: int, seed: int, kernels: Kernels) -> CallableModel:
    random = np.random.default_rng(seed)
    pooling: dict[str, Function] = {ANY_UNIT: max_pool, OPENCL: convolutions_opencl.max_pool}
    layers, channels, size, pools = [], CHANNELS, SIZE, 0
    for number, filters in enumerate(FILTERS, start=1):
        weights = _normal(random, (filters, channels, 3, 3), np.sqrt(2 / (9 * channels)))
        biases = _normal(random, (filters,), 0.1)
        layers.append(CallableLayer(name=f"conv{number}", variants=kernels(weights, biases)))
        channels = filters
        if number in POOLED:
            size, pools = size // 2, pools + 1
            layers.append(CallableLayer(name=f"pool{pools}", variants=pooling))
    inputs = channels * size * size
    weights = _normal(random, (CLASSES, inputs), np.sqrt(1 / inputs))
    biases = _normal(random, (CLASSES,), 0.1)

    def classify(images: Array) -> Array:
        """Return the probability of each class (fully connected, softmax)."""
        logits = images.reshape(len(images), -1) @ weights.T + biases
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    classifying: dict[str, Function] = {ANY_UNIT: classify, OPENCL: classification(weights, biases)}
    layers.append(CallableLayer(name="fc", variants=classifying))
    images = TensorSpec(name="images", shape=(batch, CHANNELS, SIZE, SIZE))
    return CallableModel(name=name, inputs=(images,), layers=tuple(layers))


def _normal(random: np.random.Generator, shape: tuple[int, ...], scale: float) -> Array:
    return (scale * random.standard_normal(shape)).astype(np.float32)


DENSE_ALEXNET = dense_alexnet()
SPARSE_ALEXNET = sparse_alexnet()
