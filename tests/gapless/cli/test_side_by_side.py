"""Layers side by side at the command line, and from other problems."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem
from gapless.formulations.jobs.tasks import tables_of

from ..conftest import Cli


@pytest.mark.slow
def test_plan_check_and_report(cli: Cli, tmp_path: Path) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    asked = ("pixel7a/alexnet-sparse", "--layer-order", "free", "--objective", "latency")
    found = cli("plan", *asked, "--out", plan)
    assert found.code == 0
    assert "longest path" in found.out
    assert cli("tools", "check", plan).out.startswith("VALID")
    assert cli("report", plan, "--out", page).code == 0
    assert "longest path" in page.read_text()
    merged = cli("plan", *asked, "--segments", "branches")
    assert merged.code == 0
    simulated = cli("simulate", plan, "--requests", "3")
    assert simulated.code == 0
    assert "simulation of 3 requests" in simulated.out
    full = cli("simulate", plan, "--requests", "3", "--task-slots", "2")
    assert full.code == 2
    assert "one request at a time" in full.err


def branched_problem(tmp_path: Path) -> Path:
    """Return a problem of two branches, on which two units are faster than one."""
    problem = gapless.graphs.latency_graph(
        {"stem": [4, 4], "a1": [3, 3], "a2": [3, 3], "b": [5, 5], "join": [2, 2]},
        [("stem", "a1"), ("stem", "b"), ("a1", "a2"), ("a2", "join"), ("b", "join")],
        ["x", "y"],
    )
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(problem))
    return path


def test_schedules_are_raced_run_traced_and_reported_on_a_simulated_device(cli: Cli, tmp_path: Path) -> None:
    problem, out, page = branched_problem(tmp_path), tmp_path / "run", tmp_path / "page.html"
    tuned = cli("tune", problem, "--engine", "simulated", "--out", out, "--top", "2", "--budget", "2s")
    assert tuned.code == 0, tuned.err
    assert "plan 1 wins" in tuned.out
    assert "serial" in tuned.out
    found = cli("run", out, "--engine", "simulated", "--requests", "5")
    assert found.code == 0, found.err
    assert "12.00 ms" in found.out
    traced = cli("tools", "trace", out, "--simulated", "--requests", "2", "--out", tmp_path / "trace.json")
    assert traced.code == 0, traced.err
    assert cli("show", tmp_path / "trace.json").code == 0
    assert cli("report", out, "--out", page).code == 0
    assert "12.000 ms" in page.read_text()
    exported = cli("export", out, "--out", tmp_path / "export")
    assert exported.code == 2


def test_segments_are_about_layers_side_by_side(cli: Cli) -> None:
    alone = cli("plan", "pixel7a/alexnet-sparse", "--segments", "branches")
    assert alone.code == 2
    assert "--layer-order free --objective latency" in alone.err
    parts = cli("plan", "pixel7a/alexnet-sparse", "--layer-order", "free", "--segments", "branches")
    assert parts.code == 2
    wrong = cli(
        "plan", "pixel7a/alexnet-sparse", "--layer-order", "free", "--objective", "latency",
        "--segments", "all",
    )  # fmt: skip
    assert wrong.code == 2
    assert "must be layers or branches" in wrong.err


def test_a_chain_has_one_task_as_branches() -> None:
    problem = gapless.load_problem("pixel7a/alexnet-sparse")
    layers, branches = (gapless.graphs.with_side_by_side(problem, segments=s) for s in ("layers", "branches"))
    assert tables_of(layers).task_count == len(problem.network.layers)
    assert tables_of(branches).task_count == 1
    assert (gapless.plan(layers).objective or 0) <= (gapless.plan(branches).objective or 0)
    with pytest.raises(InvalidInputError, match="about something else"):
        gapless.graphs.with_side_by_side(layers)
    with pytest.raises(InvalidInputError, match="one table"):
        gapless.graphs.with_side_by_side(gapless.load_problem("pixel7a/alexnet-sparse", costs="interpolated"))


def test_devices_send_over_their_links() -> None:
    problem = gapless.clusters.cluster_problem("squeezenet", "raspberry-pis", pipelines="one")
    found = gapless.graphs.with_side_by_side(problem)
    names = problem.platform.unit_names
    link = problem.data.linker(names)(names[0], names[1])
    tensor = found.network.tensors[3]
    assert found.data.transfer_us[3][0][1] == link.time_us(tensor.bytes)
    assert found.data.transfer_us[3][1][1] == 0
