"""`gapless costs predict`, `device describe`, `costs learn`: costs of what never ran on a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.api import estimates
from gapless.executor.engine import Engine
from gapless.executor.model import Model
from gapless.formulations.errors import LayerNotRunnableError
from gapless.formulations.files import NETWORK, dump, dump_problem, load, save
from gapless.formulations.hardware import Platform
from gapless.formulations.network import Layer, Network
from gapless.profiler.learned.device import DEVICE, DeviceDescription
from gapless.profiler.learned.predictors import PredictionMethod
from gapless.profiler.learned.training import data_path, keep, load_dataset

from ...profiler.learned.samples import branching_model, device
from ..conftest import Cli


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Write a device of a fast and a slow unit; return its file."""
    path = tmp_path / "device.json"
    save(dump(device({"fast": 1.0, "slow": 3.0}), DEVICE), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return branching_model(tmp_path / "m.onnx")


@pytest.mark.parametrize("method", PredictionMethod)
def test_predicted_costs_are_a_problem_that_can_be_planned(
    cli: Cli, tmp_path: Path, board: Path, model: Path, method: str
) -> None:
    out = tmp_path / "estimated.json"
    found = cli("costs", "predict", model, "--device", board, "--model", method, "--out", out)
    assert found.code == 0
    assert f"estimated: {method}, trained" in found.err
    problem = gapless.load_problem(out)
    provenance = problem.costs.provenance
    assert (provenance.estimated, provenance.method) == (True, method)
    assert provenance.device == "a test"
    assert cli("plan", out).code == 0


def test_what_a_device_and_a_predictor_are_is_shown(cli: Cli, board: Path) -> None:
    shown = cli("show", board).out
    assert "slow" in shown
    assert "GMAC" in shown
    card = Path(gapless.__file__).parent / "profiler/learned/shipped/card.json"
    assert "networks held out" in cli("show", card).out


@pytest.mark.slow
def test_predictions_are_judged_by_measured_costs(cli: Cli, tmp_path: Path, board: Path, model: Path) -> None:
    predicted = gapless.costs.predict_costs(model, board)
    (costs,) = predicted.costs.networks
    swapped = replace(costs, layer_us=tuple((slow, fast) for fast, slow in costs.layer_us))
    same, other = tmp_path / "same.json", tmp_path / "other.json"
    save(dump_problem(predicted), same)
    save(dump_problem(replace(predicted, costs=replace(predicted.costs, networks=(swapped,)))), other)
    found = cli("costs", "predict", model, "--device", board, "--against", same, "--json").document["judged"]
    assert found["loss"] == 0
    assert all(unit["median"] == 0 for unit in found["units"])
    found = cli("costs", "predict", model, "--device", board, "--against", other, "--json").document["judged"]
    assert found["loss"] > 0.2
    assert found["planned_on_predicted"] > found["planned_on_measured"]
    shown = cli("costs", "predict", model, "--device", board, "--against", other)
    assert "for the plan made on predicted costs" in shown.out


def test_tables_need_the_method_that_asks_for_work_alone(cli: Cli, tmp_path: Path, board: Path) -> None:
    path = tmp_path / "network.json"
    network = Network(name="two", layers=(Layer(name="a", flops=10**8), Layer(name="b", flops=10**7)))
    save(dump(network, NETWORK), path)
    refused = cli("costs", "predict", path, "--device", board)
    assert refused.code == 2
    assert "the method flops" in refused.err
    found = cli("costs", "predict", path, "--device", board, "--model", "flops", "--json").document
    first, second = found["document"]["costs"]["networks"][0]["layer_us"]
    assert first[0] == pytest.approx(10 * second[0], rel=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--device", "nowhere.json"), "nowhere.json"),
        (("--predictor", "nowhere"), "holds no predictor"),
        (("--against", "pixel7a/alexnet-sparse"), "measure the same model"),
    ],
)
def test_bad_input_is_said(cli: Cli, board: Path, model: Path, options: tuple[str, ...], words: str) -> None:
    found = cli("costs", "predict", model, *(() if "--device" in options else ("--device", board)), *options)
    assert found.code == 2
    assert words in found.err


@pytest.mark.slow
def test_a_data_set_that_is_whole_is_not_measured_again(cli: Cli, tmp_path: Path, model: Path) -> None:
    kept = device({"core0": 1.0})
    keep(kept, data_path(tmp_path, "m", "onnxruntime"))
    options = ("--networks", model, "--engines", "onnxruntime", "--no-train")
    assert cli("costs", "learn", tmp_path, *options).code == 0
    assert load_dataset(tmp_path) == (kept,)


@pytest.mark.slow
def test_what_an_engine_cannot_run_is_left_out_and_named(
    cli: Cli, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def described(
        models: Sequence[Model], platform: Platform, engine: Engine, **how: object
    ) -> DeviceDescription:
        if engine.name == "mnn":
            raise LayerNotRunnableError("no unit can run layer 'lstm1'")
        return device({"core0": 1.0})

    monkeypatch.setattr(estimates, "describe", described)
    options = ("costs learn", tmp_path, "--networks", model, "--no-train")
    found = cli(*options)
    assert found.code == 0
    assert f"{model.stem} with mnn is left out: no unit can run layer 'lstm1'" in " ".join(found.err.split())
    assert len(load_dataset(tmp_path)) == 1
    refused = cli(*options[:1], tmp_path / "other", *options[2:], "--engines", "mnn")
    assert refused.code == 5
    assert "lstm1" in refused.err


def test_training_without_data_is_refused(cli: Cli, tmp_path: Path) -> None:
    found = cli("costs", "learn", tmp_path, "--no-measure")
    assert found.code == 2
    assert "holds no data set" in found.err


@pytest.mark.slow
@pytest.mark.measures
def test_a_device_is_described_and_predicted(cli: Cli, tmp_path: Path, model: Path) -> None:
    out = tmp_path / "device.json"
    found = cli(
        "device", "describe", "--units", "core0", "--engine", "onnxruntime", "--networks", model, "--out", out
    )
    assert found.code == 0
    assert "core0" in found.out
    described = load(out, DEVICE)
    (embedding,) = described.embeddings
    assert embedding.weights[-1] >= 0
    assert {span.stop - span.start for span in described.times[0].spans} >= {len(described.networks[0].kinds)}
    assert cli("costs", "predict", model, "--device", out, "--model", "regression").code == 0
