"""Layers side by side at the command line, and from other problems."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.task_graph.tables import tables_of

from ..conftest import Cli


def test_plan_check_and_report(cli: Cli, tmp_path: Path) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    asked = ("pixel7a/alexnet-sparse", "--layer-order", "free", "--objective", "latency")
    found = cli("plan", *asked, "--out", plan)
    assert found.code == 0
    assert "longest path" in found.out
    assert cli("check", plan).out.startswith("VALID")
    assert cli("report", plan, "--out", page).code == 0
    assert "longest path" in page.read_text()
    merged = cli("plan", *asked, "--segments", "branches")
    assert merged.code == 0
    simulated = cli("simulate", plan)
    assert simulated.code == 2
    assert "not run or simulated" in simulated.err


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
    layers, branches = (gapless.with_side_by_side(problem, segments=s) for s in ("layers", "branches"))
    assert tables_of(layers).task_count == len(problem.network.layers)
    assert tables_of(branches).task_count == 1
    assert (gapless.plan(layers).objective or 0) <= (gapless.plan(branches).objective or 0)
    with pytest.raises(InvalidInputError, match="about something else"):
        gapless.with_side_by_side(layers)
    with pytest.raises(InvalidInputError, match="one table"):
        gapless.with_side_by_side(gapless.load_problem("pixel7a/alexnet-sparse", costs="interpolated"))


def test_devices_send_over_their_links() -> None:
    problem = gapless.cluster_problem("squeezenet", "raspberry-pis", pipelines="one")
    found = gapless.with_side_by_side(problem)
    names = problem.platform.unit_names
    link = problem.data.linker(names)(names[0], names[1])
    tensor = found.network.tensors[3]
    assert found.data.transfer_us[3][0][1] == link.time_us(tensor.bytes)
    assert found.data.transfer_us[3][1][1] == 0
