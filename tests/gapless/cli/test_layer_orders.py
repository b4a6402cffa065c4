"""Orders of the layers on the command line: inspected, planned, compared, run; plans keep their order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gapless
from gapless.api.layer_orders import with_layer_order
from gapless.formulations.files import dump_problem
from gapless.formulations.reordering import order_words
from tests.branch_instances import chain_problem, random_network
from tests.executor.pipeline.test_orders import two_branches

from ..conftest import Cli


@pytest.fixture
def branched(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    path.write_text(dump_problem(chain_problem(random_network(3, layers=9), 3)))
    return path


@pytest.mark.slow
def test_a_plan_keeps_the_order_that_was_chosen(cli: Cli, branched: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    found = cli("plan", branched, "--layer-order", "best", "--out", plan)
    assert found.code == 0
    order = json.loads(plan.read_text())["asked"]["layer_order"]
    assert f"the layers are in the order {order}" in found.err
    assert sorted(order_words(range(9))) != sorted(order)
    checked = cli("tools", "check", plan)
    assert checked.out.startswith("VALID")
    assert "has changed" not in checked.err
    assert "makespan" in cli("simulate", plan).out
    assert cli("explain", plan).code == 0
    page = tmp_path / "page.html"
    assert cli("report", plan, "--out", page, "--backends", "none").code == 0
    assert f"9 layers; in the order {order}" in page.read_text()
    again = cli("plan", branched, "--layer-order", order, "--json").document
    assert again["candidates"][0]["plan"]["chunks"] == json.loads(plan.read_text())["chunks"]


def test_a_plan_takes_its_order_to_another_problem(cli: Cli, branched: Path, tmp_path: Path) -> None:
    plan, other = tmp_path / "plan.json", tmp_path / "other.json"
    cli("plan", branched, "--layer-order", "best", "--out", plan)
    problem = chain_problem(random_network(3, layers=9), 4)
    other.write_text(dump_problem(problem))
    moved = with_layer_order(problem, json.loads(plan.read_text())["asked"]["layer_order"])
    period = gapless.score(moved, gapless.load_plan(plan)).value("period")
    document = cli("tools", "check", other, plan, "--json").document
    assert document["score"]["period_us"] == period
    small = tmp_path / "small.json"
    small.write_text(dump_problem(chain_problem(random_network(3, layers=5), 3)))
    refused = cli("tools", "check", small, plan)
    assert refused.code == 2
    assert "each of the layers 0 to 4" in refused.err


def test_a_chain_stays_as_it_is(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    found = cli("plan", "pixel7a/alexnet-sparse", "--layer-order", "best", "--out", plan)
    assert "no better order of the layers was found" in found.err
    assert json.loads(plan.read_text())["asked"]["layer_order"] == "fixed"


@pytest.mark.slow
def test_other_objectives_and_replicas_go_with_it(cli: Cli, branched: Path) -> None:
    for more in (("--objective", "latency"), ("--pipelines", "many"), ("--top", "3"), ("--max-units", "2")):
        assert cli("plan", branched, "--layer-order", "best", *more).code == 0
    refused = cli("plan", branched, "--layer-order", "1,0,2-8")
    assert refused.code == 2
    assert "before layer 0" in refused.err


@pytest.mark.slow
def test_orders_are_compared_side_by_side(cli: Cli, branched: Path, tmp_path: Path) -> None:
    out = tmp_path / "orders.json"
    found = cli("compare", branched, "--layer-orders", "all", "--out", out)
    assert found.code == 0
    assert "down-sets" in found.out
    for words in ("best against fixed", "free against fixed", "as chunks", "as parts"):
        assert words in found.out
    document = json.loads(out.read_text())
    assert document["format"] == "gapless.layer_orders"
    fixed, best, free = document["orders"]
    assert [one["result"]["gap"] for one in (fixed, best, free)] == [0, 0, 0]
    assert best["period_as_chunks_us"] == best["result"]["objective"] <= fixed["period_as_chunks_us"]
    assert free["period_as_parts_us"] == free["result"]["objective"]
    assert document["branching"]["width"] > 1
    one = cli("compare", branched, "--layer-orders", "best", "--backend", "exhaustive", "--json").document
    assert one["orders"][0]["result"]["backend"] == "exhaustive"
    assert one["orders"][0]["result"]["objective"] == best["result"]["objective"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--layer-orders", "fixed,other"), "'other' is no order of layers"),
        (("--layer-orders", "all", "--backends", "native"), "leave --backends away"),
        (("--layer-orders", "all", "--layer-order", "best"), "leave --layer-order away"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    cli: Cli, branched: Path, words: tuple[str, ...], message: str
) -> None:
    refused = cli("compare", branched, *words)
    assert refused.code == 2
    assert message in refused.err


@pytest.mark.slow
def test_inspect_shows_branches(cli: Cli, tmp_path: Path) -> None:
    two_branches(tmp_path)
    model = tmp_path / "branches.onnx"
    found = cli("tools", "inspect", model, "--granularity", "operator")
    assert "graph: up to 2 layers side by side, 2 branches of at most 2 layers" in found.out
    document = cli("tools", "inspect", model, "--granularity", "operator", "--json").document
    assert document["branching"] == {
        "width": 2,
        "branches": 2,
        "longest_branch": 2,
        "down_sets": 1 + 3 * 3 + 2,
        "counted_to": 100_000,
    }
    functions = cli("tools", "inspect", "octree")
    assert "graph: a chain: its layers have one order" in functions.out


@pytest.mark.slow
def test_parts_over_devices_are_not_run_here(cli: Cli, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    asked = ("--platform", "raspberry-pis", "--layer-order", "free")
    assert cli("plan", "squeezenet", *asked, "--out", plan).code == 0
    for command in ("run", "tools trace"):
        refused = cli(command, plan)
        assert refused.code == 2
        assert "the plan is for several devices (links)" in refused.err
        assert "--local" in refused.err
    assert "makespan" in cli("simulate", plan).out


@pytest.mark.measures
@pytest.mark.slow
def test_a_network_is_tuned_and_run_in_another_order(cli: Cli, tmp_path: Path) -> None:
    loaded = two_branches(tmp_path)
    order = order_words([loaded.layer_of(name) or 0 for name in ("s", "b1", "a1", "b2", "a2", "sum", "y")])
    out = tmp_path / "out"
    tuned = cli(
        *("tune", tmp_path / "branches.onnx", "--granularity", "operator", "--layer-order", order),
        *("--engine", "mnn", "--units", "core0,core1", "--top", "2", "--budget", "1s", "--out", out),
    )
    assert tuned.code == 0
    problem = json.loads((out / "problem.json").read_text())
    (network,) = problem["networks"]
    assert order_words(network["order"]) == order
    assert "numbers agree with the uncut model" in cli("run", out, "--seconds", "200ms").err
    assert cli("report", out, "--out", tmp_path / "page.html", "--backends", "none").code == 0
    wrong = cli("tune", tmp_path / "branches.onnx", "--layer-order", "0,0", "--out", tmp_path / "other")
    assert wrong.code == 2
    assert "once" in wrong.err
