"""`gapless sweep`: files, exit codes, what is printed, and what is wrong is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gapless.sweeps import run as running
from gapless.sweeps.answers import TaskAnswer, answer

from ..conftest import Cli

BOARDS = {
    "format": "gapless.sweep",
    "version": 1,
    "title": "Which board?",
    "models": ["octree"],
    "platforms": [{"name": "pixel7a", "units": "1..2"}, "oneplus11"],
    "backends": ["native", "exhaustive"],
    "prices": {"pixel7a": 349, "oneplus11": 499},
    "currency": "EUR",
}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "boards.json"
    path.write_text(json.dumps(BOARDS))
    return path


def test_a_sweep_writes_a_table_a_page_and_plans(cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run = cli("sweep", spec, "--out", out, "--plans", "--jobs", "1")
    assert run.code == 0
    for words in (
        "6 of 6 plans",
        "Which platform",
        "349 EUR",
        "What one more device brings",
        "+180.7 %",
        "exhaustive",
    ):
        assert words in run.out
    assert f"wrote {out}/sweep.csv, {out}/sweep.html, {out}/plans" in run.err
    assert (out / "sweep.csv").read_text().count("\n") == 7
    assert "Which board?" in (out / "sweep.html").read_text()
    assert len(list((out / "plans").iterdir())) == 6
    plan = min((out / "plans").iterdir())
    assert cli("simulate", plan).code == 0, "a kept plan knows its problem"


def test_the_document_has_every_row(cli: Cli, spec: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = cli("sweep", spec, "--out", out, "--json").document
    assert (first["format"], first["tasks"], first["resumed"]) == ("gapless.sweep_result", 6, 0)
    assert {row["status"] for row in first["rows"]} == {"optimal"}
    again = cli("sweep", spec, "--out", out, "--resume", "--json").document
    assert again == {**first, "resumed": 6}


@pytest.mark.slow
def test_a_folder_that_is_taken(cli: Cli, spec: Path, tmp_path: Path) -> None:
    assert cli("sweep", spec, "--out", tmp_path / "out").code == 0
    run = cli("sweep", spec, "--out", tmp_path / "out")
    assert run.code == 2
    assert "--resume" in run.err
    assert "--overwrite" in run.err
    assert cli("sweep", spec, "--out", tmp_path / "out", "--overwrite").code == 0


def test_a_failed_task_is_told_and_the_rest_is_written(
    cli: Cli, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def one_fails(task: Any, network: Any) -> TaskAnswer:
        if task.base.board == "oneplus11":
            return TaskAnswer(error="no luck\x1b[31m", failure="ExecutionError")
        return answer(task, network)

    monkeypatch.setattr(running, "answer", one_fails)
    run = cli("sweep", spec, "--out", tmp_path / "out")
    assert run.code == 5
    assert re.search(r"5 +1  octree  oneplus11  native +no luck", run.out)
    assert "\x1b" not in run.out
    assert "6 of 6 plans, 4 of them proved; 2 failed." in run.out
    assert "\x1b" not in (tmp_path / "out" / "sweep.csv").read_text()


def test_a_narrow_terminal_shows_why_all_of_a_sweep_failed(
    cli: Cli, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "answer", lambda *_: TaskAnswer(error="no luck", failure="ExecutionError"))
    monkeypatch.setenv("COLUMNS", "80")
    usual = {name: value for name, value in BOARDS.items() if name != "backends"}
    spec.write_text(json.dumps(usual))
    run = cli("sweep", spec, "--out", tmp_path / "out", "--jobs", "1")
    assert (run.code, run.out.count("no luck")) == (5, 3), run.err
    assert "Which backend proves what" not in run.out


def test_proofs_that_contradict_each_other_are_a_failure_of_verification(
    cli: Cli, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contradicting(task: Any, network: Any) -> TaskAnswer:
        value = 10 if task.solving.backend == "native" else 20
        return TaskAnswer(
            status="optimal",
            backend=task.solving.backend,
            term="period",
            value=value,
            bound=value,
            fingerprint="f",
        )

    monkeypatch.setattr(running, "answer", contradicting)
    run = cli("sweep", spec, "--out", tmp_path / "out")
    assert run.code == 6
    assert "task 2: exhaustive proves that period is at least 20" in run.out


def test_ctrl_c_writes_what_there_is(
    cli: Cli, spec: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = running.Work._keep

    def stop(self: Any, outcome: Any) -> None:
        kept(self, outcome)
        raise KeyboardInterrupt

    monkeypatch.setattr(running.Work, "_keep", stop)
    run = cli("sweep", spec, "--out", tmp_path / "out", "--jobs", "1")
    assert run.code == 130
    assert "1 of 6 plans" in run.out
    assert "interrupted: 5 plans are not made; the same command with --resume goes on" in run.err
    monkeypatch.undo()
    assert cli("sweep", spec, "--out", tmp_path / "out", "--resume", "--json").document["resumed"] == 1


def test_what_is_wrong_is_told_before_anything_is_written(cli: Cli, spec: Path, tmp_path: Path) -> None:
    spec.write_text(json.dumps({**BOARDS, "platforms": ["pixel8"], "backends": ["nativ"], "model": []}))
    run = cli("sweep", spec, "--out", tmp_path / "out")
    assert (run.code, "model: unknown key" in run.err) == (2, True)
    spec.write_text(json.dumps({**BOARDS, "platforms": ["pixel8"], "backends": ["nativ"]}))
    run = cli("sweep", spec, "--out", tmp_path / "out")
    assert run.code == 2
    assert "did you mean pixel7a?" in run.err
    assert "did you mean native?" in run.err
    assert not (tmp_path / "out").exists()
    assert cli("sweep", tmp_path / "nowhere.json").code == 2


def test_a_sweep_file_is_shown(cli: Cli, spec: Path) -> None:
    run = cli("show", spec)
    assert run.code == 0
    for words in ("Which board?", "pixel7a, oneplus11", "native, exhaustive"):
        assert words in run.out


def test_a_python_file_with_rules(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import gapless\n"
        "print('hello')\n"
        "def problems():\n"
        "    problem = gapless.load_problem('pixel7a/octree')\n"
        "    yield 'all', problem\n"
        "    yield 'no GPU', problem.with_rules(lambda view: ~view.uses('GPU'))\n"
    )
    run = cli("sweep", path, "--out", tmp_path / "out", "--json")
    rows = run.document["rows"]
    assert [row["platform"] for row in rows] == ["all", "no GPU"]
    assert "GPU" not in rows[1]["plan"]
    assert rows[0]["value"] < rows[1]["value"]
