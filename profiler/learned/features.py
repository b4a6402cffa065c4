"""What is known of a layer before it has run anywhere: Table 1 of EPipe, and what that table lacks.

Table 1 names five types of layers (AvgPool, MaxPool, Norm, Conv, Linear), though the networks that it was
made for are transformers, whose attention, softmax and GELU are none of them. The extended features tell 18
kinds of operators apart and add strides, groups, the work of each kind, and the bytes that are moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ...executor.graph.op_types import ELEMENTWISE, MOVING, REDUCING
from ...formulations.errors import InvalidInputError
from ...formulations.network import Network
from ...formulations.validation import Defects, FileContent
from ..analytic.costs import works_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...executor.graph.operators import Operator, OperatorCost, OperatorGraph
    from ...executor.model import Model

_NORMS = "LayerNormalization RMSNormalization GroupNormalization InstanceNormalization"
_MATH = "Erf Exp Gelu HardSigmoid HardSwish Log Mish Pow Sigmoid Softplus Sqrt Swish Tanh Elu Selu"
_FUSED = "Relu Clip LeakyRelu"  # with the convolution before them; ONNX Runtime does not fuse PRelu

_KIND_OF: Mapping[str, str] = {
    **dict.fromkeys(MOVING, "moving"),
    **dict.fromkeys(ELEMENTWISE, "elementwise"),
    **dict.fromkeys(REDUCING, "reducing"),
    **dict.fromkeys(("Gather", "GatherElements", "GatherND"), "look_up"),
    **dict.fromkeys(_NORMS.split(), "layer_norm"),
    **dict.fromkeys(_MATH.split(), "transcendental"),
    **dict.fromkeys(_FUSED.split(), "activation"),
    **dict.fromkeys(("Softmax", "LogSoftmax"), "softmax"),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool"), "global_pool"),
    **dict.fromkeys(("MatMul", "Einsum", "Attention"), "product"),
    "Gemm": "linear",
    "BatchNormalization": "batch_norm",
    "LRN": "local_norm",
    "MaxPool": "max_pool",
    "GlobalMaxPool": "max_pool",
    "AveragePool": "average_pool",
    "Conv": "convolution",
    "ConvTranspose": "transposed",
}
KINDS = (*dict.fromkeys(_KIND_OF.values()), "depthwise", "other")
"""Kinds of operators, as the extended features tell them apart."""

TABLE_TYPES: Mapping[str, tuple[str, ...]] = {
    "AvgPool": ("average_pool", "global_pool"),
    "MaxPool": ("max_pool",),
    "Norm": ("layer_norm", "batch_norm", "local_norm"),
    "Conv": ("convolution", "depthwise", "transposed"),
    "Linear": ("linear",),
}
"""The five types of Table 1; all other kinds are of no type."""

TABLE_NUMBERS = (
    *("input_size", "input_channels", "output_size", "output_channels", "parameters", "macs", "kernel_size"),
    *("depth", "index", "parent_depth", "parent_index"),
)
"""The numbers of Table 1. Depth: how many other branches are open; index: the place on its branch."""

MORE_NUMBERS = (
    *("stride", "groups", "convolution_macs", "depthwise_macs", "product_macs", "light_bytes", "read_bytes"),
    *("border_bytes", "operators"),
)
"""Further numbers: work by kind, bytes moved by operators of little work, weights read, bytes in and out."""

NUMBERS = (*TABLE_NUMBERS, *MORE_NUMBERS)

STATISTICS = ("convolution_macs", "depthwise_macs", "product_macs", "light_bytes", "read_bytes", "operators")
"""Whose sums over a network its time on a device is regressed on."""

_HEAVY = frozenset({"convolution", "depthwise", "transposed", "linear", "product"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFeatures(FileContent):
    """The features of all layers of a network."""

    network: str
    """Its name."""
    kinds: tuple[int, ...]
    """The kind of the operator that does most of the work, by layer: an index of `KINDS`."""
    counts: tuple[tuple[int, ...], ...]
    """Operators by [layer][kind]."""
    numbers: tuple[tuple[int, ...], ...]
    """By [layer][number], in the order of `NUMBERS`."""

    def __post_init__(self) -> None:
        defects = Defects(f"features of {self.network!r}")
        if not len(self.kinds) == len(self.counts) == len(self.numbers) > 0:
            defects.add("kinds, counts and numbers need one entry for each layer")
        for rows, width in ((self.counts, len(KINDS)), (self.numbers, len(NUMBERS))):
            if any(len(row) != width or min(row) < 0 for row in rows):
                defects.add(
                    f"a row has not {width} numbers, none negative: other features than this version's"
                )
        if any(not 0 <= kind < len(KINDS) for kind in self.kinds):
            defects.add(f"kinds must be below {len(KINDS)}")
        defects.raise_as(InvalidInputError)

    @property
    def macs(self) -> tuple[int, ...]:
        """Multiplications with addition, by layer."""
        return tuple(row[NUMBERS.index("macs")] for row in self.numbers)

    def statistics(self) -> NDArray[Any]:
        """Return what a layer's time is regressed on, by [layer][statistic]; see `STATISTICS`."""
        import numpy as np

        columns = [NUMBERS.index(name) for name in STATISTICS]
        return np.array(self.numbers, dtype=np.float64)[:, columns]

    def inputs(self, *, extended: bool = True) -> NDArray[Any]:
        """Return what a predictor reads, by [layer][input]: types as 0 or 1, numbers as logarithms."""
        import numpy as np

        numbers = np.log1p(np.array(self.numbers, dtype=np.float64)) / 10.0
        kinds = np.eye(len(KINDS))[list(self.kinds)]
        if extended:
            counts = np.log1p(np.array(self.counts, dtype=np.float64))
            return np.hstack([kinds, counts, numbers]).astype(np.float32)
        types = [kinds[:, [KINDS.index(kind) for kind in of]].sum(axis=1) for of in TABLE_TYPES.values()]
        return np.hstack([np.stack(types, axis=1), numbers[:, : len(TABLE_NUMBERS)]]).astype(np.float32)


