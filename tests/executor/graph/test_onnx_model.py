from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxslim
import pytest
from onnx import ModelProto, helper

from gapless.executor.graph.choices import Granularity
from gapless.executor.graph.onnx_model import load_onnx
from gapless.formulations.errors import InvalidModelError
from tests.numbers import relative_error

from .models import constant, load, model, node, residual, tiny, value, weights


def open_shape() -> ModelProto:
    return tiny(inputs=[value("x", ["n", 4])], outputs=[value("y", ["n", 4])])


def test_the_network_says_where_it_comes_from(tmp_path: Path) -> None:
    loaded = load(open_shape(), tmp_path, shapes={"x": (3, 4)}, granularity=Granularity.OPERATOR)
    (ref,) = loaded.network.models
    assert ref.locator == str(tmp_path / "model.onnx")
    assert ref.shapes == (("x", (3, 4)),)
    assert ref.granularity == "operator"
    assert loaded.inputs[0].shape == loaded.outputs[0].shape == (3, 4)


def test_names_come_from_the_file_or_the_user(tmp_path: Path) -> None:
    path = tmp_path / "My model;rm -rf (v2).onnx"
    path.write_bytes(tiny().SerializeToString())
    assert load_onnx(path).network.name == "My-model-rm--rf-v2"
    assert load_onnx(path, name="mine").network.name == "mine"
    loaded = load_onnx(path, name="mine", locator="zoo:mine")
    assert loaded.network.models[0].locator == "zoo:mine"
    assert loaded.reference(loaded.sample_inputs(0)).keys() == {"y"}


def test_the_digest_covers_all_that_decides(tmp_path: Path) -> None:
    def digest(proto: ModelProto, **options: object) -> str:
        return load(proto, tmp_path, **options).network.models[0].digest

    same = {digest(residual()), digest(residual(), name="other")}
    assert len(same) == 1
    others = {
        digest(residual(), granularity=Granularity.OPERATOR),
        digest(residual(channels=4)),
        digest(open_shape(), shapes={"x": (1, 4)}),
        digest(open_shape(), shapes={"x": (2, 4)}),
    }
    assert len(others | same) == 5


@pytest.mark.slow
def test_the_digest_is_the_same_in_every_process(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path)
    code = (
        "import sys; from gapless.executor.graph.onnx_model import load_onnx; m = load_onnx(sys.argv[1]); "
        "print(m.network.models[0].digest, m.pieces(1, 3)[0].digest)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.onnx")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
    )
    assert run.stdout.split() == [loaded.network.models[0].digest, loaded.pieces(1, 3)[0].digest]


def test_sample_inputs_follow_the_seed(tmp_path: Path) -> None:
    inputs = [value("f", [50, 4]), value("h", [50, 4], 10), value("i", [50, 4], 7), value("b", [50, 4], 9)]
    nodes = [node("Cast", name, f"{name}1", to=1) for name in "hib"]
    nodes += [node("Sum", "f h1 i1 b1", "y")]
    loaded = load(model(nodes, inputs, [value("y", [50, 4])]), tmp_path)
    one, same, other = (loaded.sample_inputs(seed) for seed in (1, 1, 2))
    assert {name: array.dtype.name for name, array in one.items()} == {
        "f": "float32",
        "h": "float16",
        "i": "int64",
        "b": "bool",
    }
    assert all(np.array_equal(one[name], same[name]) for name in one)
    assert all(not np.array_equal(one[name], other[name]) for name in one)
    assert set(np.unique(one["i"])) == {0, 1}


def test_the_reference_is_the_file_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(proto: ModelProto, **_: object) -> ModelProto:
        for tensor in proto.graph.initializer:
            tensor.raw_data = bytes(len(tensor.raw_data))
        return proto

    monkeypatch.setattr(onnxslim, "slim", spoiled)
    loaded = load(tiny(), tmp_path)
    inputs = {"x": np.ones((1, 4), np.float32)}
    weight = np.frombuffer(tiny().graph.initializer[0].raw_data, np.float32).reshape(4, 4)
    assert np.allclose(loaded.reference(inputs)["y"], np.maximum(inputs["x"] @ weight, 0))


