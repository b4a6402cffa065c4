"""MNN's converter claims success whatever happens: what is believed instead, and what is said."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path

import onnx
import pytest
from onnx.helper import make_node

from gapless.executor.engines.mnn_engine import Conversion, MnnEngine, convert, trial
from gapless.executor.model import Piece
from gapless.formulations.errors import ConversionError, EngineUnavailableError, StoreError

from . import roles
from .pieces import Content, conv, of_model, piece, spec, unsupported, with_branches, without_weights

ROLES = "tests.executor.engines.roles:"


def bad() -> Piece:
    """Return a piece that is good, but that the roles mistreat."""
    return conv("bad")


def converted(*pieces: Piece, role: str, limit_s: float = 60.0) -> list[Conversion]:
    model_names = [onnx.load_from_string(p.content.read()) for p in pieces]
    for p, model in zip(pieces, model_names, strict=True):
        model.doc_string = p.name
    marked = [
        of_model(model, p.inputs, p.outputs, p.name) for p, model in zip(pieces, model_names, strict=True)
    ]
    return list(convert(marked, role=ROLES + role, limit_s=limit_s))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "problem"),
    [
        ("nothing", "made nothing of it"),
        ("garbage", "cannot open"),
        ("truncated", "cannot open"),
        ("other", r"what MNN opened is not 'bad': it has the tensors \['other'\], not \['y', 'z'\]"),
        ("crash", "was killed by SIGSEGV"),
        ("leave", "ended with exit code 0"),
    ],
)
def test_claims_of_success_are_not_believed(
    role: str, problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    relu = onnx.helper.make_node("Relu", ["x"], ["other"])
    (artifact,) = MnnEngine().prepare(
        [piece([relu], [spec("x", (1, 3, 16, 16))], [spec("other", (1, 3, 16, 16))])]
    )
    monkeypatch.setenv(roles.OTHER_FILE, artifact.path)
    before, wrong, after = converted(conv(), bad(), conv(), role=role)
    assert wrong.content is None
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(wrong.problem)
    assert before.content is not None
    assert after.content is not None  # in a new process, where the last one has died
    assert len(after.content) == len(before.content)


def test_a_converter_that_hangs_is_ended() -> None:
    (wrong,) = converted(bad(), role="hang", limit_s=0.3)
    assert "no answer within 0.3 s" in wrong.problem


def test_a_mistake_of_our_own_is_not_blamed_on_mnn() -> None:
    wrong, after = converted(bad(), conv(), role="blunder")
    assert "gapless failed on it" in wrong.problem
    assert "IndexError: pop from empty list" in wrong.problem
    assert "MNN's converter" not in wrong.problem
    assert after.content is not None


def test_errors_of_our_own_are_not_blamed_on_mnn() -> None:
    with pytest.raises(StoreError, match="the disk is full"):
        converted(conv(), bad(), role="full")


def test_nothing_stays_open() -> None:
    def descriptors() -> set[str]:
        return set(os.listdir("/proc/self/fd"))

    before = descriptors()
    converted(conv(), bad(), role="crash")
    conversions = convert([conv(), conv()])
    assert next(conversions).content is not None
    conversions.close()
    assert len(descriptors()) == len(before)


@pytest.mark.slow
def test_operators_that_mnn_lacks_are_named() -> None:
    with pytest.raises(ConversionError) as caught:
        MnnEngine().prepare([conv(), unsupported()])
    assert str(caught.value).startswith(
        "MNN cannot run random[3:7): MNN lacks the operator Bernoulli, Frobnicate; engine 'onnxruntime' may"
    )
    assert trial(unsupported()).unsupported == ("Bernoulli", "Frobnicate")
    assert trial(conv()).unsupported == ()
    assert trial(conv()).problem == ""
    with pytest.raises(ConversionError, match=r"MNN cannot run branches: .*control flow"):
        MnnEngine().prepare([with_branches()])
    assert "control flow" in trial(with_branches()).problem


def test_all_that_fail_are_named_and_the_rest_is_kept(cache_folder: Path) -> None:
    with pytest.raises(ConversionError) as caught:
        MnnEngine().prepare([unsupported("first"), conv(), with_branches(), without_weights()])
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["MNN cannot run first", "branches", "weightless"]
    assert "no control flow (If, Loop; MNN makes loops of GRU" in lines[1]
    assert "weights are in another file, " in lines[2]
    assert "gone.bin" in lines[2]
    assert len(list(cache_folder.glob("*.mnn"))) == 1


def test_a_scale_in_another_file_is_told_as_weights_are() -> None:
    lost = without_weights()
    model = onnx.load_from_string(lost.content.read())
    scale = model.graph.initializer[0].name
    model.graph.node.insert(0, make_node("QuantizeLinear", [lost.inputs[0].name, scale], ["q"]))
    found = trial(of_model(model, lost.inputs, lost.outputs, lost.name))
    assert found.problem.startswith("its weights are in another file, ")


def test_what_is_no_model_is_refused() -> None:
    garbage = Piece(
        name="garbage", digest="00" * 32, inputs=(), outputs=(), content=Content(b"no model at all")
    )
    with pytest.raises(ConversionError, match="garbage: MNN's converter made nothing of it"):
        MnnEngine().prepare([garbage])


@pytest.mark.parametrize(("dtype", "side"), [("int8", "x"), ("int8", "y")])
def test_types_that_cannot_cross_a_border(dtype: str, side: str) -> None:
    types = {"x": "float32", "y": "float32", side: dtype}
    to = {"float32": onnx.TensorProto.FLOAT, "int8": onnx.TensorProto.INT8}[types["y"]]
    cast = piece(
        [onnx.helper.make_node("Cast", ["x"], ["y"], to=to)],
        [spec("x", (2, 3), types["x"])],
        [spec("y", (2, 3), types["y"])],
    )
    with pytest.raises(
        ConversionError, match=f"tensor '{side}' is int8 in the model and of a type that cannot"
    ):
        MnnEngine().prepare([cast])


def test_an_input_that_is_an_output_would_be_overwritten() -> None:
    through = piece(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        [spec("x", (2, 3)), spec("u", (2, 3))],
        [spec("y", (2, 3)), spec("u", (2, 3))],
    )
    with pytest.raises(ConversionError, match="gives its input 'u' out as it is, but MNN overwrites inputs"):
        MnnEngine().prepare([through])


def test_shapes_that_mnn_works_out_otherwise() -> None:
    relu = piece([onnx.helper.make_node("Relu", ["x"], ["y"])], [spec("x", (2, 3))], [spec("y", (2, 3))])
    lie = Piece(
        name="lie", digest=relu.digest, inputs=relu.inputs, outputs=(spec("y", (3, 2)),), content=relu.content
    )
    with pytest.raises(ConversionError, match=r"tensor 'y' has shape \[2, 3\] in MNN, needs \[3, 2\]"):
        MnnEngine().prepare([lie])


def test_without_mnn(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name: None if name == "MNN" else find_spec(name))
    found = MnnEngine().availability()
    assert (found.ok, found.version) == (False, "")
    assert MnnEngine().backends() == ()
    for attempt in (lambda: MnnEngine().prepare([conv()]), lambda: trial(conv())):
        with pytest.raises(
            EngineUnavailableError, match=r"MNN is not installed: pip install 'gapless\[mnn\]'"
        ):
            attempt()
