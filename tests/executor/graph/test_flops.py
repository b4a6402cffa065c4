from __future__ import annotations

from typing import Any

import pytest
from onnx import NodeProto

from gapless.executor.graph.operators import operator_cost, read_operators
from gapless.executor.graph.simplify import simplify

from .models import model, node, opened_ocr, value, weights

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("nodes", "inputs", "constants", "flops"),
    [
        (
            [node("Conv", "x w", "y", strides=[2, 2])],
            {"x": (1, 8, 9, 9)},
            {"w": (16, 8, 3, 3)},
            2 * 16 * 16 * 72,
        ),
        ([node("Conv", "x w", "y", group=8)], {"x": (1, 8, 5, 5)}, {"w": (8, 1, 3, 3)}, 2 * 8 * 9 * 9),
        ([node("Conv", "x w", "y")], {"x": (2, 4, 10)}, {"w": (6, 4, 3)}, 2 * 2 * 6 * 8 * 12),
        (
            [node("ConvTranspose", "x w", "y", strides=[2, 2])],
            {"x": (1, 8, 5, 5)},
            {"w": (8, 4, 2, 2)},
            2 * 200 * 16,
        ),
        ([node("Gemm", "x w", "y", transB=1)], {"x": (3, 10)}, {"w": (7, 10)}, 2 * 3 * 7 * 10),
        ([node("Gemm", "x w", "y", transA=1)], {"x": (10, 3)}, {"w": (10, 7)}, 2 * 3 * 7 * 10),
        ([node("MatMul", "x w", "y")], {"x": (2, 5, 3, 10), "w": (10, 4)}, {}, 2 * 2 * 5 * 3 * 4 * 10),
        (
            [node("LSTM", "x w r", "y", hidden_size=6)],
            {"x": (7, 2, 5)},
            {"w": (1, 24, 5), "r": (1, 24, 6)},
            2 * 14 * 264,
        ),
        (
            [node("GRU", "x w r", "_ y", hidden_size=6)],
            {"x": (7, 2, 5)},
            {"w": (1, 18, 5), "r": (1, 18, 6)},
            2 * 14 * 198,
        ),
        (
            [node("Einsum", "x w", "y", equation="bij,bjk->bik")],
            {"x": (2, 3, 4), "w": (2, 4, 5)},
            {},
            2 * 2 * 3 * 4 * 5,
        ),
        ([node("MaxPool", "x", "y", kernel_shape=[3, 3])], {"x": (1, 2, 5, 5)}, {}, 2 * 9 * 9),
        ([node("GlobalAveragePool", "x", "y")], {"x": (1, 2, 5, 5)}, {}, 50),
        ([node("ReduceMean", "x", "y", axes=[1])], {"x": (3, 5)}, {}, 15),
        ([node("Relu", "x", "y")], {"x": (3, 5)}, {}, 15),
        ([node("Add", "x w", "y")], {"x": (3, 1), "w": (1, 4)}, {}, 12),
        ([node("Softmax", "x", "y")], {"x": (3, 5)}, {}, 75),
        ([node("Transpose", "x", "y")], {"x": (3, 5)}, {}, 0),
    ],
)
def test_operations_by_hand(
    nodes: list[NodeProto], inputs: dict[str, Shape], constants: dict[str, Shape], flops: int
) -> None:
    given = [value(name, shape) for name, shape in inputs.items()]
    proto = model(nodes, given, [value("y", None)], weights(**constants))
    assert total(proto) == flops


def total(proto: Any) -> int | None:
    graph = read_operators(simplify(proto).model)
    counts = [operator_cost(graph, operator).flops for operator in graph.operators]
    return None if None in counts else sum(filter(None, counts))


def test_bytes_of_weights_and_tensors() -> None:
    proto = model([node("Gather", "w x", "y")], [value("x", [3], 7)], [value("y", None)], weights(w=(100, 8)))
    graph = read_operators(simplify(proto).model)
    cost = operator_cost(graph, graph.operators[0])
    assert (cost.weight_bytes, cost.moved_bytes) == (3200, 3 * 8 + 3 * 8 * 4)


def test_control_flow_and_foreign_operators_have_unknown_cost() -> None:
    branch = model([node("Relu", "x", "b")], [], [value("b", [2])]).graph
    nodes = [node("ReduceMax", "x", "m", keepdims=0), node("Cast", "m", "c", to=9)]
    nodes += [node("If", "c", "y", then_branch=branch, else_branch=branch)]
    assert total(model(nodes, [value("x", [2])], [value("y", [2])])) is None
    foreign = model(
        [node("Strange", "x", "y", domain="their.ops")],
        [value("x", [2])],
        [value("y", [2])],
        opsets={"": 17, "their.ops": 1},
    )
    assert total(foreign) is None


@pytest.mark.slow
def test_a_real_network_agrees_with_the_count_of_another_runtime() -> None:
    """MNN's getSessionInfo says 1797.5 million for detection at 480 x 640, counting a multiply-add once."""
    loaded = opened_ocr("det")
    costs = [(op.op_type, operator_cost(loaded.graph, op).flops or 0) for op in loaded.graph.operators]
    products = sum(flops for kind, flops in costs if "Conv" in kind)
    others = sum(flops for kind, flops in costs if "Conv" not in kind)
    assert (products / 2 + others) / 1e6 == pytest.approx(1797.5, rel=0.03)
    assert sum(layer.flops or 0 for layer in loaded.network.layers) == products + others