def test_the_reference_gives_further_tensors(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path)
    names = [tensor.name for tensor in loaded.network.tensors if tensor.source >= 0]
    found = loaded.reference(loaded.sample_inputs(0), also=names)
    assert found.keys() == set(names)
    plain = loaded.reference(loaded.sample_inputs(0))
    assert all(relative_error(found[name], array) < 1e-5 for name, array in plain.items())
    with pytest.raises(InvalidModelError, match="has no tensor 'nothing'"):
        loaded.reference(loaded.sample_inputs(0), also=["nothing"])


def test_every_tensor_has_its_layer(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path)
    for tensor in loaded.network.tensors:
        assert loaded.layer_of(tensor.name) == (tensor.source if tensor.source >= 0 else None)
    inner = [name for index in loaded.cutter.layers[2] for name in loaded.graph.operators[index].outputs]
    assert len(inner) == 3
    assert {loaded.layer_of(name) for name in inner} == {2}
    assert loaded.layer_of("nothing") is None


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    loaded = load(tiny(), tmp_path)
    (tmp_path / "model.onnx").write_bytes(residual().SerializeToString())
    with pytest.raises(InvalidModelError, match="has changed since it was loaded"):
        loaded.reference(loaded.sample_inputs(0))


def test_inputs_that_change_nothing_are_left_out(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "h"), node("Shape", "like", "s"), node("Reshape", "h s", "y")]
    inputs = [value("unused", [7], 8), value("x", [2, 4]), value("like", [4, 2])]
    loaded = load(model(nodes, inputs, [value("y", [4, 2])], weights(w=(4, 4))), tmp_path)
    assert [spec.name for spec in loaded.inputs] == ["x"]
    assert any("'unused', 'like'" in warning for warning in loaded.warnings)
    assert loaded.reference(loaded.sample_inputs(0))["y"].shape == (4, 2)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("Relu", "x", "h"), node("Identity", "c", "y")], "'y' does not depend on any input"),
        ([node("NonZero", "x", "y")], "size depends on the data"),
        ([node("SequenceConstruct", "x", "y")], "not a tensor but a sequence"),
        ([node("Cast", "x", "y", to=16)], "element type bfloat16 cannot be passed"),
        ([node("Cast", "x", "y", to=8)], "it holds strings"),
        ([node("Slice", "x zero zero", "y")], "it is empty"),
    ],
)
def test_outputs_that_no_slot_can_hold_are_refused(nodes: list[object], words: str, tmp_path: Path) -> None:
    proto = tiny(nodes=nodes, initializers=[constant("c", 1.0, "float32"), constant("zero", [0])])
    proto.graph.output[0].ClearField("type")
    kinds = {"NonZero": 7, "Cast": nodes[0].attribute[0].i if nodes[0].attribute else 1}  # type: ignore[attr-defined]
    tensor = helper.make_tensor_type_proto(kinds.get(nodes[-1].op_type, 1), None)  # type: ignore[attr-defined]
    sequence = nodes[-1].op_type == "SequenceConstruct"  # type: ignore[attr-defined]
    proto.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(tensor) if sequence else tensor)
    with pytest.raises(InvalidModelError, match="output 'y'") as caught:
        load(proto, tmp_path)
    assert words in str(caught.value)


def test_an_input_of_a_foreign_type_is_refused(tmp_path: Path) -> None:
    proto = tiny(inputs=[value("x", [1, 4], 16)], nodes=[node("Cast", "x", "y", to=1)], initializers=[])
    with pytest.raises(InvalidModelError, match="input 'x': its element type bfloat16"):
        load(proto, tmp_path)


