from __future__ import annotations

import re
import time
from itertools import chain
from pathlib import Path

import onnxslim
import pytest
from onnx import ModelProto, NodeProto, helper

from gapless.executor.graph.choices import Granularity
from gapless.executor.graph.grouping import group
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.executor.graph.operators import operator_cost
from gapless.formulations import network
from gapless.formulations.errors import InvalidModelError

from .models import constant, load, model, node, opened_ocr, residual, tiny, value, weights


def types(loaded: OnnxModel) -> list[tuple[str, ...]]:
    return [layer.op_types for layer in loaded.network.layers]


def heavy_first(rest: list[NodeProto], tail: str = "h") -> ModelProto:
    """Return a convolution that makes `h`, and what follows it."""
    return model(
        [node("Conv", "x w", "h"), *rest],
        [value("x", [1, 8, 6, 6])],
        [value(tail, None)],
        [*weights(w=(8, 8, 1, 1), w2=(8, 8, 1, 1), bias=(1, 8, 1, 1)), constant("three", 3, "float32"),
         constant("zero", 0, "float32"), constant("six", 6, "float32")],
    )  # fmt: skip


@pytest.mark.parametrize(
    "rest",
    [
        [node("Add", "h bias", "b"), node("Relu", "b", "y")],
        [node("Clip", "h zero six", "y")],
        [node("Sigmoid", "h", "s"), node("Mul", "h s", "y")],
        [
            node("Add", "h three", "a"),
            node("Clip", "a zero six", "c"),
            node("Mul", "h c", "m"),
            node("Div", "m six", "y"),
        ],
        [node("HardSigmoid", "h", "s"), node("Mul", "s h", "y")],
        [node("Flatten", "h", "f"), node("Identity", "f", "y")],
        [node("Split", "h", "p q", axis=1), node("Mul", "p q", "y")],
    ],
)  # fmt: skip
def test_what_a_runtime_fuses_is_one_layer(rest: list[NodeProto], tmp_path: Path) -> None:
    assert len(load(heavy_first(rest, "y"), tmp_path).network.layers) == 1


def test_every_convolution_is_a_layer_with_its_followers(tmp_path: Path) -> None:
    assert types(load(residual(2), tmp_path)) == [
        ("Conv",),
        ("Conv", "Sigmoid", "Mul"),
        ("Conv", "Add", "Relu"),
        ("Conv", "Sigmoid", "Mul"),
        ("Conv", "Add", "Relu"),
    ]


def test_a_skip_is_not_fused_across_a_convolution(tmp_path: Path) -> None:
    # h feeds a convolution and an addition after it: fusing all of it with the first would be a cycle.
    rest = [node("Relu", "h", "r"), node("Conv", "r w2", "c"), node("Add", "c h", "y")]
    assert types(load(heavy_first(rest, "y"), tmp_path)) == [("Conv",), ("Relu", "Conv", "Add")]


def test_an_operator_before_the_first_heavy_one_joins_it(tmp_path: Path) -> None:
    nodes = [node("Sub", "x mean", "n"), node("Conv", "n w", "y")]
    proto = model(
        nodes,
        [value("x", [1, 3, 4, 4])],
        [value("y", None)],
        weights(w=(4, 3, 1, 1), mean=(1, 3, 1, 1)),
    )
    assert types(load(proto, tmp_path)) == [("Sub", "Conv")]


def test_what_costs_next_to_nothing_is_no_layer(tmp_path: Path) -> None:
    # Squeeze and excitation: a convolution on one pixel, between two real ones.
    rest = [
        node("GlobalAveragePool", "h", "g"),
        node("Conv", "g w2", "e"),
        node("Sigmoid", "e", "s"),
        node("Mul", "h s", "m"),
        node("Conv", "m w", "y"),
    ]
    proto = heavy_first(rest, "y")
    proto.graph.input[0].CopyFrom(value("x", [1, 8, 64, 64]))
    proto.graph.output[0].CopyFrom(value("y", [1, 8, 64, 64]))
    loaded = load(proto, tmp_path)
    assert types(loaded) == [("Conv",), ("GlobalAveragePool", "Conv", "Sigmoid", "Mul"), ("Conv",)]


