"""ONNX operators in words, with the attributes that decide who can run them; layers divided by that."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...formulations.network import Network
from ...formulations.operators import described
from .choices import Granularity
from .flops import operator_cost
from .grouping import Grouping, group

if TYPE_CHECKING:
    from onnx import AttributeProto

    from .operators import Operator, OperatorGraph

_LARGEST = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation"}
"""Lists of numbers, of which the largest counts."""


def operator_text(operator: Operator) -> str:
    """Return an operator as `formulations.operators` describes it: "Conv[kernel=3,stride=2]"."""
    found = dict(_attributes(attribute) for attribute in operator.node.attribute)
    return described(operator.kind, {name: value for name, value in found.items() if name})


def divided(
    graph: OperatorGraph, classes: Sequence[Hashable], *, name: str, source: str = ""
) -> tuple[Network, Grouping]:
    """Return a model in layers of what a runtime fuses, each of operators of one class only.

    Layers have their operators in words instead of plain types, which rules about units can name.
    """
    costs = [operator_cost(graph, operator) for operator in graph.operators]
    grouping = group(graph, costs, Granularity.LAYER, classes=classes)
    texts = list(map(operator_text, graph.operators))
    layers = tuple(
        replace(layer, op_types=tuple(dict.fromkeys(texts[index] for index in members)))
        for layer, members in zip(grouping.layers, grouping.operators, strict=True)
    )
    return Network(
        name=name, layers=layers, tensors=grouping.tensors, shared=grouping.shared, source=source
    ), grouping


def _attributes(attribute: AttributeProto) -> tuple[str, str | int]:
    """Return name and value as descriptions have them; an empty name: not of interest."""
    if attribute.name in _LARGEST and attribute.ints:
        return _LARGEST[attribute.name], max(attribute.ints)
    if attribute.name == "group":
        return "group", attribute.i
    if attribute.name == "mode":
        return "mode", attribute.s.decode()
    return "", ""
