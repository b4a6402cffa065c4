"""`gapless show`: every file that gapless writes, run folders, traces with and without defects."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import onnx
import pytest

from gapless.api.device import this_device
from gapless.cli.main import main
from gapless.cli.tasks.showing import kind_of, show_file
from gapless.files.formats import FORMATS
from gapless.formulations.files import NETWORK, PLATFORM, dump, load_problem, save
from gapless.profiler.coordination import catalog
from tests.executor.graph.models import residual

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `gapless tune` of a small network on one core of this machine."""
    folder = tmp_path_factory.mktemp("measured")
    onnx.save(residual(), str(folder / "small.onnx"))
    unit = min(this_device().units, key=lambda unit: len(unit.cores) or 1000).name
    words = ["tune", str(folder / "small.onnx"), "--units", unit, "--top", "1", "--budget", "2s"]
    assert main([*words, "--out", str(folder / "run")]) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a closed loop on a simulated device."""
    folder = tmp_path_factory.mktemp("simulated")
    words = ["tune", SPARSE, "--engine", "simulated", "--rounds", "2", "--top", "3"]
    assert main([*words, "--out", str(folder)]) == 0
    return folder


@pytest.mark.measures
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("problem.json", ("least period", "fingerprint", "best")),
        ("plan.json", ("VALID", "its problem is", "20 requests, simulated", "[ ]: where the plan runs it")),
        ("profile.json", ("whole network", "isolated: layers by unit", "noise of", "granted by the engine:")),
        ("trace.json", ("20 requests, measured", "checked: nothing overlaps")),
        ("tuning.json", ("candidates measured", "serial on")),
        ("executions.json", ("executed plans", "heavy says", "gapless costs judge")),
        ("comparison.json", ("native", "OPTIMAL")),
    ],
)
def test_files_of_tune_are_shown(cli: Cli, measured: Path, name: str, words: tuple[str, ...]) -> None:
    run = cli("show", measured / name)
    assert run.code == 0, run.err
    printed = run.out + run.err
    for word in words:
        assert word in printed, printed
    found = cli("show", measured / name, "--json").document
    assert found["format"] == "gapless.description"
    assert found["document"] == json.loads((measured / name).read_text())


def test_a_comparison_is_shown_with_its_times(cli: Cli, tmp_path: Path) -> None:
    assert cli("compare", SPARSE, "--backends", "native,exhaustive", "--out", tmp_path / "c.json").code == 0
    run = cli("show", tmp_path / "c.json")
    assert run.code == 0, run.err
    words = " ".join(run.out.split())
    assert "OPTIMAL" in words
    assert "first" in words
    assert "within" in words


@pytest.mark.measures
@pytest.mark.slow
def test_every_view_stays_in_a_narrow_terminal(
    cli: Cli, measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for name in ("trace.json", "profile.json", "plan.json", "problem.json"):
        run = cli("show", measured / name)
        assert run.code == 0
        assert max(map(len, run.out.splitlines())) <= 60
        assert run.out.isascii() or name == "problem.json"  # its source is a text


@pytest.mark.measures
@pytest.mark.slow
def test_a_run_folder_says_what_is_in_it_and_what_to_do(cli: Cli, measured: Path) -> None:
    run = cli("show", measured)
    assert run.code == 0
    for word in (
        "a race: every candidate",
        "requests/s  [",
        "gapless run",
        "gapless report",
        "store.sqlite",
    ):
        assert word in run.out
    found = cli("show", measured, "--json").document
    assert found["kind"] == "folder"
    listed = {entry["name"]: entry["kind"] for entry in found["document"]["files"]}
    assert listed["plan.json"] == "gapless.plan"
    assert listed["store.sqlite"] is None
    assert found["document"]["winner"]["candidate"]
    assert any(line.startswith("gapless run ") for line in found["document"]["next"])


@pytest.mark.measures
@pytest.mark.slow
def test_a_folder_with_a_broken_file_is_shown_all_the_same(
    cli: Cli, measured: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Path("my run")
    shutil.copytree(measured, place)
    (place / "tuning.json").write_text("{")
    run = cli("show", place)
    assert run.code == 0
    assert "is not valid JSON" in run.out
    assert "requests/s  [" not in run.out
    assert f"gapless costs judge '{place}/executions.json'" in run.out  # in one line, for copying


@pytest.mark.slow
def test_rounds_are_shown(cli: Cli, simulated: Path) -> None:
    run = cli("show", simulated / "rounds.json")
    assert run.code == 0
    for word in ("round", "new plans", "x Big", "candidates measured"):
        assert word in run.out
    alone = simulated / "elsewhere"
    alone.mkdir()
    shutil.copy(simulated / "rounds.json", alone)
    assert "x Big" not in cli("show", alone / "rounds.json").out


def test_deployments_are_shown_on_the_problem_beside_them(cli: Cli, simulated: Path, tmp_path: Path) -> None:
    run = cli("show", simulated / "deployment.json")
    assert (run.code, "VALID" in run.out) == (0, True)
    assert f"its problem is {simulated / 'problem.json'}" in " ".join(run.err.split())
    lonely = tmp_path / "deployment.json"
    shutil.copy(simulated / "deployment.json", lonely)
    run = cli("show", lonely)
    assert (run.code, "its problem is not known" in run.err) == (0, True)
    assert "VALID" not in run.out
    assert "alexnet-sparse" in run.out


def test_replicas_are_streams(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "deployment.json"
    streams = [
        {"name": f"net@{unit}", "chunks": [{"network": "net", "start": 0, "stop": 3, "unit": unit}]}
        for unit in ("a", "b")
    ]
    path.write_text(json.dumps({"format": "gapless.deployment", "version": 1, "streams": streams}))
    run = cli("show", path)
    assert run.code == 0
    assert "2 streams side by side" in run.out
    assert "net@b" in run.out


def test_a_plan_finds_its_problem_or_says_that_it_does_not(cli: Cli, tmp_path: Path) -> None:
    plan, lost = tmp_path / "plan.json", tmp_path / "lost.json"
    assert cli("plan", SPARSE, "--out", plan).code == 0
    assert "VALID  [0-0 Big | 1-3 GPU" in cli("show", plan).out
    tree = json.loads(plan.read_text())
    save(json.dumps({key: value for key, value in tree.items() if key != "asked"}), lost)
    run = cli("show", lost)
    assert run.code == 0
    assert "VALID" not in run.out
    assert f"its problem is not known; name it: `gapless show PROBLEM {lost}`" in " ".join(run.err.split())
    assert "VALID" in cli("show", SPARSE, lost).out
    assert "isolated" not in cli("show", SPARSE, lost).out
    save(json.dumps({**tree, "asked": {"problem": "gone.json"}}), lost)
    assert "cannot be read" in cli("show", lost).err
    wrong = cli("show", "pixel7a/octree", lost)
    assert wrong.code == 6
    assert "VIOLATED" in wrong.out
    assert any(
        "alexnet" in text for text in cli("show", "pixel7a/octree", lost, "--json").document["defects"]
    )


def test_a_plan_of_a_workload_is_shown_on_it(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = ["--workload", "vit,squeezenetx2", "--platform", "kirin990"]
    assert cli("plan", *words, "--time-limit", "500ms", "--out", plan).code == 0
    run = cli("show", plan)
    assert run.code == 0
    assert "VALID" in run.out
    assert "simulation of 3 requests" in run.out
    assert cli("show", plan, *words).code == 0
    refused = cli("show", *words, "--layers", "0-3")
    assert (refused.code, refused.out) == (2, "")
    assert "for one network" in refused.err


def test_traces_are_read_again(cli: Cli, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "trace.json"
    cli("plan", SPARSE, "--out", plan)
    drawn = cli("tools", "trace", SPARSE, plan, "--simulated", "--requests", "30", "--out", out)
    assert drawn.code == 0
    assert f"wrote {out}" in " ".join(drawn.out.split())
    again = cli("show", out)
    assert again.code == 0
    assert again.out.splitlines()[:5] == drawn.out.splitlines()[:5]
    assert "30 requests, simulated" in again.out
    tree = json.loads(out.read_text())
    assert any(event["name"] == "memory" for event in tree["traceEvents"])  # with a problem, memory is known


@pytest.mark.measures
@pytest.mark.slow
def test_what_was_edited_in_a_trace_is_named(cli: Cli, measured: Path, tmp_path: Path) -> None:
    tree = json.loads((measured / "trace.json").read_text())
    next(event for event in tree["traceEvents"] if event.get("cat") == "chunk")["dur"] += 1e6
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(tree))
    run = cli("show", path)
    assert run.code == 6
    assert "a trace of gapless that was edited" in run.out
    assert "overlaps the end of" in run.out or "lies inside of" in run.out
    assert cli("show", path, "--json").document["defects"]


def test_chrome_traces_of_others_are_checked(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    slices = [{"ph": "X", "name": "f", "pid": 1, "tid": 2, "ts": at, "dur": 5} for at in (0, 3)]
    named = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}}
    path.write_text(json.dumps({"traceEvents": [named, *slices]}))
    run = cli("show", path)
    assert run.code == 6
    assert "a Chrome trace of another program, 3 events" in run.out
    assert "1 defect:" in run.out
    path.write_text(json.dumps({"traceEvents": [named, slices[0]]}))
    run = cli("show", path)
    assert (run.code, run.err) == (0, "")
    assert "no defects" in run.out


def test_platforms_networks_and_ratios_are_shown(cli: Cli, tmp_path: Path) -> None:
    problem, out = tmp_path / "problem.json", tmp_path / "shown.json"
    cli("show", SPARSE, "--out", problem)
    read = load_problem(problem)
    save(dump(read.platform, PLATFORM), out)
    assert "Medium" in cli("show", out).out
    save(dump(read.network, NETWORK), out)
    assert "conv5" in cli("show", out).out
    cli("costs", "interference", "pixel7a/octree", "--out", out)
    assert "time beside load over time alone" in cli("show", out).out


@pytest.mark.measures
@pytest.mark.slow
def test_measurements_are_shown(cli: Cli, measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "measurement.json"
    run = cli("run", measured / "problem.json", measured / "plan.json", "--requests", "20", "--out", out)
    assert run.code == 0, run.err
    shown = cli("show", out).out
    assert shown.splitlines()[:2] == run.out.splitlines()[:2]
    assert "predicted" in run.out, "what the table of the problem says, beside what was measured"
    assert "predicted" not in shown, "a measurement does not know its problem"


def test_a_format_without_a_view_shows_its_keys(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    save(json.dumps({"format": "gapless.result", "version": 1, "status": "optimal", "plans": [1, 2]}), path)
    run = cli("show", path)
    assert run.code == 0
    assert "optimal" in run.out
    assert "2 entries" in run.out


def test_every_format_of_users_has_a_view() -> None:
    from gapless.cli.tasks.showing import _READERS, PROBLEM, _view

    keys_alone = {
        "costs",
        "slowdowns",
        "analytic",
        "paper_contention",
        "trial",
        "hops",
        "timing",
        "operators",
        "export",
        "sweep_answer",
        "pieces",
    }
    named = {f"gapless.{entry.name}" for entry in FORMATS if entry.name not in keys_alone}
    assert [kind for kind in named - {PROBLEM} if kind not in _READERS and _view(kind) is None] == []


@pytest.mark.parametrize("words", [(), ("--layers", "2-4")])
def test_heat_maps_are_drawn(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    plan, svg = tmp_path / "plan.json", tmp_path / "map.svg"
    cli("plan", SPARSE, "--out", plan)
    for subject, framed in ((SPARSE, 0), (plan, 3 if words else 9)):
        run = cli("show", subject, "--svg", svg, *words)
        assert run.code == 0
        assert f"wrote {svg}" in run.err
        boxes = [box for box in ElementTree.parse(svg).iter() if box.get("rx")]
        assert len(boxes) == (16 if words else 40), "a row for each layer, and one for all"
        assert [box.get("class") for box in boxes].count("framed") == framed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nosuch"], "neither a file nor the name of a shipped problem"),
        ([SPARSE, SPARSE], "is a problem, too"),
        ([SPARSE, SPARSE, SPARSE], "give a problem, a file, or a problem and a file"),
        ([SPARSE, "--layers", "4-2"], "--layers is '4-2', must be the first and the last layer"),
        ([SPARSE, "--layers", "9"], "there are no layers 9 to 9"),
        ([SPARSE, "--svg", "/nowhere/map.svg"], "does not exist"),
        (["{}/empty"], "holds no file of gapless"),
        (["{}/model.onnx"], "is a model, no result: `gapless tools inspect"),
        (["{}/notes.md"], "cannot be shown: the files of gapless are JSON"),
        (["{}/broken.json"], "is not valid JSON"),
        (["{}/nothing.json"], "does not say what it is"),
        (["{}/foreign.json"], "has the format 'other.thing', which is none of gapless"),
        (["{}/plan.json", "--objective", "latency"], "--objective is about a problem"),
        (["{}/plan.json", "--out", "x.json"], "--out writes problems"),
        (["{}/result.json", "--svg", "x.svg"], "--svg draws layer times"),
        (["{}/result.json", "--layers", "1"], "--layers is for layer times"),
    ],
)
def test_what_cannot_be_shown_is_refused(cli: Cli, tmp_path: Path, words: list[str], text: str) -> None:
    (tmp_path / "empty").mkdir()
    contents = {
        "model.onnx": "",
        "notes.md": "# notes",
        "broken.json": "{",
        "nothing.json": "{}",
        "foreign.json": '{"format": "other.thing"}',
        "result.json": '{"format": "gapless.result", "version": 1}',
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    cli("plan", SPARSE, "--out", tmp_path / "plan.json")
    run = cli("show", *(word.replace("{}", str(tmp_path)) for word in words))
    assert (run.code, run.out) == (2, ""), run.out
    assert text in " ".join(run.err.split())


def test_names_that_no_file_can_have_are_names_of_problems() -> None:
    assert kind_of("a\0b") == kind_of("x" * 5000) == "gapless.problem"
    with pytest.raises(Exception, match="is none of gapless"):
        show_file("x", "other", problem=None, layers=None)


def test_scenarios_and_how_units_behave(cli: Cli) -> None:
    shipped = Path(catalog.__file__).parent
    shown = cli("show", shipped / "scenarios" / "eagleeye-crowded.json")
    assert shown.code == 0
    for text in ("one frame after the other; the 10", "retinaface", "the frame's arrival"):
        assert text in shown.out
    assert "4 x the 99 % alone" in cli("show", shipped / "scenarios" / "small-apps.json").out
    units = cli("show", shipped / "phones" / "pixel4" / "behaviour.json").out
    for text in ("Units of pixel4 at work", "x 1.418", "x 2.61 after", "back at"):
        assert text in units


@pytest.mark.parametrize("command", ["show", "report"])
def test_a_folder_of_many_plans_is_told_with_its_page(cli: Cli, tmp_path: Path, command: str) -> None:
    for name in ("sweep.sqlite", "sweep.html", "sweep.csv"):
        (tmp_path / name).touch()
    run = cli(command, str(tmp_path))
    assert run.code == 2
    assert f"already: {tmp_path}/sweep.html and {tmp_path}/sweep.csv" in run.err