def features_of(model: Model) -> NetworkFeatures:
    """Return the features of a model from an ONNX file."""
    from ...executor.graph.onnx_model import OnnxModel

    if not isinstance(model, OnnxModel):
        raise InvalidInputError(
            f"{model.network.name!r} is no ONNX model: what its layers are like is not known, so that their "
            "times cannot be predicted; profile it where it shall run (`gapless profile`)"
        )
    return graph_features(model.network, model.graph, model.cutter.layers)


def table_features(name: str) -> tuple[Network, NetworkFeatures]:
    """Return a built-in network that is a table without weights, and its features."""
    from ..zoo.tables import grouped, table_of

    network = table_of(name)
    graph, grouping = grouped(name)
    return network, graph_features(network, graph, grouping.operators)


def work_alone(network: Network) -> NetworkFeatures:
    """Return the features of a network of which only the operations of layers are known: their MACs."""
    works = works_of(network)
    zeros = dict.fromkeys(NUMBERS, 0)
    rows = ({**zeros, "macs": work.flops // 2} for work in works)
    return NetworkFeatures(
        network=network.name,
        kinds=(KINDS.index("other"),) * len(works),
        counts=((0,) * len(KINDS),) * len(works),
        numbers=tuple(tuple(row[name] for name in NUMBERS) for row in rows),
    )


def graph_features(
    network: Network, graph: OperatorGraph, layers: Sequence[Sequence[int]]
) -> NetworkFeatures:
    """Return the features of a graph whose operators are grouped into layers; errors as for `features_of`."""
    from ...executor.graph.operators import operator_cost

    costs = [operator_cost(graph, operator) for operator in graph.operators]
    unknown = [
        network.layers[place].name
        for place, members in enumerate(layers)
        if any(costs[index].flops is None for index in members)
    ]
    if unknown:
        raise InvalidInputError(
            f"network {network.name!r}: how much work {', '.join(map(repr, unknown[:5]))} is, is not known "
            "(control flow, or operators that are not part of ONNX); measure it with `gapless profile`"
        )
    found = [_of_layer(graph, costs, members) for members in layers]
    places, border = _places(network), _border_bytes(network)
    numbers = [
        {**numbers, **places[place], "border_bytes": border[place]}
        for place, (_, _, numbers) in enumerate(found)
    ]
    return NetworkFeatures(
        network=network.name,
        kinds=tuple(KINDS.index(kind) for kind, _, _ in found),
        counts=tuple(tuple(counts[kind] for kind in KINDS) for _, counts, _ in found),
        numbers=tuple(tuple(row[name] for name in NUMBERS) for row in numbers),
    )


def _of_layer(
    graph: OperatorGraph, costs: Sequence[OperatorCost], members: Sequence[int]
) -> tuple[str, Counter[str], dict[str, int]]:
    """Return the kind of the main operator, all operators by kind, and the numbers but for the position."""
    kinds = {index: _kind(graph, graph.operators[index]) for index in members}
    main = max(members, key=lambda index: (costs[index].flops or 0, costs[index].moved_bytes, -index))
    macs: Counter[str] = Counter()
    for index, kind in kinds.items():
        macs[_work_of(kind)] += (costs[index].flops or 0) // 2
    look_ups = sum(costs[index].weight_bytes for index in members if kinds[index] == "look_up")
    weights = graph.weight_bytes_of(graph.operators[index] for index in members)
    shape = _Shape(graph, graph.operators[main])
    return (
        kinds[main],
        Counter(kinds.values()),
        {
            **shape.numbers,
            "parameters": weights // 4,
            "macs": sum(macs.values()),
            "convolution_macs": macs["convolution"],
            "depthwise_macs": macs["depthwise"],
            "product_macs": macs["product"],
            "light_bytes": sum(costs[index].moved_bytes for index in members if kinds[index] not in _HEAVY),
            "read_bytes": weights - min(weights, look_ups),
            "operators": len(members),
        },
    )


def _kind(graph: OperatorGraph, operator: Operator) -> str:
    kind = _KIND_OF.get(operator.op_type, "other") if not operator.domain else "other"
    if kind == "product" and operator.weights:
        return "linear"
    if kind == "convolution" and _attribute(operator, "group", 1) > 1:
        return "depthwise"
    return kind


def _work_of(kind: str) -> str:
    return {"transposed": "convolution", "linear": "product"}.get(kind, kind)


def _attribute(operator: Operator, name: str, otherwise: int) -> int:
    """Return an attribute that is a whole number, or the product of several."""
    for attribute in operator.node.attribute:
        if attribute.name == name:
            return int(prod(attribute.ints)) if attribute.ints else int(attribute.i)
    return otherwise


class _Shape:
    """Sizes and channels of an operator's first input and output: (1, C, H, W), or (1, tokens, C)."""

    def __init__(self, graph: OperatorGraph, operator: Operator) -> None:
        size_in, channels_in = _size(graph, operator.inputs)
        size_out, channels_out = _size(graph, operator.outputs)
        kernel = _attribute(operator, "kernel_shape", 0)
        if not kernel and operator.op_type in ("Conv", "ConvTranspose") and operator.weights:
            kernel = prod(graph.weights[operator.weights[0]].dims[2:])
        self.numbers = {
            "input_size": size_in,
            "input_channels": channels_in,
            "output_size": size_out,
            "output_channels": channels_out,
            "kernel_size": kernel,
            "stride": _attribute(operator, "strides", 1),
            "groups": _attribute(operator, "group", 1),
        }


def _size(graph: OperatorGraph, names: Sequence[str]) -> tuple[int, int]:
    spec = next((graph.specs[name] for name in names if name in graph.specs), None)
    if spec is None or not spec.shape:
        return 0, 0
    channels = spec.shape[1] if len(spec.shape) == 4 else spec.shape[-1]
    return prod(spec.shape) // channels, channels


def _border_bytes(network: Network) -> list[int]:
    """Return the bytes of the tensors that each layer takes from others and makes for others."""
    found = [0] * len(network.layers)
    for tensor in network.tensors:
        for layer in (tensor.source, *tensor.targets):
            if 0 <= layer < len(found):
                found[layer] += tensor.bytes
    return found


def _places(network: Network) -> list[dict[str, int]]:
    """Return the position of each layer; a branch goes on with the only user of an only parent."""
    count = len(network.layers)
    parents: list[list[int]] = [[] for _ in range(count)]
    children = [0] * count
    alive = [0] * (count + 1)
    for tensor in network.tensors:
        for target in tensor.targets:
            if target < count and tensor.source >= 0:
                parents[target].append(tensor.source)
                children[tensor.source] += 1
        for cut in range(max(0, tensor.source + 1), max(tensor.targets)):
            alive[cut] += 1
    found: list[dict[str, int]] = []
    for layer in range(count):
        before = parents[layer]
        goes_on = len(set(before)) == 1 and children[before[0]] == 1
        last = found[max(before)] if before else {"depth": 0, "index": 0}
        found.append(
            {
                "depth": alive[layer],
                "index": last["index"] + 1 if goes_on else 0,
                "parent_depth": last["depth"],
                "parent_index": last["index"],
            }
        )
    return found
