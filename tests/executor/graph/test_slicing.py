from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxslim
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from gapless.executor.graph.choices import Granularity
from gapless.executor.graph.onnx_model import OnnxModel
from gapless.formulations.errors import InvalidPlanError
from tests.numbers import relative_error

from .models import constant, load, model, node, opened_ocr, residual, run_in_chunks, value, weights
from .random_models import models


def assert_chunks_agree(loaded: OnnxModel, cuts: list[int], tolerance: float = 1e-5) -> None:
    inputs = loaded.sample_inputs(1)
    right = loaded.reference(inputs)
    found = run_in_chunks(loaded, cuts, inputs)
    assert set(found) == set(right)
    for name, array in right.items():
        assert relative_error(found[name], array) <= tolerance, (name, cuts)


@pytest.mark.slow
@settings(max_examples=60)
@given(models(), st.sampled_from(list(Granularity)), st.data())
def test_random_models_compute_the_same_in_chunks(
    proto: ModelProto, granularity: Granularity, data: st.DataObject
) -> None:
    onnx.checker.check_model(proto, full_check=True)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(proto, Path(folder), granularity=granularity)
        legal = loaded.network.legal_cuts
        assert_chunks_agree(loaded, list(legal))
        some = data.draw(st.sets(st.sampled_from(legal or (0,)), max_size=4)) - {0}
        assert_chunks_agree(loaded, sorted(some))


@pytest.mark.parametrize("granularity", list(Granularity))
def test_every_single_cut_is_right(granularity: Granularity, tmp_path: Path) -> None:
    loaded = load(residual(2), tmp_path, granularity=granularity)
    for cut in loaded.network.legal_cuts:
        assert_chunks_agree(loaded, [cut])


@pytest.mark.slow
@pytest.mark.parametrize(("task", "step"), [("cls", 1), ("det", 10), ("rec", 10)])
def test_real_models_compute_the_same_in_chunks(task: str, step: int) -> None:
    loaded = opened_ocr(task)
    assert_chunks_agree(loaded, list(loaded.network.legal_cuts[::step]), tolerance=1e-4)


def test_a_piece_has_exactly_the_live_tensors(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path)
    for start in range(len(loaded.network.layers)):
        for stop in range(start + 1, len(loaded.network.layers) + 1):
            (piece,) = loaded.pieces(start, stop)
            tensors = loaded.network.tensors
            used = {t.name for t in tensors if t.source < start and any(start <= x < stop for x in t.targets)}
            made = {t.name for t in tensors if start <= t.source < stop <= max(t.targets)}
            assert {spec.name for spec in piece.inputs} == used
            assert {spec.name for spec in piece.outputs} == made
            assert {spec.name: spec.bytes for spec in (*piece.inputs, *piece.outputs)} == {
                t.name: t.bytes for t in tensors if t.name in used | made
            }


def test_a_piece_is_self_contained_and_holds_only_its_own_weights(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path)
    total = 0
    for index in range(len(loaded.network.layers)):
        (piece,) = loaded.pieces(index, index + 1)
        assert piece.content.kind == "onnx"
        proto = ModelProto.FromString(piece.content.read())
        onnx.checker.check_model(proto, full_check=True)
        assert [v.name for v in proto.graph.input] == [spec.name for spec in piece.inputs]
        assert [v.name for v in proto.graph.output] == [spec.name for spec in piece.outputs]
        used = {name for entry in proto.graph.node for name in entry.input}
        assert {tensor.name for tensor in proto.graph.initializer} <= used
        total += sum(len(tensor.raw_data) for tensor in proto.graph.initializer)
    assert total == loaded.graph.weight_bytes


def test_pieces_are_the_same_in_every_process(tmp_path: Path) -> None:
    one, two = (load(residual(), tmp_path) for _ in range(2))
    for stop in range(1, 4):
        (a,), (b,) = one.pieces(0, stop), two.pieces(0, stop)
        assert a.digest == b.digest
        assert a.content.read() == b.content.read()
    assert one.network == two.network


