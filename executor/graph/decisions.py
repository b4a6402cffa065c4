"""Which tensors of a model are decided: an index, a comparison, a rounded number, a share of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from onnx import helper, numpy_helper

from ..comparing import Decision
from .operators import Operator, OperatorGraph

_INDICES = {"ArgMax": "largest", "ArgMin": "smallest", "TopK": "largest"}
_COMPARISONS = {"Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"}
_ROUNDINGS = {"Round": "nearest", "Floor": "floor", "Ceil": "ceil"}
_SHARES = {"Sigmoid": "sigmoid", "Softmax": "softmax"}
_MOVES = {"Identity", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Not", "Cast"}
"""They move entries and leave them as they are, or all turned round."""


def decision_in(graph: OperatorGraph, tensor: str) -> Decision | None:
    """Return how a tensor is decided from floats of known shape; None: it is not, or in no way known here."""
    made_by = {name: operator for operator in graph.operators for name in operator.outputs}
    undo: list[tuple[str, tuple[int, ...]]] = []
    while (operator := made_by.get(tensor)) is not None and not operator.domain:
        found = _decided(operator, tensor, graph, made_by)
        if found is not None:
            return replace(found, undo=tuple(undo))
        if operator.op_type not in _MOVES or not operator.inputs or operator.inputs[0] not in graph.specs:
            return None
        (tensor, *_), before = operator.inputs, operator.inputs[0]
        undo.append(_move(operator, graph.specs[before].shape))
    return None


def _move(operator: Operator, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return how to undo a move: which shape, or which permutation, its input had."""
    if operator.op_type != "Transpose":
        return ("shape", shape)
    order = _attributes(operator).get("perm", list(reversed(range(len(shape)))))
    return ("permutation", tuple(order.index(axis) for axis in range(len(shape))))


def _decided(
    operator: Operator, tensor: str, graph: OperatorGraph, made_by: Mapping[str, Operator]
) -> Decision | None:
    kind, names = operator.op_type, list(operator.node.input)
    if kind in _COMPARISONS:
        return _comparison(operator, graph)
    if not names or not _is_float(graph, names[0]):
        return None
    if kind in _INDICES:
        return _index(operator, tensor, graph)
    if kind in _ROUNDINGS:
        return Decision(_ROUNDINGS[kind], (names[0],))
    if kind in _SHARES:
        return Decision(_SHARES[kind], (names[0],))
    if kind == "QuantizeLinear":
        return _quantised(operator, graph)
    if kind == "Cast" and _is_integer(graph, tensor):
        before = made_by.get(names[0])
        while before is not None and before.op_type in ("Clip", "Identity"):
            before = made_by.get(before.node.input[0])
        if before is not None and before.op_type in _ROUNDINGS and before.node.input[0] in graph.specs:
            return Decision(_ROUNDINGS[before.op_type], (before.node.input[0],))
        return Decision("truncated", (names[0],))
    return None


def _index(operator: Operator, tensor: str, graph: OperatorGraph) -> Decision | None:
    attributes, values = _attributes(operator), operator.node.input[0]
    ranked = operator.op_type == "TopK"
    if ranked and (operator.node.output[1] != tensor or not attributes.get("sorted", 1)):
        return None  # its values are compared as floats; without an order any index is as good
    kind = _INDICES[operator.op_type] if attributes.get("largest", 1) else "smallest"
    axis = attributes.get("axis", -1 if ranked else 0) % len(graph.specs[values].shape)
    return Decision(kind, (values,), axis=axis, ranked=ranked)


def _comparison(operator: Operator, graph: OperatorGraph) -> Decision | None:
    names = list(operator.node.input)
    computed = [name for name in names if name not in graph.weights]
    if not computed or not all(_is_float(graph, name) for name in computed):
        return None
    constants = [numpy_helper.to_array(graph.weights[name]) for name in names if name in graph.weights]
    return Decision("comparison", tuple(computed), against=constants[0] if constants else None)


def _quantised(operator: Operator, graph: OperatorGraph) -> Decision | None:
    values, step, *zero = operator.node.input
    constants = [
        numpy_helper.to_array(graph.weights[name]).reshape(-1)
        for name in (step, *zero)
        if name in graph.weights
    ]
    if len(constants) != 1 + len(zero) or any(len(each) != 1 for each in constants):
        return None
    step_size, *zeros = (float(each[0]) for each in constants)
    return Decision("nearest", (values,), step=step_size, zero=zeros[0] if zeros else 0.0)


def _is_float(graph: OperatorGraph, name: str) -> bool:
    return name in graph.specs and graph.specs[name].dtype.startswith("float")


def _is_integer(graph: OperatorGraph, name: str) -> bool:
    return name in graph.specs and graph.specs[name].dtype.startswith(("int", "uint"))


def _attributes(operator: Operator) -> dict[str, Any]:
    return {each.name: helper.get_attribute_value(each) for each in operator.node.attribute}
