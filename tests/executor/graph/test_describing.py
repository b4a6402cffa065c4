"""Operators in words, with the attributes that rules can name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.executor.graph.inspection import operator_text

from .models import load, model, node, value, weights


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({}, "Conv"),
        ({"kernel_shape": [1, 1], "strides": [1, 1], "group": 1}, "Conv"),
        ({"kernel_shape": [1, 1], "strides": [1, 2]}, "Conv[stride=2]"),
        ({"kernel_shape": [1, 1], "dilations": [2, 2], "auto_pad": "VALID"}, "Conv[dilation=2]"),
    ],
)
def test_attributes_that_are_not_usual_are_said(
    attributes: dict[str, object], text: str, tmp_path: Path
) -> None:
    made = model(
        [node("Conv", "x w", "y", **attributes)],
        [value("x", [1, 8, 6, 6])],
        [value("y", None)],
        weights(w=(8, 8, 1, 1)),
    )
    assert [operator_text(operator) for operator in load(made, tmp_path).graph.operators] == [text]
