"""What `gapless report` makes of the files that it is given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.files.plans import remembered_problem
from gapless.formulations.errors import InvalidInputError
from gapless.view.page.sources import Known, sort_files

from ...conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"


def sorted_(*given: str | Path) -> list[Known]:
    return sort_files([str(one) for one in given], remembered_problem)[0]


@pytest.fixture
def folder(cli: Cli, tmp_path: Path) -> Path:
    """What tuning a simulated device leaves behind; replicas win there."""
    words = ("tune", SPARSE, "--engine", "simulated", "--costs", "isolated", "--top", "4")
    assert cli(*words, "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


@pytest.mark.slow
def test_a_folder_is_one_run_and_its_best_plan(folder: Path) -> None:
    won, best = sorted_(folder)
    assert (won.title, best.title) == (str(folder), f"{folder}: the fastest plan that is no baseline")
    assert won.deployment is not None
    assert won.deployment.plan is None
    assert won.tuning is not None
    assert best.deployment is not None
    assert best.deployment.deployment_id != won.deployment.deployment_id
    assert best.answers[0].status == "optimal"
    assert won.answers == best.answers
    assert won.tuning == best.tuning
    assert {Path(source).name for source in (*won.sources, *best.sources)} == {
        "problem.json",
        "deployment.json",
        "tuning.json",
        "comparison.json",
    }


@pytest.mark.slow
def test_a_folder_whose_best_plan_comes_back_is_not_compared_again(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raced = json.loads((folder / "tuning.json").read_text())
    one_chunk = [{"plan 2"}, {"plan 3"}, {"plan 4"}, {"plan 5"}, {"plan 6"}, {"plan 7"}, {"plan 8"}]
    raced["rows"] = [row for row in raced["rows"] if set(row["candidate"]["labels"]) not in one_chunk]
    (folder / "tuning.json").write_text(json.dumps(raced))
    won, best = sorted_(folder)
    assert best.problem.fingerprint != won.problem.fingerprint  # it needs plans that may come back
    assert (won.answers[0].status, best.answers) == ("optimal", ())
    monkeypatch.setattr("gapless.cli.tasks.reporting.compare_watched", None)
    assert cli("report", folder, "--out", tmp_path / "page.html").code == 0


@pytest.mark.slow
def test_the_problem_of_a_folder_is_the_one_that_was_planned(folder: Path, cli: Cli) -> None:
    (folder / "problem.json").rename(folder / "problem-isolated.json")
    assert cli("show", SPARSE, "--out", folder / "problem.json").code == 0
    known = sorted_(folder)[0]
    assert known.sources[0] == str(folder / "problem-isolated.json")
    assert known.answers


def test_plans_of_one_problem_stand_side_by_side(cli: Cli, tmp_path: Path) -> None:
    for name, words in {"all": (), "two": ("--max-units", "2")}.items():
        assert cli("plan", SPARSE, *words, "--out", tmp_path / name).code == 0
    alone = sorted_(tmp_path / "all", tmp_path / "two")
    assert [known.problem.limits.max_units for known in alone] == [None, 2]
    named = sorted_(SPARSE, tmp_path / "all", tmp_path / "two")
    assert [known.problem.limits.max_units for known in named] == [None, None]
    assert [known.deployment for known in named] == [known.deployment for known in alone]


def test_a_problem_without_a_plan_waits_for_its_best_one(cli: Cli, tmp_path: Path) -> None:
    compared = tmp_path / "compared.json"
    assert cli("compare", SPARSE, "--backends", "native,exhaustive", "--out", compared).code == 0
    (known,) = sorted_(SPARSE, compared)
    assert known.deployment is None
    assert [(one.backend, one.guarantee, one.status) for one in known.answers] == [
        ("native", "exact", "optimal"),
        ("exhaustive", "exact", "optimal"),
    ]
    with pytest.raises(InvalidInputError, match="another objective"):
        sorted_("oneplus11/alexnet-sparse", compared)
    (alone,) = sorted_(compared)
    assert alone.problem == known.problem
    assert alone.plan is not None
    assert alone.answers == known.answers


@pytest.mark.slow
def test_a_plan_behind_a_folder_names_its_own_problem(cli: Cli, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert cli("plan", "oneplus11/alexnet-dense", "--out", path).code == 0
    known = sorted_(folder, path)
    assert known[-1].problem.platform.name == "oneplus11"
    assert known[-1].answers == ()


def test_what_the_runtime_cannot_serve_can_be_looked_at(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    words = ("--workload", "squeezenetx2", "--platform", "kirin990", "--execution", "columns")
    assert cli("plan", *words, "--backend", "serial", "--out", path).code == 0
    (known,) = sorted_(path)
    assert known.deployment is not None
    assert known.deployment.rounds is not None


def test_what_is_no_input_is_refused(tmp_path: Path, folder: Path) -> None:
    for given, words in {
        tmp_path / "missing.json": "No such file",
        tmp_path: "is no folder of",
        folder / "table.md": "not valid JSON",
        folder / "executions.json": "a report takes",
    }.items():
        with pytest.raises(InvalidInputError, match=words):
            sorted_(given)
    with pytest.raises(InvalidInputError, match="name the problem before it"):
        sorted_(folder / "tuning.json")
