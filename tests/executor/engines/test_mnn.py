"""MNN sessions: right numbers for every type and layout, and no run on stale inputs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from onnx.helper import make_node

from gapless.executor.engine import Artifact, Engine, Session
from gapless.executor.engines.helper import Helper
from gapless.executor.engines.mnn_engine import MnnEngine, convert
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.model import Piece, TensorSpec
from gapless.executor.workers import unit_data
from gapless.formulations.errors import ExecutionError, PlacementError
from gapless.formulations.hardware import EngineSettings, ProcessingUnit
from tests.numbers import relative_error

from .pieces import OPENCL, UNIT, Array, conv, direction, piece, run, spec

ENGINE: Engine = MnnEngine()
RANDOM = np.random.default_rng(1)


def opened(of: Piece) -> Session:
    return ENGINE.open(ENGINE.prepare([of])[0], UNIT)


def one_operator(
    kind: str, x: TensorSpec, y: TensorSpec, *weights: Array, **options: int | list[int]
) -> Piece:
    """Return a piece with one operator, from x and some weights to y."""
    named = {f"w{index}": array for index, array in enumerate(weights)}
    return piece([make_node(kind, ["x", *named], ["y"], None, None, None, None, **options)], [x], [y], named)


@pytest.mark.slow
def test_a_real_model_has_the_right_numbers() -> None:
    model = direction()
    (whole,) = model.pieces(0, len(model.network.layers))
    inputs = model.sample_inputs(3)
    right = model.reference(inputs)
    session = opened(whole)
    for _ in range(2):
        (found,) = run(session, inputs["x"])
        assert relative_error(found, right[model.outputs[0].name]) < 1e-4


@pytest.mark.slow
def test_a_chain_of_pieces_has_the_right_numbers() -> None:
    model = direction()
    cuts = [0, *model.network.legal_cuts[::10], len(model.network.layers)]
    pieces = [part for a, b in pairwise(cuts) for part in model.pieces(a, b)]
    assert len(pieces) > 3
    tensors = model.sample_inputs(4)
    right = model.reference(tensors)
    for part, artifact in zip(pieces, ENGINE.prepare(pieces), strict=True):
        session = ENGINE.open(artifact, UNIT)
        found = run(session, *(tensors[s.name] for s in part.inputs))
        tensors |= {s.name: array for s, array in zip(part.outputs, found, strict=True)}
        session.close()
    for name, array in right.items():
        assert relative_error(tensors[name], array) < 1e-4


def test_conversions_are_kept() -> None:
    (first,) = ENGINE.prepare([conv()])
    again = ENGINE.prepare([conv("other name"), conv()])
    assert again[1] == first
    assert again[0] == replace(first, piece="other name")
    Path(first.path).write_bytes(b"damaged")
    (anew,) = ENGINE.prepare([conv()])
    assert Path(anew.path).read_bytes() != b"damaged"
    ENGINE.open(anew, UNIT)


def test_artifacts_can_go_into_a_folder(tmp_path: Path, cache_folder: Path) -> None:
    (artifact,) = ENGINE.prepare([conv()], folder=tmp_path / "mine")
    assert Path(artifact.path).parent == tmp_path / "mine"
    assert not cache_folder.exists()


def x(*shape: int, dtype: str = "float32") -> TensorSpec:
    return spec("x", shape, dtype)


def y(*shape: int, dtype: str = "float32") -> TensorSpec:
    return spec("y", shape, dtype)


ONE = np.ones((2, 3), np.float32)
HALF = np.array(0.5, np.float32)
ZERO = np.array([0])
CASES = {
    "int64": one_operator("Add", x(3, dtype="int64"), y(3, dtype="int64"), np.array([1, -2, 3])),
    "int32": one_operator("Mul", x(2, dtype="int32"), y(2, dtype="int32"), np.array([2, -3], np.int32)),
    "int16": one_operator("Cast", x(5, dtype="int16"), y(5), to=TensorProto.FLOAT),
    "uint8": one_operator("Cast", x(5, dtype="uint8"), y(5), to=TensorProto.FLOAT),
    "float16 in": one_operator("Cast", x(2, 3, dtype="float16"), y(2, 3), to=TensorProto.FLOAT),
    "float16 out": one_operator("Cast", x(2, 3), y(2, 3, dtype="float16"), to=TensorProto.FLOAT16),
    "float64": one_operator("Neg", x(2, 3, dtype="float64"), y(2, 3, dtype="float64")),
    "bool in": one_operator("Not", x(7, dtype="bool"), y(7, dtype="bool")),
    "bool out": one_operator("Greater", x(2, 3), y(2, 3, dtype="bool"), HALF),
    "scalar out": one_operator("ReduceSum", x(2, 3), y(), keepdims=0),
    "scalar in": one_operator("Neg", x(), y()),
    "empty in": one_operator("Concat", x(0, 3), y(2, 3), ONE, axis=0),
    "empty out": one_operator("Slice", x(2, 3), y(0, 3), ZERO, ZERO),
    "only its shape": one_operator("Shape", x(1, 3, 4), y(3, dtype="int64")),
    "five dimensions": one_operator("Relu", x(1, 3, 4, 5, 6), y(1, 3, 4, 5, 6)),
    "two outputs": conv(),
    "trailing one": one_operator("Conv", x(1, 3, 16), y(1, 8, 14), np.ones((8, 3, 3), np.float32)),
    "two trailing ones": one_operator("Conv", x(1, 8, 3), y(1, 8, 1), np.ones((8, 8, 3), np.float32)),
    "from a trailing one": one_operator(
        "ConvTranspose", x(1, 4, 9), y(1, 8, 11), np.ones((4, 8, 3), np.float32)
    ),
    "constant out": piece(
        [make_node("Relu", ["x"], ["y"]), make_node("Identity", ["c"], ["z"])],
        [x(2, 3)],
        [y(2, 3), spec("z", (3,))],
        {"c": np.array([1, 2, 3], np.float32)},
    ),
    "unused input": piece([make_node("Relu", ["x"], ["y"])], [spec("u", (7,)), x(2, 3)], [y(2, 3)]),
}


def inputs_of(of: Piece) -> dict[str, Array]:
    """Return random inputs that a piece can be tried with."""
    return {s.name: (RANDOM.random(s.shape) * 9 - 4).astype(s.dtype) for s in of.inputs}


@pytest.fixture(scope="module")
def case_artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Artifact]:
    artifacts = ENGINE.prepare(list(CASES.values()), folder=tmp_path_factory.mktemp("artifacts"))
    return dict(zip(CASES, artifacts, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_every_type_and_shape_is_carried(case: str, case_artifacts: dict[str, Artifact]) -> None:
    inputs = inputs_of(CASES[case])
    right = reference_outputs(CASES[case].content.read(), inputs)
    session = ENGINE.open(case_artifacts[case], UNIT)
    for _ in range(2):
        found = run(session, *inputs.values())
        for s, array in zip(CASES[case].outputs, found, strict=True):
            assert relative_error(array, np.asarray(right[s.name])) < 1e-3


@pytest.mark.parametrize(
    ("case", "number", "words"),
    [
        ("int64", 2**31, r"tensor 'x' holds numbers from -?\d+ to 2147483648, which do not fit into int32"),
        ("int64", -(2**31) - 1, "from -2147483649 to"),
        ("float64", 1e300, "tensor 'x' holds numbers beyond float32"),
    ],
)
def test_numbers_are_not_lost_silently(
    case: str, number: float, words: str, case_artifacts: dict[str, Artifact]
) -> None:
    (array,) = inputs_of(CASES[case]).values()
    array.flat[0] = number
    with pytest.raises(ExecutionError, match=words):
        ENGINE.open(case_artifacts[case], UNIT).copy_in([array])


def test_arrays_must_be_what_was_agreed(case_artifacts: dict[str, Artifact]) -> None:
    session = ENGINE.open(case_artifacts["two outputs"], UNIT)
    for array in (np.zeros((1, 3, 16, 1), np.float32), np.zeros((1, 3, 16, 16))):
        with pytest.raises(ExecutionError, match=r"'x' is float32 \[1, 3, 16, 16\], not float"):
            session.copy_in([array])
    with pytest.raises(ValueError, match="zip"):
        session.copy_in([])


def test_no_run_on_stale_inputs(case_artifacts: dict[str, Artifact]) -> None:
    session = ENGINE.open(case_artifacts["two outputs"], UNIT)
    with pytest.raises(ExecutionError, match="copy them in before every run"):
        session.run()
    run(session, *inputs_of(conv()).values())
    with pytest.raises(ExecutionError, match="because MNN overwrites them"):
        session.run()


@pytest.fixture
def in_layout_of_mnn(tmp_path: Path) -> Artifact:
    """Return a piece whose file keeps MNN's own order of channels at its borders."""
    script = (
        "import _tools, sys; _tools.mnnconvert(['mnnconvert', '-f', 'ONNX', '--keepInputFormat', '0', "
        "'--modelFile', sys.argv[1], '--MNNModel', sys.argv[2]])"
    )
    source, target = tmp_path / "c4.onnx", tmp_path / "c4.mnn"
    source.write_bytes(conv().content.read())
    subprocess.run([sys.executable, "-c", script, source, target], check=True, capture_output=True)
    return replace(ENGINE.prepare([conv()])[0], path=str(target))