@pytest.mark.parametrize("granularity", list(Granularity))
def test_layers_partition_a_topological_order(granularity: Granularity, tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path, granularity=granularity)
    order = list(chain.from_iterable(loaded.cutter.layers))
    assert sorted(order) == list(range(len(loaded.graph.operators)))
    made = {spec.name for spec in loaded.inputs}
    for index in order:
        operator = loaded.graph.operators[index]
        assert made.issuperset(operator.inputs)
        made.update(operator.outputs)


def test_granularities_get_coarser(tmp_path: Path) -> None:
    counts = {g: len(load(residual(), tmp_path, granularity=g).network.layers) for g in Granularity}
    assert counts == {"operator": 19, "layer": 7, "auto": 7, "block": 4, "piece": 4}


def test_operator_granularity_keeps_every_operator(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path, granularity=Granularity.OPERATOR)
    assert all(len(members) == 1 for members in loaded.cutter.layers)


def test_block_cuts_have_one_tensor_alive(tmp_path: Path) -> None:
    network = load(residual(), tmp_path, granularity=Granularity.BLOCK).network
    for cut in network.legal_cuts:
        assert len([t for t in network.tensors if t.source < cut <= max(t.targets)]) == 1


def test_a_tensor_that_cannot_wait_makes_one_layer(tmp_path: Path) -> None:
    nodes = [
        node("MatMul", "x w", "a"),
        node("MatMul", "a w", "b"),
        node("SequenceConstruct", "a b", "s"),
        node("MatMul", "b w", "c"),
        node("ConcatFromSequence", "s", "d", axis=0),
        node("MatMul", "d w", "e"),
        node("Concat", "c e", "y", axis=0),
    ]
    proto = model(nodes, [value("x", [2, 4])], [value("y", [6, 4])], weights(w=(4, 4)))
    loaded = load(proto, tmp_path, granularity=Granularity.OPERATOR)
    (joined,) = [members for members in loaded.cutter.layers if len(members) > 1]
    kinds = {loaded.graph.operators[index].op_type for index in joined}
    assert {"SequenceConstruct", "ConcatFromSequence"} <= kinds
    (warning,) = loaded.warnings
    assert "tensor 's', made by SequenceConstruct" in warning
    assert "not a tensor but a sequence" in warning


def test_sizes_that_depend_on_data_make_one_layer(tmp_path: Path) -> None:
    nodes = [node("NonZero", "x", "n"), node("Shape", "n", "s"), node("Cast", "s", "f", to=1)]
    nodes += [node("MatMul", "x w", "m"), node("ReduceSum", "f", "t", keepdims=0), node("Add", "m t", "y")]
    proto = model(nodes, [value("x", [4, 4])], [value("y", [4, 4])], weights(w=(4, 4)))
    loaded = load(proto, tmp_path, granularity=Granularity.OPERATOR)
    assert ("NonZero", "Shape") in types(loaded)
    assert "size depends on the data" in loaded.warnings[0]


def test_control_flow_is_never_divided(tmp_path: Path) -> None:
    deep = [node("MatMul", "x w", "i"), node("Relu", "i", "b")]
    branches = [
        model(deep, [], [value("b", [2, 4])]).graph,
        model([node("Neg", "h", "b")], [], [value("b", [2, 4])]).graph,
    ]
    nodes = [
        node("MatMul", "x w", "h"),
        node("ReduceMax", "h", "m", keepdims=0),
        node("Cast", "m", "c", to=9),
        node("If", "c", "y", then_branch=branches[0], else_branch=branches[1]),
    ]  # fmt: skip
    loaded = load(model(nodes, [value("x", [2, 4])], [value("y", [2, 4])], weights(w=(4, 4))), tmp_path)
    operator = loaded.graph.operators[-1]
    assert set(operator.inputs) == {"c", "x", "h"}
    assert operator.weights == ()  # the simplifier has moved it into the branch
    assert loaded.network.layers[-1].weight_bytes == 64
    assert loaded.network.layers[-1].flops is None
    assert any("control flow" in warning and "If (1)" in warning for warning in loaded.warnings)


def test_constants_belong_to_the_first_that_uses_them(tmp_path: Path) -> None:
    nodes = [
        node("ConstantOfShape", "size", "c"),  # too large to be folded
        node("MatMul", "x w", "h"),
        node("Add", "h c", "a"),
        node("MatMul", "a w", "g"),
        node("Mul", "g c", "y"),
    ]
    proto = model(
        nodes, [value("x", [2500, 2000])], [value("y", None)],
        [*weights(w=(2000, 2000)), constant("size", [2500, 2000])],
    )  # fmt: skip
    loaded = load(proto, tmp_path, granularity=Granularity.OPERATOR)
    assert types(loaded) == [("MatMul",), ("ConstantOfShape", "Add"), ("MatMul",), ("Mul",)]


