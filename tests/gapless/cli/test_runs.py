"""`gapless list runs`: which runs there are, how far they came, and what they found."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.files.run import Entry, begin
from gapless.formulations.files import load_problem

from ..conftest import Cli

SPARSE, OCTREE = "pixel7a/alexnet-sparse", "pixel7a/octree"


@pytest.fixture
def place(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs below it."""
    monkeypatch.chdir(tmp_path)
    words = ("--engine", "simulated", "--noise", "0%", "--top", "2")
    assert cli("tune", SPARSE, *words).code == 0
    assert cli("tune", OCTREE, *words, "--out", "deep/er/octree").code == 0
    return tmp_path


@pytest.mark.slow
def test_runs_are_listed(cli: Cli, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {run["path"]: run for run in cli("list", "runs", "--json").document["runs"]}
    assert found.keys() == {"gapless-out", "deep/er/octree"}
    octree = found["deep/er/octree"]
    assert (octree["command"], octree["networks"], octree["state"]) == ("tune", ["octree"], "finished")
    assert (octree["simulated"], octree["engine"]) == (True, "simulated")
    assert octree["units"] == ["Little", "Medium", "Big", "GPU"]
    assert octree["period_us"]["median"] == pytest.approx(2226, rel=0.05)  # of a plan that comes back
    assert octree["measured"] == octree["candidates"] > 2
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("list", "runs").out
    assert max(map(len, shown.splitlines())) <= 80
    monkeypatch.setenv("COLUMNS", "120")
    shown = cli("list", "runs").out
    for word in ("gapless-out", "deep/er/octree", "finished", "simulated,", "x the best baseline's"):
        assert word in shown
    assert [run["path"] for run in cli("list", "runs", "deep", "--json").document["runs"]] == [
        "deep/er/octree"
    ]


@pytest.mark.slow
def test_runs_that_did_not_finish_say_so(cli: Cli, place: Path) -> None:
    problem = load_problem(place / "gapless-out" / "problem.json")
    how = Entry(resume=True)
    with pytest.raises(KeyboardInterrupt), begin("gapless-out", "tune", problem, entry=how, simulated=True):
        raise KeyboardInterrupt
    (run,) = cli("list", "runs", "gapless-out", "--json").document["runs"]
    assert (run["state"], run["best"]) == ("interrupted", "plan 1")
    shown = " ".join(cli("show", "gapless-out").out.split())
    assert "tune alexnet-sparse, simulated" in shown
    assert "(interrupted)" in shown
    assert "the same command with --resume goes on" in shown
    with begin("gapless-out", "tune", problem, entry=how, simulated=True):
        (run,) = cli("list", "runs", "gapless-out", "--json").document["runs"]
        assert run["state"] == "running"


def test_what_cannot_be_read_is_named(cli: Cli, place: Path) -> None:
    (place / "gapless-out" / "tuning.json").write_text("{")
    (place / "deep" / "er" / "octree" / "run.json").write_text("[]")
    run = cli("list", "runs", "--json")
    assert run.code == 0
    problems = {one["path"]: one["problem"] for one in run.document["runs"]}
    assert "is not valid JSON" in problems["gapless-out"]
    assert "holds a list" in problems["deep/er/octree"]


def test_a_folder_without_run_json_is_a_run_by_its_files(cli: Cli, place: Path) -> None:
    (place / "gapless-out" / "run.json").unlink()
    (run,) = cli("list", "runs", "gapless-out", "--json").document["runs"]
    assert (run["networks"], run["state"], run["best"]) == (["alexnet-sparse"], "finished", "plan 1")


def test_no_runs_and_no_folder(cli: Cli, tmp_path: Path) -> None:
    run = cli("list", "runs", tmp_path)
    assert run.code == 0
    assert "no runs below" in run.out
    run = cli("list", "runs", tmp_path / "nowhere")
    assert run.code == 2
    assert "is no folder" in run.err
