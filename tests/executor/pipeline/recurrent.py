"""A recurrent pipeline for tests, which workers load by the name of this file."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np

from gapless.running import CallableLayer, CallableModel, TensorSpec


def _into(x: Any) -> Any:
    mark = Path(os.environ.get("GAPLESS_TEST_MARK", ""))
    if (x == 13).all() and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return (x + 1).astype(np.float32)


def _cell(a: Any, h: Any) -> Any:
    return (0.5 * h + a).astype(np.float32)


NET = CallableModel(
    name="net",
    inputs=(TensorSpec(name="x", shape=(4,)), TensorSpec(name="h", shape=(4,))),
    layers=(
        CallableLayer(name="a", variants={"*": _into}, inputs=("x",)),
        CallableLayer(name="b", variants={"*": _cell}, inputs=("a", "h")),
        CallableLayer(name="h_out", variants={"*": lambda b: b - 1}, inputs=("b",)),
        CallableLayer(name="y", variants={"*": lambda h: h.copy() * 2}, inputs=("h_out",)),
    ),
    outputs=("y", "h_out"),
)
"""h_out = h / 2 + x, by the layers 1 and 2; y = 2 h_out. A 13 ends the worker that gets it first."""