def test_digests_tell_pieces_apart(tmp_path: Path) -> None:
    loaded = load(residual(), tmp_path)
    count = len(loaded.network.layers)
    digests = [loaded.pieces(a, b)[0].digest for a in range(count) for b in range(a + 1, count + 1)]
    assert len(set(digests)) == count * (count + 1) // 2
    assert all(len(digest) == hashlib.sha256().digest_size * 2 for digest in digests)
    proto = residual()
    proto.graph.initializer[0].raw_data = bytes(len(proto.graph.initializer[0].raw_data))
    assert load(proto, tmp_path).pieces(0, 1)[0].digest != loaded.pieces(0, 1)[0].digest


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 0), (2, 1), (0, 8), (7, 8)])
def test_impossible_chunks_are_refused(start: int, stop: int, tmp_path: Path) -> None:
    with pytest.raises(InvalidPlanError, match=r"layers 0 to 6.*is no chunk"):
        load(residual(), tmp_path).pieces(start, stop)


def test_an_output_that_is_used_later_stays_alive(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "a w", "b"), node("MatMul", "b w", "c")]
    outputs = [value("a", [2, 4]), value("c", [2, 4])]
    loaded = load(model(nodes, [value("x", [2, 4])], outputs, weights(w=(4, 4))), tmp_path)
    tensors = {tensor.name: (tensor.source, tensor.targets) for tensor in loaded.network.tensors}
    assert tensors == {"x": (-1, (0,)), "a": (0, (1, 3)), "b": (1, (2,)), "c": (2, (3,))}
    assert [spec.name for spec in loaded.pieces(0, 3)[0].outputs] == ["a", "c"]
    assert_chunks_agree(loaded, [1, 2])


def test_an_input_that_is_an_output_needs_no_piece(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "a"), node("MatMul", "a w", "y")]
    outputs = [value("x", [2, 4]), value("y", [2, 4])]
    loaded = load(model(nodes, [value("x", [2, 4])], outputs, weights(w=(4, 4))), tmp_path)
    (tensor,) = [tensor for tensor in loaded.network.tensors if tensor.name == "x"]
    assert (tensor.source, tensor.targets) == (-1, (0, 2))
    assert loaded.pieces(1, 2)[0].inputs == loaded.pieces(0, 1)[0].outputs
    assert_chunks_agree(loaded, [1])


def test_weights_captured_by_a_loop_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxslim, "slim", lambda proto, **_: proto)
    body = model(
        [node("MatMul", "state w", "next"), node("Identity", "go", "still")],
        [value("i", [], 7), value("go", [], 9), value("state", [2, 4])],
        [value("still", [], 9), value("next", [2, 4])],
    ).graph
    nodes = [
        node("MatMul", "x w2", "h"),
        node("Loop", "three _ h", "l", body=body),
        node("MatMul", "l w2", "y"),
    ]
    constants = [*weights(w=(4, 4), w2=(4, 4)), constant("three", 3)]
    loaded = load(model(nodes, [value("x", [2, 4])], [value("y", [2, 4])], constants), tmp_path)
    index = next(i for i, layer in enumerate(loaded.network.layers) if "Loop" in layer.op_types)
    proto = ModelProto.FromString(loaded.pieces(index, index + 1)[0].content.read())
    assert {"w", "three"} <= {tensor.name for tensor in proto.graph.initializer}
    assert_chunks_agree(loaded, list(loaded.network.legal_cuts))


def test_integer_and_boolean_tensors_cross_cuts(tmp_path: Path) -> None:
    nodes = [
        node("ArgMax", "x", "a", axis=1, keepdims=0),
        node("MatMul", "x w", "h"),
        node("Greater", "h zero", "g"),
        node("Cast", "g", "f", to=1),
        node("Gather", "table a", "t"),
        node("Add", "t f", "y"),
    ]
    constants = [*weights(w=(4, 4), table=(4, 4)), constant("zero", 0, "float32")]
    proto = model(nodes, [value("x", [4, 4])], [value("y", [4, 4]), value("g", [4, 4], 9)], constants)
    loaded = load(proto, tmp_path, granularity=Granularity.OPERATOR)
    assert {spec.dtype for spec in loaded.outputs} == {"float32", "bool"}
    inputs = loaded.sample_inputs(0)
    found = run_in_chunks(loaded, list(loaded.network.legal_cuts), inputs)
    for name, array in loaded.reference(inputs).items():
        assert np.array_equal(found[name], array)
