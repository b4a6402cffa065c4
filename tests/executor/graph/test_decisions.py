"""How tensors of a model are decided, as far as its operators say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import NodeProto, TensorProto

from gapless.executor.comparing import Allowed, Decision
from gapless.executor.model import references

from .models import constant, load, model, node, value, weights

HEAD = node("Conv", "x w", "h", kernel_shape=[1, 1])
"""Six maps of 8 x 8 from four: what is decided in each case."""

CASES: dict[str, tuple[list[NodeProto], list[int], int, Decision | None]] = {
    "a class": (
        [node("ArgMax", "h", "a", axis=1, keepdims=0), node("Unsqueeze", "a one", "y")],
        [1, 1, 8, 8],
        TensorProto.INT64,
        Decision("largest", ("h",), axis=1, undo=(("shape", (1, 8, 8)),)),
    ),
    "scores": (
        [node("Sigmoid", "h", "s"), node("Transpose", "s", "y", perm=[0, 2, 3, 1])],
        [1, 8, 8, 6],
        TensorProto.FLOAT,
        Decision("sigmoid", ("h",), undo=(("permutation", (0, 3, 1, 2)),)),
    ),
    "shares": (
        [node("Softmax", "h", "y", axis=1)],
        [1, 6, 8, 8],
        TensorProto.FLOAT,
        Decision("softmax", ("h",)),
    ),
    "rounded": ([node("Round", "h", "y")], [1, 6, 8, 8], TensorProto.FLOAT, Decision("nearest", ("h",))),
    "cut off": (
        [node("Cast", "h", "y", to=TensorProto.INT32)],
        [1, 6, 8, 8],
        TensorProto.INT32,
        Decision("truncated", ("h",)),
    ),
    "computed": ([node("Tanh", "h", "y")], [1, 6, 8, 8], TensorProto.FLOAT, None),
    "computed from shares": (
        [node("Sigmoid", "h", "s"), node("Mul", "s two", "y")],
        [1, 6, 8, 8],
        TensorProto.FLOAT,
        None,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_decisions_are_read_from_the_operators(case: str, tmp_path: Path) -> None:
    nodes, shape, kind, decision = CASES[case]
    proto = model(
        [HEAD, *nodes],
        [value("x", [1, 4, 8, 8])],
        [value("y", shape, kind)],
        [*weights(w=(6, 4, 1, 1), two=(1,)), constant("one", [1])],
    )
    opened = load(proto, tmp_path)
    assert opened.decision("y") == decision
    right = references(opened, (1, 2, 3))["y"]
    assert right.decision == decision
    assert right.compare(right.arrays[0], 0, Allowed(1e-3)).error == 0
    wrong = np.roll(right.arrays[0].reshape(-1), 1).reshape(shape)
    assert not right.compare(wrong, 0, Allowed(1e-3)).agrees
