"""Commands that work with models and with this machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from gapless.api.device import this_device
from gapless.api.models import open_model
from gapless.api.problems import load_problem as load_any_problem
from gapless.api.tuning import DEFAULT_TOP
from gapless.cli.base.exits import ExitCode
from gapless.cli.base.progress import StepLine
from gapless.cli.main import main
from gapless.executor.engines.conformance import EngineConformance
from gapless.executor.pipeline.trace_file import check_trace
from gapless.executor.progress import Step
from gapless.formulations.files import dump_plan, load_problem
from gapless.formulations.judge import score
from gapless.formulations.plan import Chunk, Plan
from gapless.profiler.prediction.published import load_executions
from gapless.profiler.zoo.catalog import names_in_parts, zoo_names
from gapless.solvers.session import solve
from tests.executor.graph.models import residual
from tests.executor.offline import run_offline, supported

from ..conftest import Cli

pytestmark = pytest.mark.measures

SHORTENED = """\
import sys
from gapless.cli.main import main
from tests.shortened import shorten
shorten()
sys.exit(main(sys.argv[1:]))
"""
"""`python -m gapless` whose measurements are short."""

EDGES = Path(__file__).parents[3] / "docs" / "examples" / "edges.py"


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small convolutional network: a dozen layers of some microseconds."""
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(residual(), str(path))
    return path


@pytest.fixture(scope="module")
def units() -> str:
    """The smallest unit of this machine: one core, under whatever name it has here."""
    return min(this_device().units, key=lambda unit: len(unit.cores) or 1000).name


@pytest.fixture(scope="module")
def profiled(model_file: Path, tmp_path_factory: pytest.TempPathFactory, units: str) -> Path:
    """A folder with the profile of the small network, which tests only read."""
    out = tmp_path_factory.mktemp("profile") / "profiled"
    assert main(["profile", str(model_file), "--units", units, "--out", str(out)]) == 0
    return out


def plan_of(problem_file: Path, folder: Path, *cuts: int) -> Path:
    """Write a plan with one chunk on the first unit."""
    problem = load_problem(problem_file)
    layers = len(problem.network.layers)
    chunk = Chunk(network=problem.network.name, start=0, stop=layers, unit=problem.platform.unit_names[0])
    path = folder / "plan.json"
    path.write_text(dump_plan(Plan(chunks=(chunk,)), problem))
    return path


@pytest.mark.slow
def test_inspect_shows_layers_cuts_and_what_mnn_lacks(cli: Cli, model_file: Path) -> None:
    run = cli("tools", "inspect", model_file, "--json")
    assert run.code == 0
    assert run.document["mnn_problem"] is None
    assert len(run.document["cuts"]) == len(run.document["layers"]) - 1
    finer = cli("tools", "inspect", model_file, "--granularity", "operator", "--json").document
    assert len(finer["layers"]) > len(run.document["layers"])
    shown = cli("tools", "inspect", model_file).out
    assert "MNN can run all of them" in shown
    assert "legal cuts" in shown


@pytest.mark.slow
def test_inspect_shows_the_functions_of_a_pipeline(cli: Cli) -> None:
    run = cli("tools", "inspect", f"{EDGES}:EDGES", "--json")
    assert run.code == 0
    network = open_model(f"{EDGES}:EDGES").network
    document = run.document
    assert [layer["name"] for layer in document["layers"]] == list(network.layer_names)
    assert [(cut["cut"], cut["bytes"]) for cut in document["cuts"]] == [
        (cut, network.boundary_bytes[cut]) for cut in network.legal_cuts
    ]
    for layer in document["layers"]:
        assert len(layer["kinds"]) == len(layer["functions"]) > 0
        assert all(output["shape"] for output in layer["outputs"]), "found on a sample"
    shown = cli("tools", "inspect", "octree").out
    assert "octree: 7 layers, 6 legal cuts" in shown
    assert "cpu: encode, *: encode" in shown


