"""Recurrent pipelines for tests, which workers load by the name of this file."""

from __future__ import annotations

from typing import Any

import numpy as np

from gapless.running import CallableLayer, CallableModel, TensorSpec


def _add(x: Any, h: Any) -> Any:
    if (x == -1).any():
        raise ValueError("minus one")
    return (h + x).astype(np.float32)


NET = CallableModel(
    name="net",
    inputs=(TensorSpec(name="x", shape=(4,)), TensorSpec(name="h", shape=(4,))),
    layers=(
        CallableLayer(name="h_out", variants={"*": _add}, inputs=("x", "h")),
        CallableLayer(name="y", variants={"*": lambda h: h.copy()}, inputs=("h_out",)),
    ),
    outputs=("y", "h_out"),
)
"""Adds up what comes: y = h_out = h + x; -1 makes it fail."""

ODD = CallableModel(
    name="odd",
    inputs=(TensorSpec(name="x", shape=(4,)), TensorSpec(name="h", shape=(2,))),
    layers=(CallableLayer(name="y", variants={"*": lambda x, h: x + h.sum()}, inputs=("x", "h")),),
    outputs=("y",),
)
"""Its output is no state of its input h."""
