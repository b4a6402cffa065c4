from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from benchmarks.foreign import classical, control
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.graph.shapes import fix_shapes, observe_shapes, unknown_tensors
from gapless.formulations.errors import InvalidModelError

from .models import constant, model, node, value, weights


def load_saved(proto: ModelProto, folder: Path, **shapes: tuple[int, ...]) -> OnnxModel:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return load_onnx(path, shapes=shapes)


def test_trees_and_loops_open_in_several_layers(tmp_path: Path) -> None:
    forest = load_saved(classical.forest_classifier(), tmp_path, X=(5, 8))
    assert {spec.name: spec.shape for spec in forest.outputs} == {"label": (5,), "probabilities": (5, 3)}
    loop = load_saved(control.loop_of_fixed_turns(), tmp_path, input=(1, 3, 64, 64))
    assert len(loop.network.layers) > 1
    assert {spec.name: spec.shape for spec in loop.outputs} == {"output": (1, 8), "strongest": (1, 16)}


def test_symbols_that_are_fixed_reach_outputs() -> None:
    proto = model([node("Relu", "x", "y")], [value("x", ["n", 3])], [value("y", ["n", "m"])])
    fix_shapes(proto, {"x": (4, 3)})
    sizes = proto.graph.output[0].type.tensor_type.shape.dim
    assert [size.dim_value or size.dim_param for size in sizes] == [4, "m"]


def test_a_symbol_of_two_sizes_is_not_bound() -> None:
    proto = model([node("Sum", "x z", "y")], [value("x", ["n"]), value("z", ["n"])], [value("y", ["n"])])
    fix_shapes(proto, {"x": (1,), "z": (4,)})
    assert proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_sizes_that_depend_on_data_stay_unknown() -> None:
    proto = model([node("NonZero", "x", "y")], [value("x", [2, 8])], [value("y", [2, "k"])])
    # Normally distributed numbers are never 0: both runs find 16, which is chance.
    assert observe_shapes(proto) is None
    assert unknown_tensors(proto) == ["y"]


def test_what_is_padded_after_suppression_has_a_size(tmp_path: Path) -> None:
    loaded = load_saved(control.detector_with_suppression(), tmp_path)
    assert [spec.shape for spec in loaded.outputs] == [(3,)]


def test_a_sequence_as_output_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidModelError, match=r"sequence.*zipmap"):
        load_saved(classical.zipped_classifier(), tmp_path)


def test_what_cannot_run_is_said() -> None:
    proto = model(
        [node("Mine", "x", "h", domain="own"), node("MatMul", "h w", "y")],
        [value("x", [1, 4])],
        [value("y", ["a", "b"])],
        [*weights(w=(4, 4)), constant("unused", 1)],
        opsets={"": 17, "own": 1},
    )
    assert "could not be observed" in (observe_shapes(proto) or "")


def test_an_input_of_no_known_type_is_refused_where_operators_are_read(tmp_path: Path) -> None:
    proto = model([node("NonZero", "x", "y")], [value("x", [2, 8])], [value("y", [2, "k"])])
    proto.graph.input[0].type.tensor_type.elem_type = 2**31 - 1
    assert observe_shapes(proto) is None
    with pytest.raises(InvalidModelError):
        load_saved(proto, tmp_path)
