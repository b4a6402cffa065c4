"""The operators of a simplified model, the tensors between them, and what each costs.

Floating-point operations and bytes of an operator, from its type and the shapes around it. A multiplication
with its addition counts as two. What only moves data counts as none, element by element work as one an output
element, and pooling and reductions as one for each element looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper
from onnx.helper import tensor_dtype_to_np_dtype

from ...formulations.errors import InvalidModelError
from ..model import ITEM_BYTES, TensorSpec
from ..names import safe_name
from .model_file import subgraphs, weight_bytes
from .op_types import MOVING, RANDOM, REDUCING

_CURES = (
    ("sequence", "export it as tensors (skl2onnx: options={'zipmap': False})"),
    ("strings", "export numbers, such as the index of a label, and map them to texts in your code"),
    ("its size depends", "pad or cut it to a fixed size in the model, or declare its shape in the file"),
)
"""(words of an obstacle, what to do about it)."""

_ONNX_DOMAINS = ("", "ai.onnx.ml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One node of a model file.

    `op_type`, `domain`: what it does, and by whose definition ("" is ONNX itself).
    """

    name: str  # as in the file; may be empty, repeated or hostile
    op_type: str
    domain: str
    inputs: tuple[str, ...]
    """Tensors that it needs from elsewhere, each once; with what its subgraphs capture."""
    weights: tuple[str, ...]  # initializers that it needs, each once
    outputs: tuple[str, ...]  # tensors that it makes
    has_subgraphs: bool  # whether it holds control flow (If, Loop, Scan)
    inner_bytes: int  # bytes of the initializers inside its subgraphs
    node: NodeProto  # the node itself

    @property
    def kind(self) -> str:
        """Its type, with the domain where that is not ONNX itself; printable."""
        return safe_name(f"{self.domain}.{self.op_type}" if self.domain else self.op_type)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorGraph:
    """Operators in a topological order; each leads to an output.

    `inputs`, `outputs`: those of the model; inputs that nothing needs are left out.
    """

    operators: tuple[Operator, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    specs: Mapping[str, TensorSpec]
    """Tensors of known shape and common element type: those that can wait between two chunks."""
    obstacles: Mapping[str, str]  # why each of the other tensors cannot
    weights: Mapping[str, TensorProto]  # initializers by name
    header: ModelProto  # versions of the model, without its graph
    random: tuple[Operator, ...]  # those that give other numbers in every run
    at_random: frozenset[str]  # the tensors that come from them

    def consumers(self) -> dict[str, list[int]]:
        """Return which operators use each tensor, ascending."""
        users: dict[str, list[int]] = {}
        for index, operator in enumerate(self.operators):
            for name in operator.inputs:
                users.setdefault(name, []).append(index)
        return users

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights that are used, each counted once."""
        return self.weight_bytes_of(self.operators)

    def weight_bytes_of(self, operators: Iterable[Operator]) -> int:
        """Return the bytes of the weights of some operators, each counted once."""
        members = list(operators)
        used = {name for operator in members for name in operator.weights}
        return sum(weight_bytes(self.weights[name]) for name in used) + sum(o.inner_bytes for o in members)

    @property
    def foreign(self) -> Mapping[str, int]:
        """How many operators there are of each type that is not part of ONNX."""
        return Counter(operator.kind for operator in self.operators if operator.domain not in _ONNX_DOMAINS)

    def producers(self) -> dict[str, int]:
        """Return which operator makes each tensor."""
        return {name: index for index, op in enumerate(self.operators) for name in op.outputs}


def read_operators(model: ModelProto, *, complaint: str = "") -> OperatorGraph:
    """Return the operators of a model whose shapes are inferred.

    `complaint`: what shape inference said, for messages.
    Raises InvalidModelError: an input or output has no fixed shape, or an element type that cannot be passed
    between units; or nothing depends on the inputs.
    """
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    operators = alive(operators_of(graph), graph.output)
    used = {name for operator in operators for name in operator.inputs} | {v.name for v in graph.output}
    values = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
    made = [name for operator in operators for name in operator.outputs]
    found = {
        name: tensor_spec(name, values.get(name))
        for name in (*(v.name for v in graph.input if v.name in used), *made)
    }
    specs = {name: spec for name, spec in found.items() if isinstance(spec, TensorSpec)}
    obstacles = {name: spec for name, spec in found.items() if isinstance(spec, str)}
    _check_borders(graph, operators, specs, obstacles, complaint)
    off = switched_off((operator.node for operator in operators), weights.values())
    random = tuple(operator for operator in operators if is_random(operator.node, off))
    return OperatorGraph(
        operators=operators,
        inputs=tuple(specs[value.name] for value in graph.input if value.name in used),
        outputs=tuple(specs[value.name] for value in graph.output),
        specs=specs,
        obstacles=obstacles,
        weights=weights,
        header=_header(model),
        random=random,
        at_random=_all_behind(random, operators),
    )


def operators_of(graph: GraphProto) -> list[Operator]:
    """Return all operators of a graph, in order."""
    weights = {tensor.name: tensor for tensor in graph.initializer}
    return [_operator(node, weights) for node in graph.node]


def _operator(node: NodeProto, weights: Mapping[str, object]) -> Operator:
    inner = list(subgraphs(node.attribute))
    captured = [name for graph in inner for name in sorted(_captured(graph))]
    needed = dict.fromkeys(name for name in (*node.input, *captured) if name)
    return Operator(
        name=node.name,
        op_type=node.op_type,
        domain="" if node.domain == "ai.onnx" else node.domain,
        inputs=tuple(name for name in needed if name not in weights),
        weights=tuple(name for name in needed if name in weights),
        outputs=tuple(name for name in node.output if name),
        has_subgraphs=bool(inner),
        inner_bytes=sum(map(_initializer_bytes, inner)),
        node=node,
    )


def _captured(graph: GraphProto) -> set[str]:
    """Return the names that a subgraph uses from outside."""
    inside = {entry.name for group in (graph.input, graph.initializer) for entry in group}
    used = {value.name for value in graph.output}
    for node in graph.node:
        used.update(name for name in node.input if name)
        inside.update(node.output)
        for deeper in subgraphs(node.attribute):
            used |= _captured(deeper)
    return used - inside


def _initializer_bytes(graph: GraphProto) -> int:
    deeper = (inner for node in graph.node for inner in subgraphs(node.attribute))
    return sum(map(weight_bytes, graph.initializer)) + sum(map(_initializer_bytes, deeper))


def is_random(node: NodeProto, off: Container[str]) -> bool:
    """Return whether a node, or one in it, gives other numbers in every run; `off`: see `switched_off`."""
    inner = (each for graph in subgraphs(node.attribute) for each in graph.node)
    training = node.input[2] if node.op_type == "Dropout" and len(node.input) > 2 else ""
    drops = bool(training) and training not in off
    return drops or node.op_type in RANDOM or any(is_random(each, off) for each in inner)


def switched_off(nodes: Iterable[NodeProto], weights: Iterable[TensorProto]) -> set[str]:
    """Return the names of constants that are false: a Dropout of which one is the switch drops nothing."""
    constants = ((node.output[0], each.t) for node in nodes for each in node.attribute if each.HasField("t"))
    named = chain(((tensor.name, tensor) for tensor in weights), constants)
    return {
        name
        for name, tensor in named
        if tensor.data_type == TensorProto.BOOL and not numpy_helper.to_array(tensor).any()
    }


def _all_behind(first: Iterable[Operator], operators: Iterable[Operator]) -> frozenset[str]:
    """Return what some operators make, and all that is made of it: how large it is does not count."""
    found = {name for operator in first for name in operator.outputs}
    for operator in operators if found else ():
        if operator.op_type not in ("Shape", "Size") and not found.isdisjoint(operator.inputs):
            found.update(operator.outputs)
    return frozenset(found)


def alive(operators: Sequence[Operator], outputs: Iterable[ValueInfoProto]) -> tuple[Operator, ...]:
    """Return the operators that lead to an output, in order."""
    needed = {value.name for value in outputs}
    kept = []
    for operator in reversed(operators):
        if not needed.isdisjoint(operator.outputs):
            kept.append(operator)
            needed.update(operator.inputs)
    return tuple(reversed(kept))


def tensor_spec(name: str, value: ValueInfoProto | None) -> TensorSpec | str:
    """Return the specification of a tensor, or why it cannot wait between two chunks."""
    kind = value.type.WhichOneof("value") if value is not None else None
    if value is None or kind is None:
        return "its shape and element type are not known"
    if kind != "tensor_type":
        return f"it is not a tensor but a {kind.removesuffix('_type').replace('_', ' ')}"
    tensor = value.type.tensor_type
    if tensor.elem_type == TensorProto.STRING:
        return "it holds strings"
    try:
        dtype = tensor_dtype_to_np_dtype(tensor.elem_type).name
    except KeyError:
        return "its element type is not known"
    if dtype not in ITEM_BYTES:
        return f"its element type {dtype} cannot be passed between units"
    if not tensor.HasField("shape") or any(not d.HasField("dim_value") for d in tensor.shape.dim):
        return "its size depends on the data, or cannot be inferred"
    shape = tuple(size.dim_value for size in tensor.shape.dim)
    if any(size < 1 for size in shape):
        return f"it is empty (shape {list(shape)})"
    return TensorSpec(name=name, shape=shape, dtype=dtype)


def _check_borders(
    graph: GraphProto,
    operators: tuple[Operator, ...],
    specs: Mapping[str, TensorSpec],
    obstacles: Mapping[str, str],
    complaint: str,
) -> None:
    defects = [
        f"input {value.name!r}: {obstacles[value.name]}" for value in graph.input if value.name in obstacles
    ]
    reached = {value.name for value in graph.input}
    handed_over: set[str] = set()
    for operator in operators:
        if not reached.isdisjoint(operator.inputs):
            reached.update(operator.outputs)
        elif operator.op_type == "Identity" and not operator.inputs:
            handed_over.update(operator.outputs)
    if reached.isdisjoint(value.name for value in graph.output):
        handed_over.clear()  # there is nothing to plan
    for value in graph.output:
        if value.name not in reached | handed_over:
            defects.append(f"output {value.name!r} does not depend on any input: remove it from the model")
        elif value.name in obstacles:
            obstacle = obstacles[value.name]
            origin = _origin(operators, obstacles)
            defects.append(f"output {value.name!r}: {obstacle}{origin}{_cure(obstacle)}")
    if not operators:
        defects.append("no operator remains: nothing has to be computed from the inputs")
    if defects and complaint:
        defects.append(complaint)
    if defects:
        raise InvalidModelError("the model cannot be cut and run:", defects)


def _cure(obstacle: str) -> str:
    """Return what to do about an output that cannot be handed over, as the end of a sentence."""
    return next((f": {cure}" for words, cure in _CURES if words in obstacle), "")


def _origin(operators: tuple[Operator, ...], obstacles: Mapping[str, str]) -> str:
    """Say where the first tensor comes from that has no fixed shape or type."""
    for operator in operators:
        for name in operator.outputs:
            if name in obstacles:
                return f" (the first such tensor is {name!r}, made by operator {operator.kind})"
    return ""


def _header(model: ModelProto) -> ModelProto:
    header = ModelProto(ir_version=model.ir_version, producer_name="gapless")
    header.opset_import.extend(model.opset_import)
    return header


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
