"""A file of data never runs Python code that only the file names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gapless
from gapless.api.models import is_code, models_of
from gapless.executor.engines.registry import engines_on, get_engine
from gapless.formulations import plugins
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.hardware import EngineSettings, ProcessingUnit
from tests.executor.pipelines import TWO, write

from ..conftest import Cli

NOTE = "\nimport pathlib\npathlib.Path(__file__).with_name('executed').touch()\n"


@pytest.fixture(autouse=True)
def nobody_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_TRUSTED", set())


@pytest.fixture
def code(tmp_path: Path) -> str:
    """Return a pipeline of a Python file, which leaves a note when it is executed."""
    return write(tmp_path, TWO + NOTE)


@pytest.fixture
def plan(cli: Cli, tmp_path: Path, code: str) -> Path:
    """Return a plan file whose problem is that code on a cluster."""
    path = tmp_path / "plan.json"
    assert cli("plan", "squeezenet", "--platform", "raspberry-pis", "--out", path).code == 0
    document = json.loads(path.read_text())
    document["asked"]["problem"] = code
    path.write_text(json.dumps(document))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["show", "report", "simulate", "explain", "tools check", "tools trace", "run"]
)
def test_a_plan_does_not_run_the_code_that_it_names(
    cli: Cli, plan: Path, tmp_path: Path, command: str
) -> None:
    run = cli(command, plan)
    assert not (tmp_path / "executed").exists()
    if command != "show":  # which shows what there is without the problem
        assert run.code == 2
        assert "--trust" in run.err


def test_trusted_code_runs(cli: Cli, plan: Path, tmp_path: Path, code: str) -> None:
    cli("--trust", code, "simulate", plan)
    assert (tmp_path / "executed").exists()


def test_what_the_user_opened_is_trusted_from_then_on(
    tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network = gapless.open_model(code).network
    assert models_of(network).network.name == "two"
    plugins._TRUSTED.clear()
    with pytest.raises(InvalidInputError, match=r"the model of network 'two' is .*gapless\.trust"):
        models_of(network)
    gapless.trust("pipeline.py:P")  # by another path
    assert models_of(network).network.name == "two"


def test_the_engine_of_a_unit_is_not_loaded_from_a_file_that_only_the_unit_names(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(NOTE)
    unit = ProcessingUnit(name="core0", engine=EngineSettings(name=f"{path}:Mine"))
    with pytest.raises(InvalidInputError, match="the engine of unit 'core0' is"):
        engines_on([unit], get_engine("onnxruntime"))
    assert not (tmp_path / "executed").exists()


def test_models_and_shipped_applications_are_no_code_of_strangers() -> None:
    application = gapless.open_model("octree").network.models[0].locator
    assert not any(map(is_code, ("squeezenet", "zoo:squeezenet", "model.onnx", application)))
    assert is_code("package.module:NAME")
    assert is_code("name=folder/file.py:NAME")


def test_trust_without_a_name_is_an_error(cli: Cli) -> None:
    assert cli("plan", "pixel7a/alexnet-sparse", "--trust").code == 2
