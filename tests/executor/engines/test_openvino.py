"""OpenVINO: right numbers for every type, honest receipts, and nothing that is sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx.helper import make_node

from gapless.executor.engine import Engine
from gapless.executor.engines.openvino_engine import OpenVinoEngine, backend_name
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.model import Piece
from gapless.formulations.errors import ExecutionError, PlacementError
from gapless.formulations.hardware import EngineSettings, Precision, UnitKind
from tests.numbers import relative_error

from .pieces import (
    OPENCL,
    UNIT,
    conv,
    direction,
    piece,
    run,
    spec,
    unsupported,
    with_branches,
    without_weights,
)

ENGINE: Engine = OpenVinoEngine()

if not ENGINE.availability().ok:
    pytest.skip(ENGINE.availability().reason, allow_module_level=True)

pytestmark = pytest.mark.slow


def one_operator(kind: str, shape: tuple[int, ...], dtype: str = "float32") -> Piece:
    return piece([make_node(kind, ["x"], ["y"])], [spec("x", shape, dtype)], [spec("y", shape, dtype)])


TYPES = ("float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
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
    session = ENGINE.open(ENGINE.prepare([of])[0], UNIT)
    for _ in range(2):
        for s, array in zip(of.outputs, run(session, *inputs.values()), strict=True):
            np.testing.assert_array_equal(array, right[s.name])


def test_a_real_model_has_the_right_numbers_and_times() -> None:
    model = direction()
    inputs = model.sample_inputs(3)
    (artifact,) = ENGINE.prepare(model.pieces(0, len(model.network.layers)))
    session = ENGINE.open(artifact, UNIT)
    right = model.reference(inputs)[model.outputs[0].name]
    assert relative_error(run(session, inputs["x"])[0], right) < 1e-5
    times = session.operator_times([inputs["x"]], repetitions=5)
    assert times is not None
    known = {model.layer_of(each.output) for each in times} - {None}
    assert len(known) > 0.5 * len(model.network.layers)
    assert sum(each.time_us for each in times) > 0
    assert relative_error(run(session, inputs["x"])[0], right) < 1e-5
    session.close()
    session.close()


@pytest.mark.parametrize(
    ("dtype", "number", "words"),
    [
        ("int64", 2**40, r"'x' holds numbers from 1099511627776 to .*: OpenVINO computes with 32-bit"),
        ("uint32", 2**31, "'x' holds numbers from 2147483648"),
        ("float64", 1e300, "'x' holds numbers beyond float32, with which OpenVINO computes"),
    ],
)
def test_numbers_are_not_lost_silently(dtype: str, number: float, words: str) -> None:
    session = ENGINE.open(ENGINE.prepare([conv()])[0], UNIT)
    with pytest.raises(ExecutionError, match=words):
        session.copy_in([np.full((1, 3, 16, 16), number, dtype)])


def test_a_receipt_says_what_was_granted() -> None:
    (artifact,) = ENGINE.prepare([conv()])
    receipt = ENGINE.open(artifact, UNIT).receipt
    assert (receipt.mismatches, receipt.granted_threads, receipt.granted_backend) == ((), 1, "cpu")
    assert receipt.engine == f"OpenVINO {ENGINE.availability().version}"
    with pytest.raises(PlacementError, match="threads: asked for 999, got"):
        ENGINE.open(artifact, replace(UNIT, threads=999))
    assert OpenVinoEngine(allow_mismatch=True).open(artifact, replace(UNIT, threads=999)).receipt.mismatches


def test_low_precision_is_another_one_where_the_processor_has_it() -> None:
    inputs = np.random.default_rng(0).random((1, 3, 16, 16), dtype=np.float32)
    (artifact,) = ENGINE.prepare([conv()])
    right = reference_outputs(conv().content.read(), {"x": inputs})["z"]
    errors = {}
    for precision in Precision:
        unit = replace(UNIT, engine=EngineSettings(precision=precision))
        errors[precision] = relative_error(run(ENGINE.open(artifact, unit), inputs)[0], right)
    assert errors[Precision.HIGH] == errors[Precision.NORMAL] < 1e-5
    assert errors[Precision.LOW] < 3e-2


def test_devices_by_our_names() -> None:
    assert backend_name(["CPU"], "cpu") == "cpu"
    assert backend_name(["GPU.0"], "gpu") == "gpu"
    assert backend_name(["GPU.1"], "gpu.1") == "gpu.1"
    assert backend_name(["GPU.1"], "gpu") == "gpu.1"
    assert backend_name(["CPU"], "gpu") == "cpu"
    assert backend_name(["GPU.0", "CPU"], "gpu") == "gpu.0+cpu"
    assert ENGINE.backends()[0] == "cpu"


@pytest.mark.parametrize("backend", ["auto", "hetero:gpu,cpu", "multi"])
def test_no_device_that_chooses_by_itself(backend: str) -> None:
    (artifact,) = ENGINE.prepare([conv()])
    with pytest.raises(PlacementError, match=r"no backend .* here \(unit 'x'\); it has cpu"):
        ENGINE.open(
            artifact, replace(OPENCL, name="x", kind=UnitKind.GPU, engine=EngineSettings(backend=backend))
        )


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    artifact, other, unknown, weightless = ENGINE.prepare(
        [conv(), with_branches(), unsupported(), without_weights()]
    )
    with pytest.raises(
        ExecutionError, match=r"OpenVINO cannot run 'random\[3:7\)'.* No conversion rule .*Frob"
    ):
        ENGINE.open(unknown, UNIT)
    with pytest.raises(ExecutionError, match=r"OpenVINO cannot run 'weightless' on unit 'cpu'.*gone\.bin"):
        ENGINE.open(weightless, UNIT)
    with pytest.raises(ExecutionError, match="OpenVINO cannot run 'conv'"):
        ENGINE.open(replace(artifact, path=str(tmp_path / "nothing.onnx")), UNIT)
    with pytest.raises(
        ExecutionError, match=r"what OpenVINO opened is not 'conv': it has the tensors \[\['y'\]"
    ):
        ENGINE.open(replace(artifact, path=other.path), UNIT)
    swapped = (artifact.outputs[1], artifact.outputs[0])
    with pytest.raises(ExecutionError, match="what OpenVINO opened is not 'conv'"):
        ENGINE.open(replace(artifact, outputs=swapped), UNIT)


def test_arrays_of_another_type_are_refused() -> None:
    session = ENGINE.open(ENGINE.prepare([conv()])[0], UNIT)
    with pytest.raises(TypeError):
        session.copy_in([np.zeros((1, 3, 16, 16), np.float16)])