def test_layouts_of_mnn_are_undone(in_layout_of_mnn: Artifact) -> None:
    inputs = inputs_of(conv())
    right = reference_outputs(conv().content.read(), inputs)
    session = ENGINE.open(in_layout_of_mnn, UNIT)
    for s, array in zip(conv().outputs, run(session, *inputs.values()), strict=True):
        assert relative_error(array, right[s.name]) < 1e-4


@pytest.mark.parametrize("zero", [np.int8(3), np.uint8(100), None])
def test_numbers_beyond_the_range_of_integers_are_cut_off(zero: np.int8 | np.uint8 | None) -> None:
    """MNN has QuantizeLinear do nothing."""
    weights: dict[str, Array] = {"s": np.array(0.05, np.float32)}
    weights |= {} if zero is None else {"z": np.array(zero)}
    nodes = [
        make_node("QuantizeLinear", ["x", *weights], ["q"]),
        make_node("DequantizeLinear", ["q", *weights], ["d"]),
        make_node("Mul", ["d", "one"], ["y"]),
    ]
    of = piece(nodes, [x(2, 8)], [y(2, 8)], weights | {"one": np.ones(8, np.float32)})
    values = np.array([[-1e4, -7, -6.6, -5, -0.05, 0, 0.05, 0.1], [1, 4, 6, 6.2, 7, 8, 13, 1e4]], np.float32)
    (right,) = reference_outputs(of.content.read(), {"x": values}).values()
    (found,) = run(opened(of), values)
    assert np.abs(found - right).max() < 0.0251  # half a step: MNN does not round


