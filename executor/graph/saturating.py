"""Operators whose results stay within bounds, for an engine that forgets the bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto
from onnx.external_data_helper import uses_external_data
from onnx.helper import make_node, tensor_dtype_to_np_dtype
from onnx.numpy_helper import from_array, to_array

REWRITTEN = "saturating-1"
"""What `saturating` does, as part of the key of what is made: to be changed with it."""

_SOFTPLUS_MOST = 80.0
"""From here on softplus(x) is x in float32; MNN's own overflows beyond 88."""


def saturating(content: bytes) -> bytes:
    """Return an ONNX file of which MNN computes what the given one says.

    MNN takes QuantizeLinear and DequantizeLinear for nothing: numbers beyond the range of the integers, which
    they cut off, would go through. Its Softplus of large numbers is wrong.
    """
    if b"QuantizeLinear" not in content and b"Softplus" not in content:
        return content
    model = onnx.load_model_from_string(content)
    graph, made = model.graph, list[NodeProto]()
    known = {each.name: each for each in graph.initializer if not uses_external_data(each)}
    for node in graph.node:
        source, name = "".join(node.input[:1]), f"{''.join(node.output[:1])}/gapless"
        for kind, bound in _bounds(node, known):
            inside, limit = f"{name}/{kind}", f"{name}/{kind}/limit"
            graph.initializer.append(from_array(bound, limit))
            made.append(make_node(kind, [node.input[0], limit], [inside]))
            node.input[0] = inside
        made.append(node)
        if node.op_type == "Softplus":
            made.append(make_node("Max", [name, source], [node.output[0]]))
            node.output[0] = name
    del graph.node[:]
    graph.node.extend(made)
    rewritten: bytes = model.SerializeToString()
    return rewritten


def _bounds(node: NodeProto, known: Mapping[str, TensorProto]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the operators that keep the input of a node within its bounds, with these."""
    if node.op_type == "Softplus":
        yield "Min", np.array(_SOFTPLUS_MOST, np.float32)
    elif node.op_type == "QuantizeLinear" and all(name in known for name in node.input[1:] if name):
        scale, *zeros = (to_array(known[name]) for name in node.input[1:] if name)
        told = [each.i for each in node.attribute if each.name == "output_dtype" and each.i]
        zero = zeros[0] if zeros else np.zeros((), tensor_dtype_to_np_dtype(told[0]) if told else np.uint8)
        if scale.size == 1 and zero.dtype.kind in "iu":
            ends = np.iinfo(zero.dtype)
            for kind, end in (("Max", ends.min), ("Min", ends.max)):
                yield kind, ((end - zero.astype(np.float64)) * scale).astype(scale.dtype).reshape(())