def foreign(**output: object) -> ModelProto:
    nodes = [
        node("MatMul", "x w", "h"),
        helper.make_node("Strange", ["h"], ["s"], domain="their.ops"),
        node("Relu", "s", "y"),
    ]
    opsets = {"": 17, "their.ops": 1}
    return tiny(nodes=nodes, opsets=opsets, **output)


def test_foreign_operators_of_unknown_shape_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=r"'s', made by operator their.ops.Strange"):
        load(foreign(outputs=[value("y", None)]), tmp_path)


def test_foreign_operators_of_declared_shape_are_cut_around(tmp_path: Path) -> None:
    proto = foreign()
    proto.graph.value_info.append(value("s", [1, 4]))
    loaded = load(proto, tmp_path, granularity=Granularity.OPERATOR)
    assert [layer.op_types for layer in loaded.network.layers] == [
        ("MatMul",),
        ("their.ops.Strange",),
        ("Relu",),
    ]
    assert any(
        "not part of ONNX" in warning and "their.ops.Strange (1)" in warning for warning in loaded.warnings
    )


def test_random_operators_are_warned_of(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "h"), node("RandomNormalLike", "h", "r"), node("Add", "h r", "y")]
    assert any("RandomNormalLike" in warning for warning in load(tiny(nodes=nodes), tmp_path).warnings)


def test_how_large_random_numbers_are_is_not_random(tmp_path: Path) -> None:
    nodes = [node("RandomNormalLike", "x", "r"), node("Shape", "r", "s"), node("Reshape", "x s", "h")]
    opened = load(tiny(nodes=[*nodes, node("MatMul", "h w", "y")]), tmp_path)
    assert opened.graph.at_random == {"r"}
    assert opened.decision("y") is None


def test_shapes_that_do_not_fit_say_what_shape_inference_says(tmp_path: Path) -> None:
    proto = open_shape()
    proto.graph.input[0].CopyFrom(value("x", ["n", "k"]))
    proto.graph.output[0].CopyFrom(value("y", None))
    with pytest.raises(InvalidModelError, match="Incompatible dimensions"):
        load(proto, tmp_path, shapes={"x": (2, 5)})


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", None)
    loaded = load(residual(), tmp_path, materialize=True)
    loaded.reference(loaded.sample_inputs(0))
    assert list(scratch.iterdir()) == []
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model.onnx", "scratch"]


def test_a_file_that_does_not_run_is_bad_input(tmp_path: Path) -> None:
    """No engine is to blame for it."""
    opened = load(
        tiny(
            nodes=[node("Gather", "w three", "h"), node("Add", "x h", "y")],
            initializers=[*weights(w=(3, 4)), constant("three", 3)],
        ),
        tmp_path,
    )
    with pytest.raises(
        InvalidModelError, match=r"model\.onnx, as it stands, gives no numbers.*out of data bounds"
    ):
        opened.reference(opened.sample_inputs(1))


def test_an_input_without_a_shape_can_be_given_one(tmp_path: Path) -> None:
    proto = tiny(inputs=[value("x", None)])
    with pytest.raises(InvalidModelError, match="input 'x' has no shape at all: give it with --shape x="):
        load(proto, tmp_path)
    assert load(proto, tmp_path, shapes={"x": (1, 4)}).inputs[0].shape == (1, 4)


def test_an_input_with_a_value_in_the_file_keeps_it_and_that_is_said(tmp_path: Path) -> None:
    inputs, parts = [value("x", [1, 4]), value("w", [4, 4])], weights(w=(4, 4), v=(4, 4))
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "h v", "y")]
    opened = load(tiny(nodes=nodes, inputs=inputs, initializers=parts), tmp_path)
    assert [spec.name for spec in opened.inputs] == ["x"]
    assert any("a value for the input 'w', which is kept" in warning for warning in opened.warnings)
    inputs.append(value("v", [4, 4]))  # an exporter's habit
    assert not load(tiny(nodes=nodes, inputs=inputs, initializers=parts), tmp_path).warnings
