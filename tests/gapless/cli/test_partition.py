"""Convex parts on the command line: from a file of device placement, and with a free order of layers."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError

from ...profiler.test_placement_files import write
from ..conftest import Cli


@pytest.mark.slow
def test_a_graph_is_planned_checked_explained_and_reported(cli: Cli, tmp_path: Path) -> None:
    graph, plan, page = write(tmp_path), tmp_path / "plan.json", tmp_path / "page.html"
    found = cli("plan", graph, "--out", plan)
    assert found.code == 0
    assert "OPTIMAL" in found.out
    assert "accelerator1 sets the pace: 140.000 ms, 14.3 % of it transfers." in found.out
    assert cli("tools", "check", plan).out.startswith("VALID")
    assert "accelerator" in cli("explain", plan).out
    assert cli("report", plan, "--out", page, "--backends", "none").code == 0
    text = page.read_text()
    assert "Layers by part" in text
    assert text.count("<circle") == 5 + 3
    assert "node 1 on accelerator" in text
    document = cli("plan", graph, "--json").document
    assert document["candidates"][0]["score"]["period_us"] == 140_000


@pytest.mark.slow
def test_backends_agree(cli: Cli, tmp_path: Path) -> None:
    document = cli("compare", write(tmp_path), "--json").document
    assert [result["backend"] for result in document["results"]] == ["native", "cpsat", "z3", "pulp"]
    assert {result["objective"] for result in document["results"]} == {140_000}
    assert document["disagreements"] == []


def test_layer_order_free(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    found = cli("plan", "pixel7a/alexnet-sparse", "--layer-order", "free", "--out", plan)
    assert found.code == 0
    assert "parts" in found.out
    assert cli("tools", "check", plan).out.startswith("VALID")
    fixed = cli("plan", "pixel7a/alexnet-sparse", "--layer-order", "fixed")
    assert "bubbles" in fixed.out or "gapness" in fixed.out
    wrong = cli("plan", "pixel7a/alexnet-sparse", "--layer-order", "other")
    assert wrong.code == 2
    assert "must be fixed, best, free" in wrong.err
    both = cli("plan", "pixel7a/alexnet-sparse", "--layer-order", "free", "--pipelines", "many")
    assert both.code == 2


def test_with_parts_takes_one_network_and_one_table() -> None:
    problem = gapless.load_problem("pixel7a/alexnet-sparse")
    parts = gapless.graphs.with_parts(problem)
    assert parts.network == problem.network
    # A chain has one order: parts are chunks, and what nobody pays for costs nothing.
    assert gapless.plan(parts).objective == gapless.plan(problem, objective="period").objective
    with pytest.raises(InvalidInputError, match="one table"):
        gapless.graphs.with_parts(gapless.load_problem("pixel7a/alexnet-sparse", costs="interpolated"))
    with pytest.raises(InvalidInputError, match="about something else"):
        gapless.graphs.with_parts(parts)


def test_a_cluster_with_a_free_order_sends_over_its_slowest_links() -> None:
    problem = gapless.clusters.cluster_problem("squeezenet", "raspberry-pis", pipelines="one")
    parts = gapless.graphs.with_parts(problem)
    speeds = {link.bytes_per_second for link in problem.data.links}
    tensor, row = parts.network.tensors[0], parts.data.tensor_us[0]
    assert row[0] == round(tensor.bytes * 1e6 / min(speeds))


def test_a_training_graph_is_not_run(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    assert cli("plan", write(tmp_path), "--out", plan).code == 0
    assert cli("tools", "check", plan).out.startswith("VALID")
    for command in ("simulate", "run"):
        refused = cli(command, plan)
        assert refused.code == 2
        assert "backward layers" in refused.err


@pytest.mark.slow
def test_parts_are_simulated_and_reported(cli: Cli, tmp_path: Path) -> None:
    plan, page = tmp_path / "plan.json", tmp_path / "page.html"
    problem = "pixel7a/alexnet-sparse"
    assert cli("plan", problem, "--layer-order", "free", "--out", plan).code == 0
    assert "makespan" in cli("simulate", plan).out
    assert cli("report", plan, "--out", page, "--backends", "none").code == 0


@pytest.mark.slow
def test_a_free_order_is_of_single_pipelines(cli: Cli, tmp_path: Path) -> None:
    given = ("tune", "squeezenet", "--layer-order", "free", "--out", tmp_path / "out")
    for option in (("--rounds", "2"), ("--pipelines", "2")):
        refused = cli(*given, *option)
        assert refused.code == 2
        assert "one order of the layers" in refused.err
    wrong = cli("tune", "squeezenet", "--layer-order", "other", "--out", tmp_path / "out")
    assert wrong.code == 2
    assert "must be fixed, best, free" in wrong.err
