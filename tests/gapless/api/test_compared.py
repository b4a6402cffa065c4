"""What opens a plan for work compares it first, or says in every receipt that it did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

import gapless
from gapless.executor.runner import UNCHECKED
from gapless.formulations.errors import OutputMismatchError
from gapless.formulations.plan import Chunk, Plan
from tests.executor.engines.liars import OffByOnePercent
from tests.executor.export.exports import units
from tests.executor.graph.models import residual
from tests.gapless.cli.test_export import problem_of


@pytest.fixture
def asked(tmp_path: Path) -> tuple[gapless.Problem, Plan]:
    onnx.save(residual(), str(tmp_path / "small.onnx"))
    model = gapless.open_model(tmp_path / "small.onnx")
    problem = problem_of(model, platform=units("left"))
    layers, name = len(model.network.layers), model.network.name
    return problem, Plan(chunks=(Chunk(network=name, start=0, stop=layers, unit="left"),))


@pytest.mark.slow
def test_open_pipeline_refuses_wrong_numbers(asked: tuple[gapless.Problem, Plan]) -> None:
    with pytest.raises(
        OutputMismatchError, match=r"gives wrong numbers.*on unit 'left'.*What that unit was granted"
    ):
        gapless.open_pipeline(*asked, engine=OffByOnePercent.name)


@pytest.mark.slow
def test_receipts_of_a_pipeline_say_whether_it_was_compared(asked: tuple[gapless.Problem, Plan]) -> None:
    with gapless.open_pipeline(*asked, engine="onnxruntime") as pipeline:
        assert pipeline.verification is not None
        assert pipeline.verification.words.startswith("numbers agree")
        assert [receipt.compared for receipt in pipeline.receipts] == [True]
    with gapless.open_pipeline(*asked, engine=OffByOnePercent.name, check=False) as pipeline:
        assert pipeline.verification is None
        assert [receipt.compared for receipt in pipeline.receipts] == [False]
        measured = pipeline.measure(gapless.Budget(requests=1))
        assert [receipt.compared for receipt in measured.receipts] == [False]


@pytest.mark.slow
def test_exports_are_compared_and_the_manifest_says_so(
    asked: tuple[gapless.Problem, Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gapless.api.exporting import export

    good = export(*asked, to="onnxruntime", out=tmp_path / "good")
    assert good.manifest.numbers.startswith("numbers agree with the uncut model")
    unchecked = export(*asked, to="onnxruntime", out=tmp_path / "unchecked", check=False)
    assert unchecked.manifest.numbers == UNCHECKED

    def spoiled(content: Any) -> bytes:
        proto = onnx.load_from_string(whole(content))
        weights = next(each for each in proto.graph.initializer if each.data_type == onnx.TensorProto.FLOAT)
        weights.CopyFrom(
            onnx.numpy_helper.from_array(1.1 * onnx.numpy_helper.to_array(weights), weights.name)
        )
        return bytes(proto.SerializeToString())

    model = gapless.open_model(asked[0].network.models[0].locator)
    kind = type(model.pieces(0, asked[1].chunks[0].stop)[0].content)
    whole = kind.read
    monkeypatch.setattr(kind, "read", spoiled)
    with pytest.raises(OutputMismatchError, match=r"gives wrong numbers.*chunk 0, layers .* on unit 'left'"):
        export(*asked, to="onnxruntime", out=tmp_path / "bad")
    assert not (tmp_path / "bad").exists()


@pytest.mark.slow
def test_what_cannot_be_run_here_is_exported_and_said(
    asked: tuple[gapless.Problem, Plan], tmp_path: Path
) -> None:
    from dataclasses import replace

    from gapless.api.exporting import export
    from gapless.formulations.hardware import EngineSettings

    problem, plan = asked
    (unit,) = problem.platform.units
    elsewhere = replace(unit, engine=EngineSettings(backend="cuda"))
    problem = replace(problem, platform=replace(problem.platform, units=(elsewhere,)))
    found = export(problem, plan, to="onnxruntime", out=tmp_path / "out")
    assert "numbers are not verified" in found.manifest.numbers
    assert "on unit 'left' cannot be run here" in found.manifest.numbers
