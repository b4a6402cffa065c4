"""Layers that take known time, for benchmarks of the pipeline runtime."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gapless.executor.callable_layers import CallableLayer, CallableModel
from gapless.executor.model import TensorSpec

SIDE = 256
"""256 x 256 numbers of 4 bytes: a tensor of 256 KB."""

REPETITIONS = 2
"""Matrix products of one layer: one to a few milliseconds."""


def same(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the tensor."""
    return x


def mix(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Multiply some matrices, and keep the numbers between 0 and 1."""
    result = x
    for _ in range(REPETITIONS):
        result = result @ x
        result /= result.max()
    return result


_IMAGE = TensorSpec(name="image", shape=(SIDE, SIDE))

HOP = CallableModel(
    name="hop",
    inputs=(_IMAGE,),
    layers=tuple(CallableLayer(name=f"same{index}", variants={"*": same}) for index in range(2)),
)

WORK = CallableModel(
    name="work",
    inputs=(_IMAGE,),
    layers=tuple(CallableLayer(name=f"mix{index}", variants={"*": mix}) for index in range(20)),
)
