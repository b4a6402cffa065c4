"""Floating-point operations and bytes of an operator, from its type and the shapes around it.

A multiplication with its addition counts as two. What only moves data counts as none, element by element
work as one an output element, and pooling and reductions as one for each element looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from .op_types import MOVING, REDUCING

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto

    from .operators import Operator, OperatorGraph

BYTES_WEIGHT = 4

_PER_OUTPUT = {
    "BatchNormalization": 2,
    "Softmax": 5,
    "LogSoftmax": 5,
    "LayerNormalization": 8,
    "GroupNormalization": 8,
    "InstanceNormalization": 8,
    "RMSNormalization": 5,
    "HardSwish": 3,
    "HardSigmoid": 2,
    "LRN": 5,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCost:
    """What one operator costs, whoever runs it."""

    flops: int | None
    """Floating-point operations; None when unknown (control flow, foreign domains, unknown shapes)."""
    weight_bytes: int  # bytes of its initializers
    moved_bytes: int  # bytes of the tensors that it reads and makes, without its weights

    @property
    def effort(self) -> int:
        """Its work in one number: a byte that is moved counts like `BYTES_WEIGHT` operations."""
        return (self.flops or 0) + BYTES_WEIGHT * (self.moved_bytes + self.weight_bytes)


def operator_cost(graph: OperatorGraph, operator: Operator) -> OperatorCost:
    """Return what an operator costs."""
    tensors = [graph.specs[name] for name in (*operator.inputs, *operator.outputs) if name in graph.specs]
    return OperatorCost(
        flops=_flops(graph, operator),
        weight_bytes=graph.weight_bytes_of([operator]),
        moved_bytes=sum(tensor.bytes for tensor in tensors),
    )


def _flops(graph: OperatorGraph, operator: Operator) -> int | None:
    if operator.domain or operator.has_subgraphs:
        return None
    if operator.op_type in MOVING:
        return 0
    count = _COUNTERS.get(operator.op_type, _elementwise)
    try:
        return count(_Shapes(graph, operator.node), operator.node)
    except (KeyError, IndexError, ValueError):
        return None


class _Shapes:
    """Shapes of the inputs and outputs of a node by position; KeyError where one is not known."""

    def __init__(self, graph: OperatorGraph, node: NodeProto) -> None:
        self._graph = graph
        self._node = node

    def input(self, position: int) -> tuple[int, ...]:
        name = self._node.input[position]
        weight = self._graph.weights.get(name)
        return tuple(weight.dims) if weight is not None else self._graph.specs[name].shape

    @property
    def output(self) -> tuple[int, ...]:
        return self._graph.specs[next(filter(None, self._node.output))].shape


_Counter = Callable[[_Shapes, "NodeProto"], int]


def _attributes(node: NodeProto) -> Mapping[str, AttributeProto]:
    return {attribute.name: attribute for attribute in node.attribute}


def _elementwise(shapes: _Shapes, node: NodeProto) -> int:
    return prod(shapes.output) * _PER_OUTPUT.get(node.op_type, 1)


def _convolution(weight: int) -> _Counter:
    """Count one multiplication for each output element and each element of its filter."""
    return lambda shapes, node: 2 * prod(shapes.output) * prod(shapes.input(weight)[1:])


def _transposed_convolution(shapes: _Shapes, node: NodeProto) -> int:
    return 2 * prod(shapes.input(0)) * prod(shapes.input(1)[1:])


def _product(shapes: _Shapes, node: NodeProto) -> int:
    return 2 * prod(shapes.output) * shapes.input(0)[-1]


def _gemm(shapes: _Shapes, node: NodeProto) -> int:
    transposed = _attributes(node).get("transA")
    rows, columns = shapes.input(0)
    return 2 * prod(shapes.output) * (rows if transposed is not None and transposed.i else columns)


def _recurrent(shapes: _Shapes, node: NodeProto) -> int:
    """Count the products with the input weights and the recurrent weights in each step."""
    steps = prod(shapes.input(0)[:2])
    return 2 * steps * (prod(shapes.input(1)) + prod(shapes.input(2)))


def _attention(shapes: _Shapes, node: NodeProto) -> int:
    """Count the two products: of queries with keys, and of weights with values."""
    queries, keys = shapes.input(0), shapes.input(1)
    return 2 * keys[-2] * (prod(queries) + prod(shapes.output))


def _einsum(shapes: _Shapes, node: NodeProto) -> int:
    terms = _attributes(node)["equation"].s.decode().replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for position, term in enumerate(terms):
        if "." in term or len(term) != len(shapes.input(position)):
            raise KeyError(term)
        sizes.update(zip(term, shapes.input(position), strict=True))
    return 2 * prod(sizes.values())


def _pooling(shapes: _Shapes, node: NodeProto) -> int:
    return prod(shapes.output) * int(prod(_attributes(node)["kernel_shape"].ints))


def _reduction(shapes: _Shapes, node: NodeProto) -> int:
    return prod(shapes.input(0))


_COUNTERS: Mapping[str, _Counter] = {
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), _convolution(1)),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("MatMul", "MatMulInteger", "QLinearMatMul"), _product),
    "Gemm": _gemm,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), _recurrent),
    "Einsum": _einsum,
    "Attention": _attention,
    **dict.fromkeys(("MaxPool", "AveragePool", "LpPool"), _pooling),
    **dict.fromkeys(REDUCING, _reduction),
}
