"""`gapless export`: from a plan to a folder that runs without gapless."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from gapless.api.models import open_model
from gapless.executor.export.folder import load_manifest
from gapless.executor.model import Model
from gapless.files.plans import DEPLOYMENT
from gapless.formulations.costs import CostTable, NetworkCosts, Provenance
from gapless.formulations.deployment import replicas
from gapless.formulations.files import dump, dump_plan, dump_problem
from gapless.formulations.hardware import Platform
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from tests.executor.export.exports import ran, run, units
from tests.executor.graph.models import residual

from ..conftest import Cli
from .test_running import EDGES


def problem_of(*models: Model, platform: Platform) -> Problem:
    """Return a problem with made-up costs: a millisecond for each layer on every unit."""
    names = platform.unit_names
    return Problem(
        platform=platform,
        networks=tuple(model.network for model in models),
        costs=CostTable(
            units=names,
            networks=tuple(
                NetworkCosts(
                    network=model.network.name,
                    layer_us=((1000,) * len(names),) * len(model.network.layers),
                )
                for model in models
            ),
            provenance=Provenance(engine="mnn 3.6.1"),
        ),
    )


@pytest.fixture(scope="module")
def platform() -> Platform:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("plans with two units need two cores")
    return units("left", "right")


@pytest.fixture(scope="module")
def squeezenet(tmp_path_factory: pytest.TempPathFactory, platform: Platform) -> Path:
    """A folder as `gapless tune` leaves it, with a plan of two chunks for squeezenet."""
    return written(open_model("squeezenet"), tmp_path_factory.mktemp("squeezenet"), platform)


@pytest.fixture
def small(tmp_path: Path, platform: Platform) -> Path:
    """The same for a network of a few layers."""
    onnx.save(residual(), str(tmp_path / "small.onnx"))
    folder = tmp_path / "small"
    folder.mkdir()
    return written(open_model(tmp_path / "small.onnx"), folder, platform)


def written(model: Model, folder: Path, platform: Platform) -> Path:
    problem = problem_of(model, platform=platform)
    layers, name = len(model.network.layers), model.network.name
    plan = Plan(
        chunks=(
            Chunk(network=name, start=0, stop=layers // 2, unit="left"),
            Chunk(network=name, start=layers // 2, stop=layers, unit="right"),
        )
    )
    (folder / "problem.json").write_text(dump_problem(problem))
    (folder / "plan.json").write_text(
        dump_plan(plan, problem, {"problem": str(folder / "problem.json"), "max_period_us": "1000000"})
    )
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("to", "engine"),
    [("onnx", "onnxruntime"), ("onnxruntime", "onnxruntime"), ("mnn", "mnn"), ("taskset", "mnn")],
)
def test_squeezenet_runs_elsewhere_with_the_right_numbers(
    cli: Cli, squeezenet: Path, tmp_path: Path, to: str, engine: str
) -> None:
    done = cli("export", squeezenet / "plan.json", "--to", to, "--out", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    manifest = done.document["manifest"]
    assert (done.document["format"], manifest["kind"], manifest["engine"]) == (
        "gapless.export_files",
        to,
        engine,
    )
    half = len(open_model("squeezenet").network.layers) // 2
    assert manifest["predicted"]["period_us"] == 1000 * half
    assert [chunk["predicted_us"] for chunk in manifest["streams"][0]["chunks"]] == [1000 * half] * 2
    assert ("will take others" in done.err.replace("\n", " ")) == (engine != "mnn")
    found = ran(tmp_path / "out", "--requests", "6", "--warm-up", "0")
    assert (found["engine"], found["compared"]) == (engine, 6)
    assert found["worst_error"] < 1e-4
    if to == "taskset":
        script = subprocess.run(
            ["sh", str(tmp_path / "out" / "taskset.sh")],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHON": sys.executable, "REQUESTS": "6"},
        )
        assert script.returncode == 0, script.stderr
        assert "the numbers agree" in script.stdout


@pytest.mark.slow
def test_people_see_what_to_run(cli: Cli, small: Path, tmp_path: Path) -> None:
    done = cli("export", small, "--to", "taskset", "--engine", "onnxruntime", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "small.0-" in done.out
    assert f"sh {tmp_path / 'out' / 'taskset.sh'}" in done.out.replace("\n", "")
    assert (tmp_path / "out" / "taskset.sh").read_text() in done.out
    again = cli("export", small / "plan.json", "--to", "onnx", "--out", tmp_path / "out")
    assert again.code == 0
    assert not (tmp_path / "out" / "taskset.sh").exists()
    assert "run.py" in again.out


@pytest.mark.slow
def test_a_folder_prefers_its_deployment(cli: Cli, small: Path, tmp_path: Path) -> None:
    layers = len(open_model(tmp_path / "small.onnx").network.layers)
    two = replicas("small", layers, ("left", "right"))
    (small / "deployment.json").write_text(dump(two, DEPLOYMENT))
    out = tmp_path / "out"
    assert cli("export", small, "--to", "onnxruntime", "--out", out).code == 0
    manifest = load_manifest(out)
    assert (len(manifest.streams), manifest.plan_id, manifest.predicted.period_us) == (2, None, None)
    assert ran(out, "--requests", "5")["worst_error"] < 1e-5
    alone = cli("export", small / "deployment.json", "--to", "onnx", "--out", tmp_path / "other")
    assert (alone.code, f"its problem is taken to be {small}" in alone.err.replace("\n", " ")) == (0, True)
    lonely = tmp_path / "deployment.json"
    lonely.write_text((small / "deployment.json").read_text())
    lost = cli("export", lonely, "--to", "onnx", "--out", tmp_path / "lost")
    assert lost.code == 2
    assert "does not say which problem it is for" in lost.err.replace("\n", " ")
    named = ["export", small / "problem.json", small / "deployment.json", "--to", "onnx"]
    assert cli(*named, "--out", tmp_path / "other").code == 0


@pytest.mark.slow
def test_a_model_may_lie_elsewhere_now(cli: Cli, small: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "small.onnx", tmp_path / "moved.onnx"
    shutil.move(old, new)
    words = ["export", small, "--to", "onnx", "--out", tmp_path / "out"]
    assert cli(*words).code == 2
    assert cli(*words, "--at", f"{old}={new}").code == 0


@pytest.mark.slow
def test_a_workload_keeps_its_order(cli: Cli, tmp_path: Path, platform: Platform) -> None:
    onnx.save(residual(), str(tmp_path / "one.onnx"))
    onnx.save(residual(blocks=2), str(tmp_path / "two.onnx"))
    models = [open_model(tmp_path / f"{name}.onnx") for name in ("one", "two")]
    (tmp_path / "problem.json").write_text(dump_problem(problem_of(*models, platform=platform)))
    plan, out = tmp_path / "plan.json", tmp_path / "out"
    words = ["plan", tmp_path / "problem.json", "--workload", "onex2,two", "--time-limit", "1s"]
    assert cli(*words, "--out", plan).code == 0
    own_orders = cli("export", plan, "--to", "onnxruntime", "--out", out, "--json").document["manifest"]
    assert len(own_orders["rounds"]["turns"]) == sum(len(one["chunks"]) for one in own_orders["streams"])
    assert ran(out, "--requests", "4", "--warm-up", "0")["compared"] == 12
    assert cli(*words, "--passage", "ordered", "--out", plan).code == 0
    for named in ([plan], [tmp_path / "problem.json", plan]):
        done = cli("export", *named, "--to", "onnxruntime", "--out", out, "--json")
        assert done.code == 0, done.err
        manifest = done.document["manifest"]
        assert manifest["rounds"]["mode"] == "batch"
        assert not manifest["rounds"]["turns"]
        assert manifest["predicted"]["makespan_us"] > 0
        assert manifest["predicted"]["period_us"] is None
    found = ran(out, "--requests", "4", "--warm-up", "0")
    assert found["compared"] == 12
    assert found["worst_error"] < 1e-5
    assert found["makespan_us"] > 0
    refused = cli("export", plan, "--to", "taskset", "--out", tmp_path / "script")
    assert refused.code == 2
    assert "in the order of the plan" in refused.err.replace("\n", " ")


@pytest.mark.slow
def test_what_cannot_be_exported_is_refused_with_a_way_out(cli: Cli, small: Path, tmp_path: Path) -> None:
    assert cli("plan", "pixel7a/alexnet-sparse", "--out", tmp_path / "table.json").code == 0
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    plan = small / "plan.json"
    for words, message in (
        ([tmp_path / "table.json", "--to", "onnx"], "profile a model first"),
        ([tmp_path / "table.json", "--to", "taskset"], "profile a model first"),
        ([plan, "--to", "onnx", "--out", tmp_path / "full"], "name a new or empty folder"),
        ([plan, "--to", "onnx", "--out", plan], "a folder is needed"),
        ([plan, "--to", "tflite"], "tflite"),
        ([plan, "--to", "taskset", "--engine", "tvm"], "must be one of onnxruntime, mnn"),
        ([plan, "--to", "mnn", "--engine", "onnxruntime"], "files for mnn are run by mnn"),
        ([plan, "--to", "onnx", "--at", "nowhere"], "expected OLD=NEW"),
        ([plan, "--to", "onnx", "--at", "a=b", "--at", "a=c"], "'a' is given twice"),
        ([tmp_path, "--to", "onnx"], "holds neither deployment.json nor plan.json"),
        ([plan, plan, plan, "--to", "onnx"], "give a problem and a plan"),
    ):
        out = [] if "--out" in words else ["--out", tmp_path / "out"]
        done = cli("export", *words, *out)
        assert (done.code, message in done.err.replace("\n", " ")) == (2, True), done.err
    assert not (tmp_path / "out").exists()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["thesis.tex"]


def test_python_functions_have_no_onnx_form(cli: Cli, tmp_path: Path, platform: Platform) -> None:
    model = open_model(f"{EDGES}:EDGES")
    folder = written(model, tmp_path, platform)
    done = cli("export", folder / "plan.json", "--to", "onnx", "--out", tmp_path / "out")
    assert done.code == 2
    assert "holds Python functions" in done.err.replace("\n", " ")


@pytest.mark.slow
def test_an_emulated_unit_is_told(cli: Cli, small: Path, tmp_path: Path, platform: Platform) -> None:
    slow = replace(platform, units=(platform.units[0], replace(platform.units[1], quota_permille=250)))
    written(open_model(tmp_path / "small.onnx"), small, slow)
    done = cli("export", small, "--to", "taskset", "--out", tmp_path / "out")
    assert done.code == 0
    assert "right is emulated with 25 % of the time of its cores" in done.err.replace("\n", " ")
    assert "CPUQuota=25%" in (tmp_path / "out" / "taskset.sh").read_text()
    assert "nothing holds it to that here" in run(tmp_path / "out").stderr
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["units"][1]["quota_permille"] == 250


@pytest.mark.slow
def test_the_predictions_are_those_of_the_judge(cli: Cli, small: Path, tmp_path: Path) -> None:
    assert cli("export", small, "--to", "onnx", "--out", tmp_path / "out").code == 0
    from gapless.formulations.files import load_plan, load_problem

    problem, plan = load_problem(small / "problem.json"), load_plan(small / "plan.json")
    judged, manifest = score(problem, plan), load_manifest(tmp_path / "out")
    assert manifest.predicted.period_us == judged.period_us
    assert manifest.predicted.latency_us == judged.latency_us
    limited = problem.with_limits(max_period_us=1_000_000)  # as the plan says that it was made for
    assert (manifest.plan_id, manifest.problem) == (plan.plan_id, limited.fingerprint)
