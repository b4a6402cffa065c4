"""ONNX Runtime: reference numbers, and sessions with honest receipts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.helper import make_node

from gapless.executor.engine import Engine
from gapless.executor.engines.ort_engine import OrtEngine
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.model import Piece
from gapless.formulations.errors import ExecutionError, InvalidInputError, PlacementError
from tests.numbers import relative_error

from .pieces import OPENCL, UNIT, conv, direction, piece, run, spec, unsupported, with_branches

ENGINE: Engine = OrtEngine()
ONES = np.ones((1, 3, 16, 16), np.float32)


def test_once_gives_what_is_wanted() -> None:
    model = conv().content.read()
    both = reference_outputs(model, {"x": ONES, "more": ONES})
    assert set(both) == {"y", "z"}
    np.testing.assert_array_equal(np.maximum(both["y"], 0), both["z"])
    assert set(reference_outputs(model, {"x": ONES}, ["y"])) == {"y"}


def test_once_says_all_that_is_wrong() -> None:
    with pytest.raises(InvalidInputError) as caught:
        reference_outputs(conv().content.read(), {}, ["w", "y"])
    assert caught.value.problems == (
        "'x' is an input of the model, but was not given",
        "'w' is no output of the model",
    )
    with pytest.raises(ExecutionError, match="cannot load the model"):
        reference_outputs(b"garbage", {})
    with pytest.raises(ExecutionError, match=r"cannot run the model.*x"):
        reference_outputs(conv().content.read(), {"x": ONES[:, :, :4]})


@pytest.mark.slow
def test_a_real_model_has_the_right_numbers() -> None:
    model = direction()
    inputs = model.sample_inputs(3)
    (artifact,) = ENGINE.prepare(model.pieces(0, len(model.network.layers)))
    session = ENGINE.open(artifact, UNIT)
    for _ in range(2):
        (found,) = run(session, inputs["x"])
        assert relative_error(found, model.reference(inputs)[model.outputs[0].name]) < 1e-5
    assert session.operator_times([inputs["x"]], repetitions=1) is None
    session.close()
    session.close()


def one_operator(kind: str, shape: tuple[int, ...], dtype: str = "float32") -> Piece:
    return piece([make_node(kind, ["x"], ["y"])], [spec("x", shape, dtype)], [spec("y", shape, dtype)])


TYPES = ("float16", "float64", "int64", "int16", "int8", "uint8", "bool")
CASES = {
    **{dtype: one_operator("Identity", (3,), dtype) for dtype in TYPES},
    "scalar": one_operator("Neg", ()),
    "empty": one_operator("Relu", (0, 3)),
    "through": piece(
        [make_node("Relu", ["x"], ["y"])],
        [spec("x", (2,)), spec("u", (3,))],
        [spec("y", (2,)), spec("u", (3,))],
    ),
    "branches": with_branches(),
}


@pytest.mark.parametrize("case", CASES)
def test_every_type_and_shape_is_carried(case: str) -> None:
    of = CASES[case]
    inputs = {s.name: np.full(s.shape, 1, s.dtype) for s in of.inputs}
    right = reference_outputs(of.content.read(), inputs)
    found = run(ENGINE.open(ENGINE.prepare([of])[0], UNIT), *inputs.values())
    for s, array in zip(of.outputs, found, strict=True):
        np.testing.assert_array_equal(array, right[s.name])


def test_a_receipt_says_what_was_granted() -> None:
    (artifact,) = ENGINE.prepare([conv()])
    for threads in (1, 3):
        receipt = ENGINE.open(artifact, replace(UNIT, threads=threads)).receipt
        assert (receipt.mismatches, receipt.granted_threads, receipt.granted_backend) == ((), threads, "cpu")
        assert receipt.engine == f"ONNX Runtime {ENGINE.availability().version}"


@pytest.mark.slow
def test_what_is_not_there_is_refused() -> None:
    (artifact,) = ENGINE.prepare([conv()])
    with pytest.raises(PlacementError, match=r"no backend 'opencl' \(unit 'gpu'\); it has cpu"):
        ENGINE.open(artifact, OPENCL)
    with pytest.raises(PlacementError, match="cores: asked for"):
        ENGINE.open(artifact, replace(UNIT, cores=(4000,)))
    receipt = OrtEngine(allow_mismatch=True).open(artifact, replace(UNIT, cores=(4000,))).receipt
    assert len(receipt.mismatches) == 1
    assert ENGINE.backends()[0] == "cpu"


def test_a_model_of_tomorrow_gets_a_hint() -> None:
    model = onnx.load_model_from_string(conv().content.read())
    model.ir_version = 99
    with pytest.raises(ExecutionError, match=r"newer than ONNX Runtime .* upgrade onnxruntime, or write"):
        reference_outputs(model.SerializeToString(), {"x": ONES}, ["y"])


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    artifact, other, unknown = ENGINE.prepare([conv(), with_branches(), unsupported()])
    with pytest.raises(ExecutionError, match=r"cannot load the model"):
        ENGINE.open(replace(artifact, path=str(tmp_path / "nothing.onnx")), UNIT)
    with pytest.raises(ExecutionError, match=r"cannot load the model.*Frobnicate"):
        ENGINE.open(unknown, UNIT)
    with pytest.raises(ExecutionError, match="what ONNX Runtime opened is not 'conv'"):
        ENGINE.open(replace(artifact, path=other.path), UNIT)


def test_a_failing_run_is_an_error() -> None:
    gather = piece(
        [make_node("Gather", ["w", "x"], ["y"])],
        [spec("x", (1,), "int64")],
        [spec("y", (1,))],
        {"w": np.zeros(3, np.float32)},
    )
    session = ENGINE.open(ENGINE.prepare([gather])[0], UNIT)
    with pytest.raises(ExecutionError, match="failed to run 'piece' on unit 'cpu'"):
        run(session, np.array([99]))
    with pytest.raises(TypeError):
        session.copy_in([np.array([1.5])])
