"""Writing graphs as exporters do: nodes in order, weights from a seed, names in their manner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper

IR_VERSIONS = ((7, 3), (9, 4), (11, 6), (13, 7), (15, 8), (18, 8), (21, 10), (24, 10))
"""(opset, IR version) that belong together, as exporters of their time wrote them."""


class Writer:
    """A graph under construction.

    Parameters
    ----------
    seed
        Of its weights.
    names
        How outputs of nodes are called, with {op} and {number}.
    dtype
        Of its weights.
    """

    def __init__(self, seed: int = 0, *, names: str = "{op}_{number}", dtype: str = "float32") -> None:
        self.nodes: list[Any] = []
        self.weights: list[TensorProto] = []
        self.dtype = dtype
        self._names = names
        self._random = np.random.default_rng(seed)

    def add(self, op: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, and return its name."""
        (name,) = self.several(op, *inputs, outputs=[output or self._name(op)], **attributes)
        return name

    def several(
        self, op: str, *inputs: str, outputs: int | Sequence[str], **attributes: Any
    ) -> tuple[str, ...]:
        """Add a node with several outputs, so many or with these names, and return their names."""
        name = self._name(op)
        named = [f"{name}_out{place}" for place in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(op, list(inputs), list(named), name=f"node_{name}", **attributes))
        return tuple(named)

    def _name(self, op: str) -> str:
        return self._names.format(op=op, number=len(self.nodes))

    def weight(self, *shape: int, scale: float | None = None, dtype: str | None = None) -> str:
        """Add a random weight whose products keep their size."""
        fan_in = max(1, int(np.prod(shape[1:])) if len(shape) > 1 else 1)
        spread = scale if scale is not None else (2.0 / fan_in) ** 0.5
        array = self._random.normal(0, spread, shape).astype(dtype or self.dtype)
        return self.constant(array)

    def constant(self, numbers: Any, dtype: str | None = None) -> str:
        """Add a constant as an initializer."""
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(numbers, dtype=dtype), name))
        return name

    def inline(self, numbers: Any, dtype: str = "int64") -> str:
        """Add a constant as a node, as torch's first exporter writes it."""
        tensor = numpy_helper.from_array(np.array(numbers, dtype=dtype))
        return self.add("Constant", value=tensor)

    def conv(
        self, x: str, channels: tuple[int, int], kernel: int = 3, *, scale: float | None = None, **more: Any
    ) -> str:
        """Add a convolution from so many channels to so many; `scale` is the spread of its weights."""
        before, after = channels
        groups = more.get("group", 1)
        pad = more.pop("pad", kernel // 2)
        weight = self.weight(after, before // groups, kernel, kernel, scale=scale)
        bias = self.weight(after, scale=0.1 if scale is None else scale)
        return self.add("Conv", x, weight, bias, kernel_shape=[kernel] * 2, pads=[pad] * 4, **more)

    def dense(self, x: str, before: int, after: int) -> str:
        """Add a product with a weight, and its bias."""
        product = self.add("MatMul", x, self.weight(before, after, scale=before**-0.5))
        return self.add("Add", product, self.weight(after, scale=0.02))


def value(
    name: str, shape: Sequence[int | str | None] | None, kind: int = TensorProto.FLOAT
) -> ValueInfoProto:
    """Return a typed name."""
    return helper.make_tensor_value_info(name, kind, shape)


def subgraph(
    writer: Writer, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]
) -> GraphProto:
    """Return what was written as the body of control flow."""
    return helper.make_graph(writer.nodes, "body", inputs, outputs, writer.weights)


def model(
    writer: Writer,
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    *,
    opset: int,
    producer: str,
    domains: Mapping[str, int] | None = None,
    weights_are_inputs: bool = False,
) -> ModelProto:
    """Return what was written as a model of an exporter."""
    repeated = [value(w.name, w.dims, w.data_type) for w in writer.weights] if weights_are_inputs else []
    graph = helper.make_graph(writer.nodes, "graph", [*inputs, *repeated], outputs, writer.weights)
    imports = [helper.make_opsetid(*entry) for entry in {"": opset, **(domains or {})}.items()]
    version = next(ir for newest, ir in IR_VERSIONS if opset <= newest)
    return helper.make_model(graph, producer_name=producer, opset_imports=imports, ir_version=version)