def test_names_are_readable_unique_and_printable(tmp_path: Path) -> None:
    names = ["same", "same", "", "evil\x1b[0m\n", "n" * 1000]
    nodes = [node("MatMul", f"t{i} w", f"t{i + 1}", name=name) for i, name in enumerate(names)]
    proto = model(nodes, [value("t0", [2, 4])], [value("t5", [2, 4])], weights(w=(4, 4)))
    given = load(proto, tmp_path).network.layer_names
    assert given[:3] == ("same", "same#2", "MatMul_2")
    assert re.fullmatch(r"evil_\[0m_-[0-9a-f]{8}", given[3])
    assert len(given[4]) <= 200


def test_layers_add_up(tmp_path: Path) -> None:
    for granularity in Granularity:
        loaded = load(residual(), tmp_path, granularity=granularity)
        assert sum(layer.weight_bytes for layer in loaded.network.layers) == loaded.graph.weight_bytes


def test_weights_count_in_every_layer_that_uses_them(tmp_path: Path) -> None:
    nodes = [node("MatMul", f"t{i} w", f"t{i + 1}") for i in range(3)]
    proto = model(nodes, [value("t0", [2, 200])], [value("t3", [2, 200])], weights(w=(200, 200)))
    loaded = load(proto, tmp_path)
    assert [layer.weight_bytes for layer in loaded.network.layers] == [160_000] * 3
    assert any("used by several operators" in warning for warning in loaded.warnings)


def chain_of(count: int) -> ModelProto:
    nodes = [node("MatMul", f"t{i} w", f"t{i + 1}") for i in range(count)]
    return model(nodes, [value("t0", [2, 2])], [value(f"t{count}", [2, 2])], weights(w=(2, 2)))


def test_too_many_layers_ask_for_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.executor.graph.grouping.MAX_LAYERS", 50)
    with pytest.raises(InvalidModelError, match=r"120 layers at --granularity layer.*--granularity block"):
        load(chain_of(120), tmp_path)
    blocks = load(chain_of(120), tmp_path, granularity=Granularity.BLOCK)
    assert 25 <= len(blocks.network.layers) <= 50
    assert max(len(members) for members in blocks.cutter.layers) <= 6


@pytest.mark.slow
def test_thousands_of_operators_do_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxslim, "slim", lambda proto, **_: proto)
    start = time.monotonic()
    loaded = load(chain_of(network.MAX_LAYERS), tmp_path)
    assert len(loaded.network.layers) == network.MAX_LAYERS
    assert time.monotonic() - start < 60


@pytest.mark.slow
@pytest.mark.parametrize(("task", "fewest", "most"), [("det", 50, 120), ("cls", 40, 100), ("rec", 40, 100)])
def test_real_models_get_as_many_layers_as_one_expects(task: str, fewest: int, most: int) -> None:
    layers = opened_ocr(task).network.layers
    assert fewest <= len(layers) <= most
    moving = {"Reshape", "Transpose", "Squeeze", "Slice", "Concat"}
    assert [layer.name for layer in layers if moving.issuperset(layer.op_types)] == []
    assert all(layer.flops for layer in layers)


def test_one_operator_is_one_layer(tmp_path: Path) -> None:
    loaded = load(tiny(nodes=[helper.make_node("MatMul", ["x", "w"], ["y"])]), tmp_path)
    assert loaded.network.legal_cuts == ()


def test_operators_of_different_classes_are_in_different_layers(tmp_path: Path) -> None:
    rest = [node("Relu", "h", "r"), node("Conv", "r w2", "c"), node("Relu", "c", "y")]
    graph = load(heavy_first(rest, "y"), tmp_path).graph
    costs = [operator_cost(graph, operator) for operator in graph.operators]
    apart = [operator.op_type == "Relu" for operator in graph.operators]
    found = group(graph, costs, Granularity.LAYER, classes=apart)
    assert [layer.op_types for layer in found.layers] == [("Conv",), ("Relu",), ("Conv",), ("Relu",)]
    assert len(group(graph, costs, Granularity.LAYER, classes=[True] * 4).layers) == 2
