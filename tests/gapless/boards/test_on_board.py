"""Commands on a board from beginning to end: what goes there, what comes back, and that it works on here."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest

import gapless
from gapless.api.tuned import Tuned
from gapless.boards.running import run_there
from gapless.boards.ssh import Address
from gapless.cli.base.exits import ExitCode
from gapless.executor.machine.state import fingerprint
from gapless.executor.progress import Step
from gapless.files.run_document import read_run
from gapless.formulations.errors import BoardError, InvalidInputError
from tests.coming_back import plan_file
from tests.executor.graph.models import residual
from tests.executor.pipelines import write
from tests.processes import soon
from tests.sshd import Sshd

from ..conftest import Cli

pytestmark = [pytest.mark.measures, pytest.mark.slow]

HOSTILE = "a; touch pwned $(touch pwned) 'x' \"é\"\n.onnx"


@pytest.fixture(scope="module")
def tuned(
    server: Sshd, model_file: Path, unit: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Tuned]:
    """A model that was tuned on the board, in Python: the run folder here, and what was returned."""
    out = tmp_path_factory.mktemp("tuned") / "my run"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.variables.items():
            patch.setenv(name, value)
        return out, gapless.on("board").tune(model_file, units=(unit,), top=2, budget_s=1, out=out)


def test_results_are_in_the_folder_here(tuned: tuple[Path, Tuned], model_file: Path, board: Sshd) -> None:
    out, found = tuned
    about = read_run(out)
    assert about is not None
    assert (about.state, about.device) == ("finished", str(fingerprint()))
    assert about.board is not None
    assert about.board.destination == "board"
    assert set(about.files) < {path.name for path in out.iterdir()}
    assert (out / "store.sqlite").is_file()
    assert json.loads((out / "trace.json").read_text())["traceEvents"]
    assert found.result.winner is not None
    assert found.comparison.best is not None
    assert found.comparison.problem == found.problem
    assert found.profile is not None
    (network,) = found.problem.networks
    assert network.models[0].locator == str(model_file)
    there = [path.name for path in board.shelf.rglob("*") if path.is_file()]
    assert there.count(model_file.name) == 1  # copied once, by its content
    there_still = board.shelf / "runs" / about.board.run
    assert soon(lambda: not there_still.exists())  # all was received


def test_commands_here_work_on_with_it(cli: Cli, tuned: tuple[Path, Tuned], tmp_path: Path) -> None:
    out, _ = tuned
    (known,) = cli("list", "runs", out.parent, "--json").document["runs"]
    assert known["state"] == "finished"
    assert known["device"] == str(fingerprint())
    assert cli("report", out, "--out", tmp_path / "report.html").code == 0
    assert cli("export", out, "--to", "onnx", "--out", tmp_path / "export").code == 0
    ran = cli("run", out, "--requests", "5")  # the model is found, and is the one that was tuned
    assert ran.code == 0, ran.err
    refused = cli("tune", known["line"], "--out", out, "--resume")
    assert refused.code == ExitCode.USAGE


def test_what_was_tuned_there_runs_there(
    cli: Cli, tuned: tuple[Path, Tuned], board: Sshd, tmp_path: Path
) -> None:
    out, _ = tuned
    measured, trace, model = tmp_path / "measured.json", tmp_path / "trace.json", tmp_path / "elsewhere.onnx"
    old = gapless.load_problem(out / "problem.json").networks[0].models[0].locator
    shutil.copy(old, model)
    words = ("--requests", "20", "--out", measured, "--trace", trace, "--at", f"{old}={model}")
    run = cli("run", out, "--on", "board", *words)
    assert run.code == 0, run.err
    assert "numbers agree with the uncut model" in run.err
    assert f"wrote {trace}" in run.err.replace("\n", "")
    assert f"its problem is {out / 'problem.json'}" in run.err.replace("\n", "")
    assert json.loads(measured.read_text())["requests"] == 20
    assert json.loads(trace.read_text())["traceEvents"]
    assert str(board.shelf) not in run.out + run.err


def test_a_plan_that_comes_back_runs_there(cli: Cli, board: Sshd, tmp_path: Path) -> None:
    _, plan = plan_file(tmp_path)
    trace = tmp_path / "trace.json"
    run = cli("run", plan, "--on", "board", "--requests", "30", "--trace", trace, "--json")
    assert run.code == 0, run.err
    assert "numbers agree with the uncut model" in run.err
    assert {unit["unit"] for unit in run.document["units"]} == {"core0", "core1"}
    events = [event.get("args", {}) for event in json.loads(trace.read_text())["traceEvents"]]
    chunks = {args["chunk"] for args in events if "chunk" in args}
    assert len(chunks) == len(gapless.load_plan(plan).chunks) > 2


def test_tuning_there_races_plans_that_come_back(cli: Cli, board: Sshd, tmp_path: Path) -> None:
    plan_file(tmp_path)
    cores = gapless.this_device(engine="onnxruntime", units=("core0", "core1"))
    lacking = replace(cores, units=(replace(cores.units[0], unsupported=("Sigmoid",)), cores.units[1]))
    gapless.save(lacking, tmp_path / "device.json")
    out, device = tmp_path / "run", ("--device", tmp_path / "device.json", "--engine", "onnxruntime")
    words = ("--top", "3", "--budget", "1s", "--out", out, "--json")
    run = cli("tune", tmp_path / "model.onnx", "--on", "board", *device, *words)
    assert run.code == 0, run.err
    streams = [row["candidate"]["deployment"]["streams"][0] for row in run.document["rows"]]
    assert any(stream.get("cycle") for stream in streams)
    assert cli("run", out, "--on", "board", "--requests", "5").code == 0


def test_trade_offs_that_were_measured_there_come_back(
    board: Sshd, model_file: Path, unit: str, tmp_path: Path
) -> None:
    steps: list[Step] = []
    words: dict[str, Any] = {"pareto": ["period", "peak_memory"], "budget_s": 1, "units": (unit,)}
    found = gapless.on("board").tune(model_file, **words, out=tmp_path / "out", report=steps.append)
    assert found.front is not None
    assert found.front.terms == ("period", "peak_memory")
    assert any(point.measured for point in found.front.points)
    assert any(step.done and unit in step.text for step in steps)  # what it says there of itself
    best: dict[str, Any] = {"top": 1, "budget_s": 1, "units": (unit,), "overwrite": True}
    again = gapless.on("board").tune(model_file, **best, out=tmp_path / "out")
    assert again.front is None
    assert not (tmp_path / "out" / "pareto.json").exists()


def test_python_runs_there_what_was_tuned_there(tuned: tuple[Path, Tuned], board: Sshd) -> None:
    _, found = tuned
    assert found.deployment is not None
    assert gapless.on("board").run(found.problem, found.deployment, requests=5, check=False).requests == 5


def test_a_run_of_a_board_goes_on_there_and_not_here(
    cli: Cli, tuned: tuple[Path, Tuned], model_file: Path, unit: str, board: Sshd
) -> None:
    out, before = tuned
    words = ("tune", model_file, "--units", unit, "--top", "2", "--budget", "1s", "--out", out)
    assert "holds a run" in cli(*words, "--on", "board").err
    here = cli(*words, "--resume")
    assert here.code == ExitCode.USAGE
    assert "It ran on a board: --on board --resume goes on with it." in here.err
    again = cli(*words, "--on", "board", "--resume", "--json")  # from the measurements that are here
    assert again.code == 0, again.err
    rows = again.document["rows"]
    known = [row.period_us.median for row in before.result.rows if row.period_us]
    assert [row["period_us"]["median"] for row in rows if row["period_us"]] == pytest.approx(known, abs=0.01)


def test_another_model_is_refused_by_the_board(
    cli: Cli, tuned: tuple[Path, Tuned], unit: str, board: Sshd, tmp_path: Path
) -> None:
    out, _ = tuned
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    run = cli("tune", write(tmp_path), "--units", unit, "--out", out, "--on", "board", "--resume")
    assert run.code == ExitCode.USAGE
    assert "another model" in run.err
    assert str(out) in run.err.replace("\n", "")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == files


def test_files_are_copied_once_whatever_they_are_called(
    cli: Cli, board: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(residual(), HOSTILE, save_as_external_data=True, location="w.bin", size_threshold=0)
    first, again = (run_there(Address.of("board"), "tools inspect", (), [HOSTILE]) for _ in range(2))
    assert (first.code, again.code) == (0, 0)
    assert first.copied_bytes == sum(Path(name).stat().st_size for name in (HOSTILE, "w.bin"))
    assert again.copied_bytes == 0
    assert not [path for path in (tmp_path, board.shelf, Path.home()) if (path / "pwned").exists()]
    gone = cli("device", "bench", HOSTILE, "--on", "board", "--units", "nosuch unit", "--json")
    assert gone.code == ExitCode.USAGE
    assert gone.document["format"] == "gapless.error"


def test_python_functions_and_their_folder(cli: Cli, board: Sshd, unit: str, tmp_path: Path) -> None:
    locator, out = write(tmp_path), tmp_path / "sub" / "$(odd) é"
    run = cli("profile", locator, "--units", unit, "--out", out, "--on", "board")
    assert run.code == 0, run.err
    assert cli("plan", out / "problem.json").code == 0
    assert json.loads((out / "problem.json").read_text())["networks"][0]["models"][0]["locator"] == locator
    assert str(out / "profile.json") in run.err.replace("\n", "")


def test_what_the_board_refuses_is_said_here(cli: Cli, board: Sshd, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = cli("tune", "nosuch", "--on", "board", "--out", out)
    assert (run.code, run.out) == (ExitCode.USAGE, "")
    assert run.err.count("'nosuch' is neither a file nor a built-in network") == 1
    assert not out.exists()
    with pytest.raises(InvalidInputError, match="neither a file nor a built-in network"):
        gapless.on("board").profile("nosuch")
    with pytest.raises(InvalidInputError, match="'budgett' cannot be said here"):
        gapless.on("board").tune("squeezenet", budgett=1)  # type: ignore[call-arg]
    with pytest.raises(BoardError, match="cannot reach"):
        gapless.on("stranger").this_device()