@pytest.mark.slow
def test_bench_engine_says_what_it_does(cli: Cli, model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Step] = []
    monkeypatch.setattr(StepLine, "report", lambda self, step: steps.append(step))
    run = cli("device", "bench", model_file, "--units", "core0", "--seconds", "0", "--json")
    assert run.code == 0
    assert [(step.done, step.total) for step in steps] == [(0, 2), (1, 2)]
    assert steps[0].text.endswith("on core0 by mnn")
    assert steps[1].text.endswith("on core0@onnxruntime by onnxruntime")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tools", "inspect", "mobilenetv3"], "did you mean mobilenetv"),
        (["tools", "inspect", "nowhere.onnx"], "neither a file nor a built-in network"),
        (["tune", "squeezenet", "--mode", "sprint"], "--mode is 'sprint'; choose one of race, fixed"),
        (["tune", "squeezenet", "--engine", "mmn"], "did you mean mnn"),
        (["tune", "squeezenet", "--units", "core999"], "core999"),
        (
            ["tune", "squeezenet", "--emulate", "core0=half"],
            "--emulate is 'core0=half', must be a unit",
        ),
        (["tune", "squeezenet", "--shape", "image=1,3"], "--shape image=1,3"),
        (["tune", "pixel7a/nothing", "--engine", "simulated"], "neither a file nor the name"),
        (["profile", f"{EDGES}:NOTHING"], "NOTHING"),
        (["run", "pixel7a/alexnet-sparse", "plan.json", "--seconds", "1s"], "plan.json"),
    ],
)
def test_bad_input_gets_one_message(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = cli(*words)
    assert run.code == 2
    assert run.err.count("error:") == 1
    assert message in run.err.replace("\n", " ")


@pytest.mark.slow
def test_a_profile_is_a_problem_that_plans(cli: Cli, profiled: Path) -> None:
    problem = load_problem(profiled / "problem.json")
    provenance = problem.costs.provenance
    assert provenance.engine.startswith("mnn")
    assert provenance.device
    assert provenance.taken_at
    assert not provenance.estimated
    assert cli("plan", profiled / "problem.json").code == 0
    assert cli("show", profiled / "problem-isolated.json").code == 0


@pytest.mark.slow
def test_a_plan_runs_and_leaves_a_measurement_and_a_trace(cli: Cli, profiled: Path, tmp_path: Path) -> None:
    plan = plan_of(profiled / "problem.json", tmp_path)
    trace, out = tmp_path / "trace.json", tmp_path / "measurement.json"
    run = cli(
        "run", profiled / "problem.json", plan, "--requests", "50", "--trace", trace, "--out", out, "--json"
    )
    assert run.code == 0
    assert run.document["requests"] == 50
    assert run.document["receipts"][0]["granted_threads"] == 1
    assert "numbers agree with the uncut model" in run.err
    assert json.loads(out.read_text())["format"] == "gapless.measurement"
    assert check_trace(json.loads(trace.read_text())) == []
    shown = cli("run", profiled / "problem.json", plan, "--requests", "20").out
    assert "requests/s" in shown
    assert "mnn" in shown.lower()


@pytest.mark.slow
def test_frames_from_a_file_come_out_right(cli: Cli, profiled: Path, tmp_path: Path) -> None:
    plan = plan_of(profiled / "problem.json", tmp_path)
    problem = load_problem(profiled / "problem.json")
    from gapless.api.models import models_of

    model = models_of(problem.network)
    frames = [model.sample_inputs(seed) for seed in range(4)]
    stacked: dict[str, Any] = {name: np.stack([frame[name] for frame in frames]) for name in frames[0]}
    np.savez(tmp_path / "in.npz", **stacked)
    run = cli(
        "run",
        profiled / "problem.json",
        plan,
        "--input",
        tmp_path / "in.npz",
        "--output",
        tmp_path / "out.npz",
    )
    assert run.code == 0
    with np.load(tmp_path / "out.npz") as found:
        for index, frame in enumerate(frames):
            for name, right in model.reference(frame).items():
                np.testing.assert_allclose(found[name][index], right, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_a_model_that_changed_is_refused(cli: Cli, profiled: Path, model_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "small.onnx"
    onnx.save(residual(blocks=2), str(other))
    plan = plan_of(profiled / "problem.json", tmp_path)
    run = cli("run", profiled / "problem.json", plan, "--at", f"{model_file}={other}")
    assert run.code == 2
    assert "is not the model that was profiled" in run.err.replace("\n", " ")


def test_a_table_without_a_model_cannot_run(cli: Cli, tmp_path: Path) -> None:
    assert cli("plan", "pixel7a/alexnet-sparse", "--out", tmp_path / "plan.json").code == 0
    run = cli("run", "pixel7a/alexnet-sparse", tmp_path / "plan.json")
    assert run.code == 2
    assert "table without a model" in run.err.replace("\n", " ")


@pytest.mark.slow
def test_traces_measured_and_simulated(cli: Cli, profiled: Path, tmp_path: Path) -> None:
    plan = plan_of(profiled / "problem.json", tmp_path)
    for more in ([], ["--simulated"]):
        out = tmp_path / "trace.json"
        run = cli(
            "tools",
            "trace",
            profiled / "problem.json",
            plan,
            "--requests",
            "6",
            "--out",
            out,
            "--json",
            *more,
        )
        assert run.code == 0
        assert run.document["events"] == 6
        assert check_trace(json.loads(out.read_text())) == []


@pytest.mark.slow
def test_tune_keeps_the_fastest_and_resumes(cli: Cli, model_file: Path, tmp_path: Path, units: str) -> None:
    out = tmp_path / "tuned"
    words = ["tune", model_file, "--units", units, "--top", "2", "--out", out, "--json"]
    first = cli(*words)
    assert first.code == 0
    rows = first.document["rows"]
    assert rows[0]["verification"]["worst_error"] < 1e-3
    assert rows[0]["receipts"]
    assert {path.name for path in out.iterdir()} >= {
        "deployment.json",
        "executions.json",
        "plan.json",
        "problem.json",
        "profile.json",
        "store.sqlite",
        "table.csv",
        "table.md",
        "trace.json",
        "tuning.json",
    }
    again = cli(*words, "--resume")
    assert again.code == 0
    assert again.document["reused"] > 0
    assert again.document["rows"][0]["period_us"] == rows[0]["period_us"]
    run = cli("run", out / "problem.json", out / "deployment.json", "--requests", "20")
    assert run.code == 0


@pytest.mark.slow
def test_tune_takes_all_units_and_the_time_it_needs_unless_told(cli: Cli, tmp_path: Path) -> None:
    model_file = tmp_path / "small.onnx"
    onnx.save(residual(1), str(model_file))
    run = cli("tune", model_file, "--top", "1", "--out", tmp_path / "out", "--json")
    assert run.code == 0, run.err
    assert load_problem(tmp_path / "out" / "problem.json").platform == this_device(engine="mnn,onnxruntime")
    assert {row["candidate"]["kind"] for row in run.document["rows"]} == {"baseline", "plan"}
    assert run.document["stop"] != "budget"


def test_tuning_on_a_simulated_device(cli: Cli, tmp_path: Path) -> None:
    run = cli(
        "tune", "pixel7a/alexnet-sparse", "--engine", "simulated", "--costs", "isolated", "--noise", "0%",
        "--out", tmp_path, "--json",
    )  # fmt: skip
    assert run.code == 0
    quality = {(entry["table"], entry["scope"]): entry for entry in run.document["quality"]}
    assert quality["heavy", "all plans"]["pearson"] > quality["isolated", "all plans"]["pearson"]
    truth = solve_heavy()
    assert run.document["rows"][0]["period_us"]["median"] >= truth
    plans = [row for row in run.document["rows"] if row["candidate"]["kind"] == "plan"]
    streams = [row["candidate"]["deployment"]["streams"] for row in plans]
    of_several = [found for found in streams if len(found) > 1]
    back = [found for found in streams if found[0].get("cycle") is not None]
    assert 0 < len(of_several) <= -(-DEFAULT_TOP // 3)
    assert 0 < len(back) <= -(-DEFAULT_TOP // 3)
    assert len(plans) - len(of_several) - len(back) == DEFAULT_TOP
    found = load_executions(tmp_path / "executions.json")
    assert len(found.executed) >= DEFAULT_TOP
    device = load_any_problem("pixel7a/alexnet-sparse")
    for one in found.executed:
        assert one.period_us == pytest.approx(score(device, one.plan).period_us)
        assert max(one.chunk_us) == pytest.approx(one.period_us)


def solve_heavy() -> int:
    """Return the least period of the table that the simulated device obeys, of plans that may come back."""
    from gapless.api.problems import load_problem as shipped
    from gapless.api.problems import with_passage
    from gapless.solvers.protocol import SolveOptions

    objective = solve(with_passage(shipped("pixel7a/alexnet-sparse")), "native", SolveOptions()).objective
    assert objective is not None
    return objective


@pytest.mark.slow
def test_python_functions_are_tuned_too(cli: Cli, tmp_path: Path, units: str) -> None:
    run = cli("tune", f"{EDGES}:EDGES", "--units", units, "--top", "1", "--out", tmp_path, "--json")
    assert run.code == 0
    assert run.document["rows"][0]["receipts"][0]["engine"].startswith("Python")


@pytest.mark.slow
def test_a_device_is_used_as_its_file_describes_it(
    cli: Cli, model_file: Path, tmp_path: Path, units: str
) -> None:
    path = tmp_path / "device.json"
    assert cli("device", "detect", "--units", units, "--out", path).code == 0
    path.write_text(path.read_text().replace(f'"name": "{units}"', '"name": "mine"'))
    words = ("profile", model_file, "--engine", "onnxruntime", "--device", path)
    assert cli(*words, "--out", tmp_path / "run").code == 0
    assert load_problem(str(tmp_path / "run/problem.json")).platform.unit_names == ("mine",)
    run = cli(*words, "--units", "yours", "--out", tmp_path / "other")
    assert run.code == ExitCode.USAGE
    assert "yours" in run.err
    run = cli(*words, "--emulate", "mine=50%", "--out", tmp_path / "other")
    assert run.code == ExitCode.USAGE
    assert "change it there" in run.err


def test_this_machine_as_a_platform(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "platform.json"
    run = cli("device", "detect", "--out", out, "--json")
    assert run.code == 0
    assert run.document["units"]
    assert json.loads(out.read_text())["format"] == "gapless.platform"
    listed = cli("list", "networks", "--json").document
    assert {entry["name"] for entry in listed["networks"]} == {*zoo_names(), *names_in_parts()}
    assert {entry["name"]: len(entry["layers"]) for entry in listed["applications"]}["octree"] == 7
    assert "points 307200x3" in cli("list", "networks").out


def test_networks_with_one_input_have_a_line_each_on_80_columns(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("list", "networks").out.splitlines()
    (line,) = (line for line in lines if "efficientdet-lite0" in line)
    assert "image 1x3x320x320" in line


@pytest.mark.slow
def test_doctor_tells_engines_and_permissions(cli: Cli) -> None:
    document = cli("doctor", "--json").document
    engines = {entry["name"]: entry for entry in document["engines"]}
    assert engines["mnn"]["backends"][0] == "cpu"
    assert engines["onnxruntime"]["ok"]
    assert {entry["name"] for entry in document["permissions"]} >= {"hardware counters"}


@pytest.mark.slow
def test_bench_engine_checks_numbers(cli: Cli, model_file: Path, units: str) -> None:
    run = cli("device", "bench", model_file, "--units", units, "--seconds", "100ms", "--json")
    assert run.code == 0
    assert [bench["unit"] for bench in run.document["units"]] == [units, f"{units}@onnxruntime"]
    assert all(bench["worst_error"] <= bench["tolerance"] for bench in run.document["units"])
    shown = cli("device", "bench", model_file, "--units", units, "--seconds", "0").out
    assert "cpu, 1 threads" in shown
    assert "by MNN 3" in shown
    assert "and ONNX Runtime" in shown


@pytest.mark.slow
def test_the_cache_is_shown_and_cleared(
    cli: Cli, model_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, units: str
) -> None:
    monkeypatch.setenv("GAPLESS_CACHE", str(tmp_path / "cache"))
    words = ["device bench", model_file, "--units", units, "--engine", "mnn", "--seconds", "0"]
    assert cli(*words).code == 0
    assert cli("tools", "cache", "--json").document["size_bytes"] > 0
    assert cli("tools", "cache", "--clear", "--json").document["entries"] == []


@pytest.mark.slow
@pytest.mark.skipif(not supported(), reason="the kernel of this machine cannot be asked")
@pytest.mark.parametrize(
    "words",
    [["doctor"], ["plan", "pixel7a/alexnet-sparse"], ["tune", "MODEL", "--top", "1", "--out", "OUT"]],
    ids=["doctor", "plan", "tune"],
)
def test_nothing_calls_home(words: list[str], model_file: Path, tmp_path: Path, units: str) -> None:
    named = {"MODEL": str(model_file), "OUT": str(tmp_path / "out")}
    argv = [sys.executable, "-c", SHORTENED, *(named.get(word, word) for word in words)]
    if words[0] == "tune":
        argv += ["--units", units]
    run = run_offline(argv)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
def test_bench_engine_checks_an_engine(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """By two of its tests; `tests/executor/engines/test_conformance.py` lets it do all of them."""
    for name in [name for name in vars(EngineConformance) if name.startswith("test_")]:
        if name not in ("test_numbers", "test_receipts"):
            monkeypatch.delattr(EngineConformance, name)
    run = cli(
        "device", "bench", "--engine", "tests.executor.engines.liars:OffByOnePercent", "--check", "--json"
    )
    assert (run.code, run.document["passed"]) == (6, False)
    problems = {check["name"]: check["problem"] for check in run.document["checks"]}
    assert problems["receipts"] is None
    assert "relative error" in problems["numbers"]
    assert cli("device", "bench").code == 2
