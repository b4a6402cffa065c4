from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

from gapless.executor.comparing import AT_RANDOM, Allowed, Difference, Reference
from gapless.executor.engines.ort_session import observed_outputs, reference_outputs
from gapless.executor.graph import simplify
from gapless.executor.graph.choices import COMPARING, Simplification
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.graph.opening import Opener
from gapless.formulations.errors import InvalidModelError

from .models import constant, load, model, node, run_in_chunks, tiny, value, weights


def numbers(name: str, *shape: int, seed: int = 0, low: float = 0.2) -> TensorProto:
    """Return numbers that are far from zero and from each other."""
    random = np.random.default_rng(seed)
    return constant(name, low + random.random(shape), "float32")


def network(
    nodes: Sequence[NodeProto], outputs: Sequence[str], parts: Sequence[TensorProto], *x: int, **how: Any
) -> ModelProto:
    return model(nodes, [value("x", x)], [value(name, None) for name in outputs], parts, **how)


def clips() -> ModelProto:
    """Two limits of one tensor, one from below and one from above, with the same number."""
    nodes = [
        node("Clip", "x limit _", "low", name="lower"),
        node("Clip", "x _ limit", "high", name="upper"),
        node("Conv", "low v", "a"),
        node("Conv", "high w", "b"),
        node("Concat", "a b", "y", axis=1),
    ]
    return network(
        nodes,
        ["y"],
        [constant("limit", 0.1, "float32"), *weights(v=(3, 4, 1, 1), w=(3, 4, 1, 1))],
        1,
        4,
        5,
        5,
    )


def resizes() -> ModelProto:
    nodes = [
        node("Resize", "x _ twice", "a", mode="nearest"),
        node("Resize", "x _ _ sizes", "b", mode="nearest"),
        node("Concat", "a b", "y", axis=1),
    ]
    return network(
        nodes,
        ["y"],
        [constant("twice", [1, 1, 2, 2], "float32"), constant("sizes", [1, 4, 10, 10])],
        1,
        4,
        5,
        5,
    )


def recurrent(kind: str, gates: int) -> ModelProto:
    """Two layers of the same weights: the state is that of the output, or that of the cell, or none."""
    hidden = 4
    parts = [*weights(w=(1, gates * hidden, 6), r=(1, gates * hidden, hidden))]
    state = numbers("s", 1, 2, hidden)
    inputs = ("x w r _ _ s _", "x w r _ _ _ s") if kind == "LSTM" else ("x w r _ _ s", "x w r _ _ _")
    nodes = [
        *(node(kind, taken, made, hidden_size=hidden) for taken, made in zip(inputs, "ab", strict=True)),
        node("Sub", "a b", "y"),
    ]
    return network(nodes, ["y"], [*parts, state], 3, 2, 6)


