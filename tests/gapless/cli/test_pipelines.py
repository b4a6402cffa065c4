"""Pipelines on the command line: on one board they run, over devices they are simulated."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from gapless.api.device import this_device
from gapless.formulations.files import dump_plan, dump_problem
from gapless.profiler.slowdown.corun import unit_pairs
from tests.executor.graph.models import residual
from tests.pipeline_boards import TWO, one_board, six_devices

from ..conftest import Cli

BOARD = "pixel7a/octree"
PAIRS = unit_pairs(this_device())


@pytest.fixture
def over_devices(tmp_path: Path) -> Path:
    """Return a plan of two pipelines over devices, beside its problem."""
    problem, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    problem.write_text(dump_problem(six_devices()))
    plan.write_text(dump_plan(TWO, six_devices(), {"problem": str(problem)}))
    return plan


@pytest.fixture
def on_board(tmp_path: Path) -> Path:
    """Return a problem of pipelines on one board."""
    path = tmp_path / "board.json"
    path.write_text(dump_problem(one_board()))
    return path


@pytest.mark.slow
def test_a_shipped_board_is_planned_with_pipelines(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    arguments = ("plan", BOARD, "--pipelines", "many", "--max-units", "2", "--backend", "exhaustive")
    assert cli(*arguments, "--out", out).code == 0
    document = cli("tools", "check", out, "--json").document
    assert document["valid"] is True, "the plan knows that its problem has pipelines"
    shown = cli("plan", "octree", "--platform", "pixel7a", *arguments[2:])
    assert shown.code == 0
    assert "2 of 4 units" in shown.out


@pytest.mark.slow
def test_what_makes_no_sense_is_refused(cli: Cli) -> None:
    for words, *arguments in (
        ("must be many, one, or a number", "plan", BOARD, "--pipelines", "some"),
        ("bubbles", "plan", BOARD, "--pipelines", "many", "--objective", "bubbles"),
        ("of one network", "plan", "--workload", "bert", "--platform", "kirin990", "--pipelines", "2"),
        ("--platform pixel7a takes alexnet-dense", "plan", "squeezenet", "--platform", "pixel7a"),
    ):
        refused = cli(*arguments)
        assert refused.code == 2
        assert words in refused.err


@pytest.mark.slow
def test_plans_over_devices_are_checked_shown_and_played(
    cli: Cli, over_devices: Path, tmp_path: Path
) -> None:
    assert "2 pipelines over 5 of 6 devices: 222.2 items/s" in cli("tools", "check", over_devices).out
    assert "-> pi-2" in cli("show", over_devices).out
    played = cli("simulate", over_devices, "--requests", "6", "--json").document
    assert {event["stream"] for event in played["events"]} == {"pipeline 1", "pipeline 2"}
    assert "nano-2 -> pi-2" in {event["unit"] for event in played["events"]}
    measured = cli("run", over_devices, "--engine", "simulated", "--requests", "20", "--json").document
    assert measured["period_us"] == pytest.approx(4500)
    trace = tmp_path / "trace.json"
    assert cli("tools", "trace", over_devices, "--engine", "simulated", "--out", trace).code == 0
    assert "nothing overlaps" in cli("show", trace).out
    page = tmp_path / "page.html"
    assert cli("report", over_devices, "--out", page, "--time-limit", "200ms").code == 0
    assert "message on a link" in page.read_text()


def test_what_needs_one_board_says_so(cli: Cli, over_devices: Path, tmp_path: Path) -> None:
    problem = tmp_path / "problem.json"
    for arguments in (
        ("run", over_devices),
        ("tools trace", over_devices, "--out", tmp_path / "trace.json"),
        ("export", over_devices, "--to", "onnx", "--out", tmp_path / "export"),
        ("tune", problem, "--out", tmp_path / "tuned"),
    ):
        refused = cli(*arguments)
        assert refused.code == 2, arguments
        assert "for several devices (links)" in refused.err
        assert "--engine simulated" in refused.err


@pytest.mark.slow
def test_pipelines_race_on_a_simulated_board(cli: Cli, on_board: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned"
    how = ("--backends", "exhaustive", "--top", "3", "--budget", "5s")
    tuned = cli("tune", on_board, "--engine", "simulated", *how, "--out", out)
    assert tuned.code == 0
    assert "replicas" in tuned.out
    assert (out / "plan.json").exists(), "replicas are a plan here"
    assert "pipeline 1" in cli("tools", "check", out).out
    page = tmp_path / "page.html"
    assert cli("report", out, "--out", page, "--time-limit", "200ms").code == 0
    assert "pipeline 2" in page.read_text()


def test_an_explanation_says_what_other_sets_bring(cli: Cli, on_board: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.json"
    assert cli("plan", on_board, "--backend", "exhaustive", "--out", out).code == 0
    shown = cli("explain", out)
    assert shown.code == 0
    assert "Sets of units: the best plan on each" in shown.out
    document = cli("explain", out, "--json").document
    assert [entry["text"] for entry in document["sets"]] == ["at most 1 unit", "at most 2 units"]


@pytest.mark.measures
@pytest.mark.slow
@pytest.mark.skipif(not PAIRS, reason="no two units of this machine can run at once")
def test_pipelines_run_for_real_on_this_board(cli: Cli, tmp_path: Path) -> None:
    model, out = tmp_path / "small.onnx", tmp_path / "tuned"
    onnx.save(residual(), str(model))
    units = ",".join(PAIRS[0])
    how = ("--pipelines", "many", "--units", units, "--top", "2", "--budget", "2s")
    tuned = cli("tune", model, *how, "--out", out, "--json")
    assert tuned.code == 0, tuned.err
    labels = [label for row in tuned.document["rows"] for label in row["candidate"]["labels"]]
    assert f"replicas on {units.replace(',', '+')}" in labels
    assert {f"serial on {unit}" for unit in PAIRS[0]} <= set(labels)
    assert any(label.startswith("plan ") for label in labels)
    deployments = [row["candidate"]["deployment"]["streams"] for row in tuned.document["rows"]]
    both = next(streams for streams in deployments if len(streams) == 2)
    assert [stream["name"] for stream in both] == ["pipeline 1", "pipeline 2"]
    assert any(row["period_us"] is not None for row in tuned.document["rows"])
    plan = tmp_path / "plan.json"
    assert cli("plan", out / "problem.json", "--min-units", "2", "--out", plan).code == 0
    ran = cli("run", out / "problem.json", plan, "--requests", "20")
    assert ran.code == 0, ran.err
    assert "numbers agree with the uncut model" in ran.err + ran.out
    export = tmp_path / "export"
    assert cli("export", out / "problem.json", plan, "--to", "onnxruntime", "--out", export).code == 0
    predicted = json.loads((export / "manifest.json").read_text())["predicted"]["period_us"]
    throughput = cli("tools", "check", out / "problem.json", plan, "--json").document["score"][
        "throughput_per_s"
    ]
    assert predicted == pytest.approx(1e6 / throughput, abs=1)
