"""Pipelines in batches of several sizes for tests, which workers load by the name of this file."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gapless.running import CallableLayer, CallableModel, TensorSpec


def _slow(x: Any) -> Any:
    if (x == -1).any():
        raise ValueError("minus one")
    time.sleep(0.02)  # however many there are
    return (2 * x + x.sum(axis=1, keepdims=True)).astype(np.float32)


def _linear(x: Any) -> Any:
    time.sleep(0.004 * len(x))
    return (x + 1).astype(np.float32)


def _mixed(x: Any) -> Any:
    return (x + x.sum(axis=0)).astype(np.float32)


def _model(does: Any, name: str, size: int) -> CallableModel:
    layer = CallableLayer(name="y", variants={"*": does}, inputs=("x",))
    return CallableModel(
        name=name, inputs=(TensorSpec(name="x", shape=(size, 8)),), layers=(layer,), outputs=("y",)
    )


SLOW1, SLOW2, SLOW4 = (_model(_slow, "slow", size) for size in (1, 2, 4))
LINEAR1, LINEAR2 = (_model(_linear, "linear", size) for size in (1, 2))
MIXED1, MIXED2 = (_model(_mixed, "mixed", size) for size in (1, 2))
