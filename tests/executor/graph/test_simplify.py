from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import onnx
import onnxslim
import pytest
from onnx import ModelProto, NodeProto

from benchmarks.fuzz import hostile
from gapless.executor.graph.shapes import fix_shapes
from gapless.executor.graph.simplify import simplify
from gapless.formulations.errors import InvalidModelError

from .models import constant, model, node, residual, tiny, value, weights


def shapes_in(proto: ModelProto) -> dict[str, list[int]]:
    values = (*proto.graph.value_info, *proto.graph.output)
    return {v.name: [size.dim_value for size in v.type.tensor_type.shape.dim] for v in values}


def reshaping() -> ModelProto:
    """Return x -> (x flattened by a chain of shape operators) -> y, with open dimensions."""
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n axes", "n1"),
        node("Concat", "n1 minus", "t", axis=0),
        node("Reshape", "x t", "r"),
        node("Relu", "r", "y"),
    ]
    constants = [constant("zero", 0), constant("axes", [0]), constant("minus", [-1])]
    return model(nodes, [value("x", ["n", 3, "w"])], [value("y", ["n", "f"])], constants)


def test_shape_chains_are_folded() -> None:
    proto = reshaping()
    fix_shapes(proto, {"x": (2, 3, 5)})
    simplified = simplify(proto)
    assert simplified.warnings == ()
    assert [entry.op_type for entry in simplified.model.graph.node] == ["Reshape", "Relu"]
    assert shapes_in(simplified.model)["y"] == [2, 15]


def test_stale_shapes_in_the_file_are_forgotten() -> None:
    proto = reshaping()
    proto.graph.value_info.append(value("r", [7, 21]))
    proto.graph.output[0].CopyFrom(value("y", [7, 21]))
    fix_shapes(proto, {"x": (2, 3, 5)})
    assert shapes_in(simplify(proto).model)["r"] == [2, 15]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    simplify(residual())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("error", [RuntimeError("it broke\nin two lines"), KeyError("x"), RecursionError()])
def test_a_failing_simplifier_is_a_warning(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def slim(*_: Any, **__: Any) -> ModelProto:
        sys.stdout.write("noise")
        raise error

    monkeypatch.setattr(onnxslim, "slim", slim)
    proto = reshaping()
    fix_shapes(proto, {"x": (2, 3, 5)})
    simplified = simplify(proto)
    (warning,) = simplified.warnings
    assert f"onnxslim failed: {type(error).__name__}" in warning
    assert "\n" not in warning
    assert len(simplified.model.graph.node) == 6
    assert shapes_in(simplified.model)["y"] == [2, 15]  # data propagation alone gets this far


def without_output(proto: ModelProto) -> None:
    proto.graph.output[0].name = "h"


def with_new_input(proto: ModelProto) -> None:
    proto.graph.input.append(value("more", [1]))


def with_loose_end(proto: ModelProto) -> None:
    proto.graph.node[0].input[0] = "nowhere"


@pytest.mark.parametrize("damage", [without_output, with_new_input, with_loose_end])
def test_a_simplifier_that_breaks_the_model_is_a_warning(
    damage: Callable[[ModelProto], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slim(proto: ModelProto, **_: Any) -> ModelProto:
        broken = ModelProto()
        broken.CopyFrom(proto)
        damage(broken)
        return broken

    monkeypatch.setattr(onnxslim, "slim", slim)
    simplified = simplify(tiny())
    assert "not simplified" in simplified.warnings[0]
    onnx.checker.check_model(simplified.model, full_check=True)
    assert [entry.name for entry in simplified.model.graph.output] == ["y"]


def test_without_the_simplifier_models_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxslim", None)
    simplified = simplify(tiny())
    assert "pip install 'gapless[ort]'" in simplified.warnings[0]
    assert len(simplified.model.graph.node) == 2


def expanding(size: int) -> ModelProto:
    """Return x + a constant of `size` elements that takes a few bytes in the file."""
    nodes = [node("ConstantOfShape", "size", "c"), node("ReduceSum", "c", "r"), node("Add", "x r", "y")]
    return model(nodes, [value("x", [1])], [value("y", None)], [constant("size", [size])])


@pytest.mark.usefixtures("little_memory")
def test_a_gigantic_constant_in_a_tiny_file_is_refused_at_once() -> None:
    with pytest.raises(InvalidModelError, match=r"'c' needs 12\.00 GB"):
        simplify(expanding(3_000_000_000))


def test_a_large_constant_stays_out_of_the_weights() -> None:
    nodes = [node("ConstantOfShape", "size", "c"), node("Add", "x c", "y")]
    proto = model(nodes, [value("x", [20_000_000])], [value("y", None)], [constant("size", [20_000_000])])
    assert simplify(proto).model.ByteSize() < 10_000


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        ([node("Tile", "one n", "big")], 500_000_000),
        ([node("Expand", "one n", "big")], 500_000_000),
        ([node("Range", "zero n0 step", "r"), node("Cast", "r", "big", to=1)], 200_000_000),
        ([node("ConstantOfShape", "n", "big")], 500_000_000),
    ],
)
def test_gigabytes_are_not_computed_beforehand(nodes: list[NodeProto], count: int) -> None:
    numbers = {"n": [count], "n0": count, "zero": 0, "step": 1}
    constants = [constant(name, number) for name, number in numbers.items()]
    proto = model(
        [*nodes, node("ReduceSum", "big", "s", keepdims=0), node("Add", "x s", "y")],
        [value("x", [1])],
        [value("y", [1])],
        [*constants, constant("one", [1.0], "float32")],
    )
    assert "too large to be computed" in simplify(proto).warnings[0]


def test_shapes_that_do_not_fit_together_are_complained_about() -> None:
    proto = tiny(inputs=[value("x", [1, 5])], initializers=weights(w=(4, 4)))
    assert any("shape inference says" in warning for warning in simplify(proto).warnings)


def test_an_unknown_element_type_is_no_surprise() -> None:
    proto = ModelProto.FromString(hostile.unknown_type())
    assert simplify(proto).warnings == ()


@pytest.mark.parametrize(
    ("content", "skipped"),
    [
        (hostile.branches(100), set()),
        (hostile.branches(1000), {"subexpression_elimination"}),
        (hostile.products(100), set()),
        (hostile.products(1000), {"weight_tying"}),
    ],
)
def test_what_compares_all_with_all_is_left_out_of_large_models(
    content: bytes, skipped: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def slim(model: ModelProto, *, skip_optimizations: list[str], **_: Any) -> ModelProto:
        asked.append(set(skip_optimizations))
        return model

    monkeypatch.setattr(onnxslim, "slim", slim)
    assert simplify(ModelProto.FromString(content)).warnings == ()
    assert asked == [skipped]


@pytest.mark.slow
def test_thousands_of_users_of_one_tensor_are_left_to_the_model_as_it_is() -> None:
    simplified = simplify(ModelProto.FromString(hostile.branches(6000)))
    assert "the tensor 'x' has 6000 users, more than 5000" in simplified.warnings[0]
    assert len(simplified.model.graph.node) == 6001


def test_too_little_memory_is_not_taken_for_a_failing_simplifier(monkeypatch: pytest.MonkeyPatch) -> None:
    def slim(*_: Any, **__: Any) -> ModelProto:
        raise MemoryError

    monkeypatch.setattr(onnxslim, "slim", slim)
    with pytest.raises(MemoryError):
        simplify(tiny())