def test_softplus_of_large_numbers_is_finite() -> None:
    of = one_operator("Softplus", x(1, 6), y(1, 6))
    values = np.array([[-200, -1, 79.5, 81, 90, 3e4]], np.float32)
    (right,) = reference_outputs(of.content.read(), {"x": values}).values()
    assert np.allclose(run(opened(of), values)[0], right, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_times_of_operators() -> None:
    model = direction()
    (whole,) = model.pieces(0, len(model.network.layers))
    session = opened(whole)
    times = session.operator_times([model.sample_inputs(0)["x"]], repetitions=3)
    assert times is not None
    assert len(times) > 100
    assert all(time.time_us > 0 for time in times)
    kinds = {time.kind for time in times}
    assert {"Convolution", "ConvolutionDepthwise"} <= kinds
    nodes = {name for node in onnx.load_from_string(whole.content.read()).graph.node for name in node.output}
    assert sum(time.output in nodes for time in times) > 0.5 * len(times)
    with pytest.raises(ExecutionError, match="copy them in"):
        session.run()


def test_a_receipt_says_what_was_granted() -> None:
    receipt = opened(conv()).receipt
    assert receipt.mismatches == ()
    assert (receipt.granted_backend, receipt.granted_threads) == ("cpu", 1)
    assert receipt.engine == f"MNN {ENGINE.availability().version}"
    assert receipt.granted_cores


def test_an_absent_backend_is_refused() -> None:
    (artifact,) = ENGINE.prepare([conv()])
    with pytest.raises(
        PlacementError, match="'conv' on unit 'gpu' as asked: backend: asked for opencl, got cpu"
    ):
        ENGINE.open(artifact, OPENCL)
    with pytest.raises(PlacementError, match="MNN knows no backend 'abacus'"):
        ENGINE.open(artifact, ProcessingUnit(name="x", engine=EngineSettings(backend="abacus")))
    session = MnnEngine(allow_mismatch=True).open(artifact, OPENCL)
    assert session.receipt.mismatches == ("backend: asked for opencl, got cpu",)
    inputs = inputs_of(conv())
    right = reference_outputs(conv().content.read(), inputs)
    assert relative_error(run(session, *inputs.values())[0], right["z"]) < 1e-3


def test_other_cores_are_refused() -> None:
    (artifact,) = ENGINE.prepare([conv()])
    with pytest.raises(PlacementError, match="cores: asked for"):
        ENGINE.open(artifact, replace(UNIT, cores=(4000,)))


def test_a_wrong_number_of_threads_is_refused() -> None:
    """MNN has one pool a process, as large as the first session asked for."""
    (artifact,) = ENGINE.prepare([conv()])
    units = [unit_data(replace(UNIT, threads=threads)) for threads in (1, 2, 3)]
    settings = {"artifact": asdict(artifact), "units": units}

    with Helper("threads", "tests.executor.engines.roles:thread_counts", settings) as helper:

        def granted(unit: int, *, allow: bool = False) -> int:
            answer = helper.ask({"kind": "open", "unit": unit, "allow": allow}, limit_s=60)
            return int(answer["granted"])

        assert [granted(unit) for unit in (0, 1, 1, 1, 0)] == [1, 2, 2, 2, 1]
        assert granted(2, allow=True) == 2
        with pytest.raises(PlacementError, match="threads: asked for 3, got 2"):
            granted(2)


@pytest.mark.parametrize("content", [None, b"", b"garbage"])
def test_artifacts_that_cannot_be_opened(content: bytes | None, tmp_path: Path) -> None:
    artifact = replace(ENGINE.prepare([conv()])[0], path=str(tmp_path / "x.mnn"))
    if content is not None:
        Path(artifact.path).write_bytes(content)
    with pytest.raises(ExecutionError, match=r"MNN cannot open .*x\.mnn, made from piece 'conv'"):
        ENGINE.open(artifact, UNIT)


def test_the_file_of_another_piece_is_refused(tmp_path: Path) -> None:
    relu = one_operator("Relu", x(2, 3), y(2, 3))
    wrong, right = ENGINE.prepare([conv(), relu])
    with pytest.raises(ExecutionError, match=r"is not 'conv': it has the tensors \['y'\], not \['y', 'z'\]"):
        ENGINE.open(replace(wrong, path=right.path), UNIT)


def test_sessions_can_be_closed_twice() -> None:
    session = opened(conv())
    run(session, *inputs_of(conv()).values())
    session.close()
    session.close()


def test_the_backends_here_begin_with_the_cpu() -> None:
    assert ENGINE.backends()[0] == "cpu"
    assert next(convert([conv()])).content
