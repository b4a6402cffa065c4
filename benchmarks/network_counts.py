"""Parameters and work of a network as the literature counts them, from its outline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import onnx

from gapless.executor.model import TensorSpec

_STATISTICS = ("running_mean", "running_var")
_PRODUCTS = ("Gemm", "MatMul")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How large a network is.

    `convolutions`, `products`: number of these operators.
    """

    parameters: int  # trained weights and biases; what a normalisation has counted is none of them
    macs: int
    """Multiplications with addition in convolutions and matrix products, those of attention and of recurrent
    operators among them."""
    convolutions: int
    products: int
    operators: int


def count(outline: bytes, inputs: Sequence[TensorSpec]) -> Counts:
    """Return what is in a network.

    `outline`: the network without its weights, as `catalog.outline` makes it.
    """
    graph = onnx.shape_inference.infer_shapes(onnx.load_from_string(outline), strict_mode=True).graph
    shapes = shapes_of(graph)
    made = Counter(node.op_type for node in graph.node)
    weights = {value.name for value in graph.input} - {spec.name for spec in inputs}
    return Counts(
        parameters=sum(prod(shapes[name]) for name in weights if not name.endswith(_STATISTICS)),
        macs=sum(_macs(node, shapes) for node in graph.node),
        convolutions=made["Conv"],
        products=sum(made[kind] for kind in _PRODUCTS),
        operators=len(graph.node),
    )


def shapes_of(graph: onnx.GraphProto) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of all tensors of a graph whose shapes are inferred."""
    found = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return found


def _macs(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Return one for each output value and each weight or number that goes into it."""
    if node.op_type not in ("Conv", "ConvTranspose", "LSTM", *_PRODUCTS):
        return 0
    first, second = shapes[node.input[0]], shapes[node.input[1]]
    if node.op_type == "LSTM":  # in each step the weights of the input, and those of the state
        return prod(first[:2]) * (prod(second) + prod(shapes[node.input[2]]))
    if node.op_type == "ConvTranspose":  # each value of the input goes to a given number of outputs
        return prod(first) * prod(second[1:])
    return prod(shapes[node.output[0]]) * (prod(second[1:]) if node.op_type == "Conv" else first[-1])
