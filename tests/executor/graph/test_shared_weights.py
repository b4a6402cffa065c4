"""Weights that layers of an ONNX model share count once in a chunk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info
from onnx.numpy_helper import from_array

import gapless
from gapless.formulations.network import Network

SIDE = 16
BYTES = 4 * SIDE * SIDE


def matrix(name: str, seed: int = 1, kind: type = np.float32) -> TensorProto:
    values = np.random.default_rng(seed).normal(size=(SIDE, SIDE))
    return from_array((8 * values).astype(kind), name)


def network(
    path: Path, nodes: list[onnx.NodeProto], weights: list[TensorProto], *, external: bool = False
) -> Network:
    graph = make_graph(
        nodes,
        "net",
        [make_tensor_value_info("x", TensorProto.FLOAT, [SIDE, SIDE])],
        [make_tensor_value_info("y", TensorProto.FLOAT, [SIDE, SIDE])],
        weights,
    )
    model = make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=external, size_threshold=0)
    return gapless.open_model(path, granularity="operator").network


def chain(*weights: str) -> list[onnx.NodeProto]:
    """Return matrix products one after the other with a nonlinear step between, from x to y."""
    nodes, last = [], "x"
    for number, weight in enumerate(weights):
        nodes.append(make_node("MatMul", [last, weight], [f"m{number}"]))
        last = "y" if number == len(weights) - 1 else f"s{number}"
        nodes.append(make_node("Sigmoid", [f"m{number}"], [last]))
    return nodes


def whole(found: Network) -> int:
    return found.weights.between(0, len(found.layers))


def test_three_readers_and_a_cut_between(tmp_path: Path) -> None:
    found = network(tmp_path / "m.onnx", chain("w", "v", "w", "w"), [matrix("w"), matrix("v", 2)])
    readers = [at for at, layer in enumerate(found.layers) if layer.weight_bytes]
    assert [(each.bytes, each.layers) for each in found.shared] == [
        (BYTES, (readers[0], readers[2], readers[3]))
    ]
    cut = readers[2]
    assert (whole(found), found.weights.copied) == (2 * BYTES, 4 * BYTES)
    # A copy on each side of a cut.
    assert found.weights.between(0, cut) == 2 * BYTES
    assert found.weights.between(cut, len(found.layers)) == BYTES


@pytest.mark.slow
def test_external_data(tmp_path: Path) -> None:
    found = network(tmp_path / "m.onnx", chain("w", "w"), [matrix("w")], external=True)
    assert whole(found) == BYTES


def test_two_tensors_of_equal_content_are_one(tmp_path: Path) -> None:
    found = network(tmp_path / "m.onnx", chain("w", "v"), [matrix("w"), matrix("v")])
    assert whole(found) == BYTES


def test_through_identity(tmp_path: Path) -> None:
    nodes = [make_node("Identity", ["w"], ["v"]), *chain("w", "v")]
    assert whole(network(tmp_path / "m.onnx", nodes, [matrix("w")])) == BYTES


def test_shared_bias(tmp_path: Path) -> None:
    nodes = [
        make_node("Add", ["x", "b"], ["a"]),
        make_node("Sigmoid", ["a"], ["s"]),
        make_node("Add", ["s", "b"], ["y"]),
    ]
    assert whole(network(tmp_path / "m.onnx", nodes, [matrix("b")])) == BYTES


def test_constant_that_a_branch_reads_too(tmp_path: Path) -> None:
    def branch(name: str, kind: str) -> onnx.GraphProto:
        out = make_tensor_value_info(name, TensorProto.FLOAT, [SIDE, SIDE])
        return make_graph([make_node(kind, ["m0", "w"], [name])], name, [], [out])

    nodes = [
        make_node("MatMul", ["x", "w"], ["m0"]),
        make_node("ReduceMax", ["m0"], ["most"], keepdims=0),
        make_node("Cast", ["most"], ["cond"], to=TensorProto.BOOL),
        make_node("If", ["cond"], ["y"], then_branch=branch("t", "Mul"), else_branch=branch("e", "Add")),
    ]
    assert whole(network(tmp_path / "m.onnx", nodes, [matrix("w")])) == BYTES


def test_quantised(tmp_path: Path) -> None:
    nodes = [make_node("DequantizeLinear", ["q", "scale"], [name]) for name in ("w", "v")]
    weights = [matrix("q", kind=np.int8), from_array(np.array(0.1, np.float32), "scale")]
    found = network(tmp_path / "m.onnx", [*nodes, *chain("w", "v")], weights)
    assert found.weights.copied >= found.weights.whole
    assert whole(found) in (SIDE * SIDE + 4, BYTES)  # as it is, or folded


def test_embedding_and_last_product(tmp_path: Path) -> None:
    table = from_array(np.random.default_rng(1).normal(size=(SIDE, SIDE)).astype(np.float32), "w")
    nodes = [
        make_node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        make_node("GatherElements", ["w", "i"], ["g"], axis=0),
        make_node("Sigmoid", ["g"], ["s"]),
        make_node("MatMul", ["s", "w"], ["y"]),
    ]
    assert whole(network(tmp_path / "m.onnx", nodes, [table])) == BYTES
