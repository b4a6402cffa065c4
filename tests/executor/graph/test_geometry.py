"""Windows of operators against what depends on what in ONNX Runtime, and tiles backward through a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, NodeProto, TensorProto

from gapless.executor.graph.geometry import spatial_network
from gapless.executor.graph.operators import operator_cost, read_operators
from gapless.formulations.spatial import Axis, SpatialNetwork
from gapless.formulations.tiles import needs, obstacles

from .models import constant, model, node, value, weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROWS, COLUMNS, CHANNELS = 11, 14, 4
Case = tuple[list[NodeProto], list[TensorProto]]


def conv(*, weight: tuple[int, ...] = (4, 4, 3, 3), **attributes: Any) -> Case:
    return [node("Conv", "x w", "y", **attributes)], weights(w=weight)


def one(op_type: str, *constants: TensorProto, outputs: str = "y", **attributes: Any) -> Case:
    inputs = " ".join(["x", *(tensor.name or "_" for tensor in constants)])
    return [node(op_type, inputs, outputs, **attributes)], [tensor for tensor in constants if tensor.name]


def resize(scales: Sequence[float], **attributes: Any) -> Case:
    none = TensorProto()
    return one("Resize", none, constant("scales", scales, "float32"), **attributes)


TIGHT: dict[str, Case] = {
    "conv": conv(pads=[1] * 4),
    "no pads": conv(),
    "strides": conv(strides=[2, 3], pads=[1] * 4),
    "stride beyond kernel": conv(strides=[4, 4]),
    "dilations": conv(dilations=[2, 3]),
    "asymmetric pads": conv(pads=[0, 1, 2, 0], strides=[2, 2]),
    "one by seven": conv(weight=(4, 4, 1, 7), pads=[0, 3, 0, 3]),
    "depthwise": conv(weight=(4, 1, 5, 5), group=4, pads=[2] * 4),
    "same upper": conv(auto_pad="SAME_UPPER", strides=[2, 2], weight=(4, 4, 4, 4)),
    "same lower": conv(auto_pad="SAME_LOWER", strides=[2, 2], weight=(4, 4, 4, 4)),
    "valid": conv(auto_pad="VALID", strides=[2, 2]),
    "max pool": one("MaxPool", kernel_shape=[3, 3], strides=[2, 2]),
    "ceil": one("MaxPool", kernel_shape=[2, 3], strides=[2, 3], ceil_mode=1),
    "average pool": one("AveragePool", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
    "ceil average": one("AveragePool", kernel_shape=[3, 3], strides=[3, 3], ceil_mode=1),
    "transposed": ([node("ConvTranspose", "x w", "y", strides=[2, 2])], weights(w=(4, 4, 4, 4))),
    "transposed, pads": (
        [node("ConvTranspose", "x w", "y", strides=[2, 2], pads=[1, 0, 1, 2], output_padding=[1, 0])],
        weights(w=(4, 4, 3, 3)),
    ),
    "nearest": resize([1, 1, 2, 3], mode="nearest", coordinate_transformation_mode="asymmetric",
                      nearest_mode="floor"),
    "nearest, centred": resize([1, 1, 3, 1], mode="nearest"),
    "relu": one("Relu"),
    "batch norm": (
        [node("BatchNormalization", "x s o m v", "y")],
        [constant(name, [1.0] * 4, "float32") for name in "somv"],
    ),
    "lrn": one("LRN", size=3),
    "softmax over channels": one("Softmax", axis=1),
    "pad": one("Pad", constant("pads", [0, 0, 1, 2, 0, 0, 3, 0])),
    "slice of channels": one(
        "Slice", constant("from", [1]), constant("to", [3]), constant("axes", [1])
    ),
    "depth to space": one("DepthToSpace", blocksize=2),
    "mean of channels": one("ReduceMean", axes=[1]),
    "transpose of channels": one("Transpose", perm=[1, 0, 2, 3]),
    "branches": (
        [
            node("Conv", "x w", "a", pads=[1] * 4),
            node("MaxPool", "x", "b", kernel_shape=[5, 1], pads=[2, 0, 2, 0], strides=[1, 1]),
            node("Concat", "a b", "c", axis=1),
            node("AveragePool", "c", "d", kernel_shape=[3, 3], pads=[1] * 4),
            node("Add", "c d", "y"),
        ],
        weights(w=(4, 4, 3, 3)),
    ),
    "halves": ([node("Split", "x", "a b", axis=1), node("Mul", "a b", "y")], []),
}  # fmt: skip
"""Exactly what is said to be read matters."""

LOOSE: dict[str, Case] = {
    "dilations, pads": conv(dilations=[2, 1], pads=[2, 1, 2, 1]),
    "linear": resize([1, 1, 2, 2], mode="linear"),
    "linear, asymmetric": resize([1, 1, 2, 1], mode="linear", coordinate_transformation_mode="asymmetric"),
    "nearest, by three, linear": resize([1, 1, 3, 3], mode="linear"),
    "transposed, stride beyond kernel": (
        [node("ConvTranspose", "x w", "y", strides=[3, 3])],
        weights(w=(4, 4, 2, 2)),
    ),
    "space to depth": (
        [node("MaxPool", "x", "a", kernel_shape=[2, 1]), node("SpaceToDepth", "a", "y", blocksize=2)],
        [],
    ),
}
"""What matters is among what is said to be read."""

NOT: dict[str, tuple[Case, tuple[bool, bool]]] = {
    "global pool": (one("GlobalAveragePool"), (False, False)),
    "softmax over columns": (one("Softmax", axis=-1), (True, False)),
    "instance norm": (
        ([node("InstanceNormalization", "x s o", "y")], [constant(n, [1.0] * 4, "float32") for n in "so"]),
        (False, False),
    ),
    "concat of rows": (([node("Concat", "x x", "y", axis=2)], []), (False, True)),
    "transpose": (one("Transpose", perm=[0, 1, 3, 2]), (False, False)),
    "flatten": (one("Flatten"), (False, False)),
    "reflect": (one("Pad", constant("pads", [0, 0, 1, 0, 0, 0, 1, 0]), mode="reflect"), (False, True)),
    "slice of rows": (
        one("Slice", constant("from", [1]), constant("to", [9]), constant("axes", [2])), (False, True),
    ),
    "flip": (
        one("Slice", constant("from", [-1]), constant("to", [-99]), constant("axes", [2]),
            constant("steps", [-1])), (False, True),
    ),
    "cubic": (resize([1, 1, 2, 2], mode="cubic"), (False, False)),
    "corners": (
        resize([1, 1, 2, 2], mode="linear", coordinate_transformation_mode="align_corners"), (False, False),
    ),
    "by half": (resize([1, 1, 1.5, 2], mode="linear"), (False, False)),
    "constant map": (([node("Add", "x w", "y")], weights(w=(1, 1, ROWS, COLUMNS))), (False, False)),
    "indices": (one("MaxPool", outputs="y i", kernel_shape=[2, 2]), (False, False)),
    "product": (([node("MatMul", "x w", "y")], weights(w=(COLUMNS, 5))), (False, False)),
}  # fmt: skip


def built(case: Case) -> tuple[ModelProto, SpatialNetwork]:
    nodes, constants = case
    made = [value(name, None) for name in nodes[-1].output if name]
    for info in made[1:]:
        info.type.tensor_type.elem_type = TensorProto.INT64
    proto = model(nodes, [value("x", [1, CHANNELS, ROWS, COLUMNS])], made, constants)
    graph = read_operators(onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True))
    return proto, spatial_network(graph, [operator_cost(graph, operator) for operator in graph.operators])


def dependence(proto: ModelProto, axis: int) -> NDArray[np.bool_]:
    """Return which output positions (rows) change with which input positions (columns)."""
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(1).uniform(0.5, 1.0, (1, CHANNELS, ROWS, COLUMNS)).astype(np.float32)
    (before,) = session.run(["y"], {"x": x})
    found = []
    for position in range(x.shape[axis + 2]):
        changed = x.copy()
        index = (slice(None),) * (axis + 2) + (position,)
        changed[index] += np.linspace(3.0, 9.0, CHANNELS, dtype=np.float32).reshape(1, -1, 1)
        (after,) = session.run(["y"], {"x": changed})
        found.append((after != before).any(axis=tuple(a for a in range(4) if a != axis + 2)))
    return np.array(found).T


def reads(network: SpatialNetwork, start: int, stop: int, axis: Axis) -> range:
    last = len(network.nodes) - 1
    return range(*needs(network, network.operators, {last: (start, stop)}, axis)[0])


@pytest.mark.parametrize("name", [*TIGHT, *LOOSE])
@pytest.mark.parametrize("axis", Axis)
def test_what_is_read_is_what_matters(name: str, axis: Axis) -> None:
    proto, network = built(TIGHT.get(name) or LOOSE[name])
    assert not list(obstacles(network, network.operators, axis))
    matters = dependence(proto, axis)
    assert len(matters) == network.nodes[-1].size[axis]
    for start in range(len(matters)):
        for stop in range(start + 1, len(matters) + 1):
            used = np.flatnonzero(matters[start:stop].any(axis=0)).tolist()
            found = reads(network, start, stop, axis)
            assert set(used) <= set(found)
            if name in TIGHT and used:
                assert (found[0], found[-1]) == (used[0], used[-1])


@pytest.mark.parametrize("name", NOT)
def test_what_does_not_split_says_so(name: str) -> None:
    case, splits = NOT[name]
    _, network = built(case)
    assert network.nodes[-1].splits == splits
    said = [list(obstacles(network, network.operators, axis)) for axis in Axis]
    assert [not words for words in said] == [*splits]
    assert all(network.nodes[-1].name in words for found in said for words in found)