def scaled(conv: str, shape: Sequence[int], *, group: int = 1, x: Sequence[int] = (1, 4, 4, 4)) -> ModelProto:
    """A convolution with 4 channels times a vector along some axis."""
    nodes = [node(conv, "x w", "c", group=group, name="conv"), node("Mul", "c v", "y", name="scale")]
    return network(nodes, ["y"], [*weights(w=(4, 4 // group, 1, 1)), numbers("v", *shape)], *x)


def added(shape: Sequence[int]) -> ModelProto:
    nodes = [node("Conv", "x w", "c"), node("Add", "c v", "y")]
    return network(nodes, ["y"], [*weights(w=(4, 4, 1, 1)), numbers("v", *shape)], 1, 4, 4, 4)


def gemm(*, as_output: bool) -> ModelProto:
    """A linear layer that is scaled, and read or given out as it is, too."""
    nodes = [
        node("Gemm", "x w b", "g", transB=1, name="linear"),
        node("Reshape", "g shape", "r"),
        node("Mul", "r factor", "m"),
        node("Softmax", "m", "attention"),
        node("Tanh", "g", "residual"),
    ]
    parts = [*weights(w=(8, 6), b=(8,)), constant("shape", [3, 2, 4]), constant("factor", 0.3, "float32")]
    return network(nodes, ["attention", "residual", *(["g"] if as_output else [])], parts, 3, 6)


def matmul(*, as_output: bool) -> ModelProto:
    nodes = [
        node("MatMul", "x w", "g"),
        node("Add", "g b", "h"),
        node("Mul", "h factor", "m"),
        node("Softmax", "m", "attention"),
        node("Tanh", "h", "residual"),
    ]
    parts = [*weights(w=(6, 8), b=(8,)), constant("factor", 0.3, "float32")]
    return network(nodes, ["attention", "residual", *(["h"] if as_output else [])], parts, 2, 3, 6)


def padded(pads: Sequence[int], *, inputs: str = "x pads", opset: int = 18, **how: Any) -> ModelProto:
    nodes = [
        node("Pad", inputs, "p", name="edge", **how),
        node("Conv", "p w", "c", name="conv"),
        node("Relu", "c", "y"),
    ]
    parts = [
        constant("pads", pads),
        constant("axes", [2, 3]),
        constant("seven", 7.0, "float32"),
        *weights(w=(4, 4, 3, 3)),
    ]
    used = [each for each in parts if each.name in {*inputs.split(), "w"}]
    return network(nodes, ["y"], used, 1, 4, 6, 6, opsets={"": opset})


def normalised_twice() -> ModelProto:
    nodes = [
        node("Conv", "x w", "c"),
        node("BatchNormalization", "c s o m v", "n"),
        node("Relu", "n", "y"),
        node("Tanh", "c", "z"),
    ]
    parts = [numbers(name, 4, seed=place) for place, name in enumerate("somv")]
    return network(nodes, ["y", "z"], [*weights(w=(4, 4, 1, 1)), *parts], 1, 4, 4, 4)


def slices() -> ModelProto:
    """Two slices along different axes, one of the other; and what they become joined."""
    nodes = [
        node("Slice", "x zero three axis", "a"),
        node("Slice", "a zero one", "b"),
        node("Concat", "a b", "y", axis=0),
    ]
    parts = [constant("zero", [0]), constant("one", [1]), constant("three", [3]), constant("axis", [2])]
    return network(nodes, ["y"], parts, 2, 3, 4)


def branches() -> ModelProto:
    """Two branches that clip an outer tensor, each in its own way."""
    sides = [
        helper.make_graph([node("Clip", inputs, f"{name}_out")], name, [], [value(f"{name}_out", [2, 3])])
        for name, inputs in (("then", "x limit"), ("else", "x _ limit"))
    ]
    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Greater", "s limit", "q"),
        node("If", "q", "i", then_branch=sides[0], else_branch=sides[1]),
        node("Clip", "x limit", "a"),
        node("Clip", "x _ limit", "b"),
        node("Sum", "i a b b", "y"),
    ]
    return network(nodes, ["y"], [constant("limit", 0.1, "float32")], 2, 3)


def dropouts() -> ModelProto:
    nodes = [node("Dropout", "x", "a"), node("Dropout", "x", "b"), node("Sum", "a b x", "y")]
    return network(nodes, ["y"], [], 2, 3)


CASES = {
    "clips": clips(),
    "resizes": resizes(),
    "lstm": recurrent("LSTM", 4),
    "gru": recurrent("GRU", 3),
    "mul along the width": scaled("Conv", [4]),
    "mul along the height": scaled("Conv", [4, 1]),
    "mul along the batch": scaled("Conv", [4, 1, 1, 1], x=(4, 4, 3, 3)),
    "mul along the width, transposed": scaled("ConvTranspose", [4]),
    "mul along the channels, transposed": scaled("ConvTranspose", [4, 1, 1]),
    "mul along the channels, grouped": scaled("Conv", [4, 1, 1], group=2),
    "add along the width": added([4]),
    "add along the height": added([1, 4, 1]),
    "gemm": gemm(as_output=False),
    "gemm as output": gemm(as_output=True),
    "matmul": matmul(as_output=False),
    "matmul as output": matmul(as_output=True),
    "pad with axes": padded([0, 0, 1, 2], inputs="x pads _ axes"),
    "pad, negative": padded([0, 0, -1, 1, 0, 0, 1, -1]),
    "pad with a number": padded([0, 0, 1, 1, 0, 0, 1, 1], inputs="x pads seven"),
    "pad that reflects": padded([0, 0, 1, 1, 0, 0, 1, 1], mode="reflect"),
    "pad of channels": padded([0, 1, 1, 1, 0, -1, 1, 1]),
    "normalised with two readers": normalised_twice(),
    "slices": slices(),
    "branches": branches(),
    "dropouts": dropouts(),
}
WRONG = ("clips", "lstm", "mul along the width", "mul along the height", "mul along the batch", "gemm")
"""Of which the simplifier makes something else (onnxslim 0.1.98)."""


def worst(opened: OnnxModel, proto: ModelProto) -> float:
    """Return the largest error of a model, cut everywhere, against its file."""
    error = 0.0
    cuts = opened.network.legal_cuts
    for seed in (11, 12):
        inputs = opened.sample_inputs(seed)
        right = reference_outputs(proto.SerializeToString(), inputs)
        for name, found in run_in_chunks(opened, cuts, inputs).items():
            assert found.shape == right[name].shape
            error = max(
                error, float(np.abs(found - right[name]).max(initial=0) / (np.abs(right[name]).max() + 1e-9))
            )
    return error


@pytest.mark.parametrize("name", CASES)
def test_a_model_gives_the_numbers_of_its_file(name: str, tmp_path: Path) -> None:
    opened = load(CASES[name], tmp_path)
    assert worst(opened, CASES[name]) < 1e-4
    assert any("because otherwise" in note for note in opened.warnings) or name not in WRONG


@pytest.mark.parametrize("name", WRONG)
def test_without_the_comparison_numbers_are_wrong(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the cases above prove nothing."""
    monkeypatch.setattr(simplify, "_difference", lambda *_, **__: "")
    assert worst(load(CASES[name], tmp_path), CASES[name]) > 1e-2


def note_of(proto: ModelProto, folder: Path, **how: Any) -> str:
    (note,) = (note for note in load(proto, folder, **how).warnings if "simplif" in note)
    return note


def test_the_note_names_output_and_operators_of_the_file(tmp_path: Path) -> None:
    note = note_of(CASES["clips"], tmp_path)
    assert "without merging equal operators" in note
    assert "output 'y'" in note
    assert "of Conv 'b'" in note or "of Conv 'a'" in note
    assert "Clip 'upper'" in note or "Clip 'lower'" in note


def test_what_onnx_runtime_refuses_is_not_used(tmp_path: Path) -> None:
    note = note_of(CASES["pad with axes"], tmp_path)
    assert "without fusing operators" in note
    assert "Conv 'conv'" in note


def test_what_cannot_be_mended_by_leaving_out_one_thing_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simplify, "_difference", lambda *_, **__: "nothing is right")
    opened = load(CASES["matmul"], tmp_path)
    assert opened.rewriting == ("not simplified, because otherwise nothing is right",)
    assert [each.op_type for each in opened.graph.operators] == ["MatMul", "Add", "Mul", "Softmax", "Tanh"]


def test_simplification_can_be_switched_off(tmp_path: Path) -> None:
    opened = load(CASES["matmul"], tmp_path, simplification=Simplification.OFF)
    assert opened.rewriting == ()
    assert [each.op_type for each in opened.graph.operators] == ["MatMul", "Add", "Mul", "Softmax", "Tanh"]
    assert opened.network.models[0].simplify == "off"
    usual = load(CASES["matmul"], tmp_path)
    assert "Gemm" in [each.op_type for each in usual.graph.operators]
    assert usual.network.models[0].digest != opened.network.models[0].digest


def test_right_numbers_inside_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it the simplified model, a wrong one would name no culprit."""
    monkeypatch.setattr(simplify, "_difference", lambda *_, **__: "")
    opened = load(CASES["gemm"], tmp_path)  # "g" is scaled, which it should not be
    inputs = opened.sample_inputs(1)
    right = reference_outputs(gemm(as_output=True).SerializeToString(), inputs)
    np.testing.assert_allclose(opened.reference(inputs, also=["g"])["g"], right["g"], rtol=1e-5)


def random_numbers() -> ModelProto:
    nodes = [node("RandomNormalLike", "x", "r"), node("Identity", "r", "i"), node("Add", "x i", "y")]
    return network(nodes, ["y"], [], 2, 3)


def dropped(switch: Sequence[NodeProto | TensorProto]) -> ModelProto:
    """A Dropout that drops, if its switch is on: the simplifier takes it out in any case."""
    nodes = [*(each for each in switch if isinstance(each, NodeProto)), node("Dropout", "x half on", "d")]
    parts = [each for each in switch if isinstance(each, TensorProto)]
    return network([*nodes, node("Relu", "d", "y")], ["y"], [constant("half", 0.5, "float32"), *parts], 8, 9)


def drawn_once() -> ModelProto:
    """Random numbers that depend on no input: folded, they would be the same in every run."""
    nodes = [node("RandomNormal", "", "r", shape=[8, 9]), node("Mul", "r two", "s"), node("Add", "x s", "y")]
    return network(nodes, ["y"], [constant("two", 2.0, "float32")], 8, 9)


ON, OFF = ([constant("on", switch, "bool")] for switch in (True, False))


@pytest.mark.parametrize("proto", [dropped(ON), drawn_once()], ids=["dropout", "normal"])
def test_random_operators_stay_as_they_are(proto: ModelProto, tmp_path: Path) -> None:
    opened = load(proto, tmp_path)
    ones = {"x": np.ones((8, 9), "float32")}
    (piece,) = opened.pieces(0, len(opened.network.layers))
    found = [each["y"] for each in observed_outputs(piece.content.read(), [ones, ones], seconds=60.0)]
    assert not np.array_equal(*found)
    decision = opened.decision("y")
    assert decision is not None
    right = Reference.of([found[0]], decision=decision)
    assert right.compare(found[1], 0, Allowed(1e-3)) == Difference(0.0, 1e-3, words=AT_RANDOM, compared=False)
    assert right.compare(found[1][:1], 0, Allowed(1e-3)).error == np.inf


@pytest.mark.parametrize(
    "switch",
    [OFF, [node("Constant", "", "on", value=helper.make_tensor("v", TensorProto.BOOL, [], [False]))]],
)
def test_a_dropout_that_drops_nothing_is_not_random(
    switch: Sequence[NodeProto | TensorProto], tmp_path: Path
) -> None:
    opened = load(dropped(switch), tmp_path)
    assert opened.decision("y") is None
    assert [operator.kind for operator in opened.graph.operators] == ["Relu"]
    assert not opened.warnings


def test_beside_random_operators_nothing_is_rewritten(tmp_path: Path) -> None:
    """There is no comparison that could tell the simplifier's faults from chance: of a scaled Gemm, say."""
    proto = gemm(as_output=True)
    proto.graph.node.append(node("RandomNormalLike", "g", "noise"))
    proto.graph.output.append(value("noise", None))
    opened = load(proto, tmp_path)
    assert any("not simplified" in warning for warning in opened.warnings)
    inputs = opened.sample_inputs(1)
    right = reference_outputs(proto.SerializeToString(), inputs)
    found = run_in_chunks(opened, [], inputs)
    for name in (each.name for each in gemm(as_output=True).graph.output):
        np.testing.assert_allclose(found[name], right[name], rtol=1e-4, atol=1e-5)


def unknown_operator() -> ModelProto:
    nodes = [node("Nobody", "x", "r", domain="nowhere"), node("Identity", "r", "i"), node("Relu", "i", "y")]
    return model(nodes, [value("x", [2, 3])], [value("y", [2, 3])], opsets={"": 17, "nowhere": 1})


def not_a_number() -> ModelProto:
    nodes = [
        node("Sqrt", "x", "r"),
        node("Identity", "r", "i"),
        node("Sub", "i low", "z"),
        node("Sqrt", "z", "y"),
    ]
    return network(nodes, ["y"], [constant("low", 9.0, "float32")], 2, 3)


@pytest.mark.parametrize(
    ("proto", "words"),
    [
        (random_numbers(), "random operators give other numbers"),
        (unknown_operator(), "the file itself does not run"),
        (not_a_number(), "except for 'y': mostly not finite"),
    ],
)
def test_what_was_not_compared_is_said(proto: ModelProto, words: str, tmp_path: Path) -> None:
    proto.graph.output[0].CopyFrom(value("y", [2, 3]))
    assert words in note_of(proto, tmp_path)


def test_a_model_that_is_too_large_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplify, "MAX_COMPARED_BYTES", 100)
    assert "not compared with the file: its tensors have" in note_of(CASES["matmul"], tmp_path)


def test_a_model_without_rewritings_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simplify._File, "run", None)
    assert load(tiny(), tmp_path).warnings == ()


def test_a_comparison_that_ends_the_process_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(CASES["matmul"].SerializeToString())
    with Opener() as opener:
        ask, asked = opener._ask, []

        def dying(where: Path, question: Any) -> Any:
            asked.append(question["compared"])
            if question["compared"]:
                opener._step = COMPARING
                raise InvalidModelError("the process was killed")
            return ask(where, question)

        monkeypatch.setattr(opener, "_ask", dying)
        opened = load_onnx(path, opener=opener)
    assert asked == [True, False]
    assert "not compared with the file" in opened.rewriting[0]
