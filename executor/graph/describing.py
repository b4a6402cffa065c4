"""ONNX operators in words, with the attributes that decide who can run them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...formulations.operators import described

if TYPE_CHECKING:
    from onnx import AttributeProto

    from .operators import Operator

_LARGEST = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation"}
"""Lists of numbers, of which the largest counts."""


def operator_text(operator: Operator) -> str:
    """Return an operator as `formulations.operators` describes it: "Conv[kernel=3,stride=2]"."""
    found = dict(_attributes(attribute) for attribute in operator.node.attribute)
    return described(operator.kind, {name: value for name, value in found.items() if name})


def _attributes(attribute: AttributeProto) -> tuple[str, str | int]:
    """Return name and value as descriptions have them; an empty name: not of interest."""
    if attribute.name in _LARGEST and attribute.ints:
        return _LARGEST[attribute.name], max(attribute.ints)
    if attribute.name == "group":
        return "group", attribute.i
    if attribute.name == "mode":
        return "mode", attribute.s.decode()
    return "", ""
