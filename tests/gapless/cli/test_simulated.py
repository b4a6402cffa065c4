"""What no device has measured says so: in the terminal, as JSON, and on the page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..conftest import Cli

PROBLEM = "pixel7a/alexnet-sparse"


@pytest.fixture
def tuned(cli: Cli, tmp_path: Path) -> Path:
    """Return a folder of a simulated race."""
    place = tmp_path / "run"
    assert cli("tune", PROBLEM, "--engine", "simulated", "--top", "2", "--out", place).code == 0
    return place


def test_a_simulated_run_plays_the_costs_of_its_problem(cli: Cli, tmp_path: Path) -> None:
    plan, out = tmp_path / "plan.json", tmp_path / "measured.json"
    assert cli("plan", PROBLEM, "--out", plan).code == 0
    arguments = ("run", PROBLEM, plan, "--engine", "simulated", "--requests", "20")
    shown = cli(*arguments, "--out", out, "--trace", tmp_path / "trace.json")
    assert shown.code == 0
    assert "SIMULATED" in shown.out
    assert "nothing: simulated" in shown.out
    document = cli(*arguments, "--json").document
    assert document["simulated"] is True
    assert document["period_us"] == 7648.0
    assert json.loads(out.read_text())["simulated"] is True
    assert "SIMULATED" in cli("show", out).out


def test_what_needs_a_device_is_refused(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert cli("plan", PROBLEM, "--out", plan).code == 0
    shown = cli("run", PROBLEM, plan, "--engine", "simulated", "--restart")
    assert shown.code == 2
    assert "--restart" in shown.err


def test_commands_that_measure_say_who_simulates(cli: Cli) -> None:
    shown = cli("profile", "squeezenet", "--engine", "simulated")
    assert shown.code == 2
    assert "`gapless tune`" in shown.err


def test_a_simulated_race_says_so_wherever_it_is_shown(cli: Cli, tuned: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert "SIMULATED" in cli("show", tuned).out
    assert cli("report", tuned, "--out", page).code == 0
    text = page.read_text()
    for words in (
        "(simulated, ",
        "Period, simulated",
        "SIMULATED on a cost table, no device ran",
        "Predicted against simulated",
        "No engine was asked for anything",
        "nothing: simulated",
    ):
        assert words in text
    assert "Period, measured" not in text
    assert json.loads((tuned / "tuning.json").read_text())["simulated"] is True
    assert "simulated period ms" in (tuned / "table.csv").read_text()


def test_limits_hold_of_what_is_tuned_and_of_its_baselines(cli: Cli, tmp_path: Path) -> None:
    words = ("tune", "pixel7a/alexnet-sparse", "--engine", "simulated", "--top", "3", "--seed", "1")
    free = cli(*words, "--out", tmp_path / "free", "--json").document
    kept = cli(*words, "--max-units", "2", "--out", tmp_path / "kept", "--json").document
    streams = [[row["candidate"]["deployment"]["streams"] for row in run["rows"]] for run in (free, kept)]
    units = [[{c["unit"] for s in row for c in s["chunks"]} for row in run] for run in streams]
    assert [max(map(len, run)) for run in units] == [4, 2]
    labels = [{label for row in run["rows"] for label in row["candidate"]["labels"]} for run in (free, kept)]
    assert [any("replicas" in label for label in run) for run in labels] == [True, False]
    wrong = cli(*words, "--max-makespan", "2ms", "--out", tmp_path / "wrong")
    assert (wrong.code, "means nothing" in wrong.err) == (2, True)
    model = cli("tune", "squeezenet", "--max-makespan", "2ms", "--out", tmp_path / "model")
    assert (model.code, "about several requests" in model.err) == (2, True)
