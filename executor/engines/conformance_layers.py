"""Python functions that engines for them are tried with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..callable_layers import CallableLayer, CallableModel
from ..model import TensorSpec

Array = NDArray[Any]


def product(a: Array, b: Array) -> Array:
    """Return a matrix product."""
    return a @ b


def shifted(product: Array, b: Array) -> Array:
    """Return a product with the first entry of its second factor taken off."""
    return np.asarray(product - b[0, 0])


def marked(product: Array) -> Array:
    """Return where a product is positive."""
    return np.asarray(product > 0)


def _pipeline(name: str, rows: int, columns: int) -> CallableModel:
    return CallableModel(
        name=name,
        inputs=(TensorSpec(name="a", shape=(rows, columns)), TensorSpec(name="b", shape=(columns, rows))),
        layers=(
            CallableLayer(name="product", variants={"cpu": product}, inputs=("a", "b")),
            CallableLayer(name="shifted", variants={"cpu": shifted}, inputs=("product", "b")),
            CallableLayer(name="marked", variants={"cpu": marked}, inputs=("product",)),
        ),
        outputs=("shifted", "marked"),
    )


PRODUCT = _pipeline("product", 4, 6)
WORK = _pipeline("work", 320, 320)
