"""Which passage one network has if none is given: `any` where it is known what a hop costs, else `once`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import gapless
from gapless.formulations.costs import CostTable, Provenance
from gapless.formulations.files import load_problem
from gapless.formulations.problem import Problem
from tests.executor.graph.models import load, residual

from ..conftest import Cli

BACK = "0-0 npu | 1-1 cpu | 2-2 npu"
"""Loads: npu 1 + 1 ms and a hop back of 200 us, cpu 2 ms and a hop; with one chunk per unit 10 ms."""
ANY, ONCE = "plans with any number of chunks per unit", "plans with at most one chunk per unit"
CHOSEN = "units may have several chunks, as what a hop costs is known; --passage once allows one"
NOT_CHOSEN = "what a hop costs is known, but units have one chunk each (--passage once)"


def problem(hop_us: int = 200, provenance: Provenance = Provenance()) -> Problem:
    found = gapless.table_problem({"a": [1, 9], "b": [9, 2], "c": [1, 9]}, ["npu", "cpu"])
    (costs,) = found.costs.networks
    rows = ((0, 0), (hop_us, hop_us), (hop_us, hop_us), (0, 0))
    table = CostTable(
        units=found.costs.units, networks=(replace(costs, transfer_in_us=rows),), provenance=provenance
    )
    return found.with_costs(table)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with hops of 200 us that somebody wrote."""
    gapless.save(problem(), tmp_path / "problem.json")
    return tmp_path / "problem.json"


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (problem(), True),
        (problem(hop_us=0), False),
        (problem(provenance=Provenance(hops=True)), True),
        (problem(hop_us=0, provenance=Provenance(device="a board", hops=True)), True),
        (problem(provenance=Provenance(device="a board")), False),  # a profile without trials: copies only
        (problem(provenance=Provenance(estimated=True)), False),
    ],
)
def test_costs_of_hops_are_known_where_they_are_measured_or_given(given: Problem, known: bool) -> None:
    assert given.costs.knows_hops == known
    free = gapless.requests.with_free_passage(given)
    assert free == (gapless.with_passage(given) if known else given)


def test_copies_at_the_ends_are_no_hops() -> None:
    found = problem(hop_us=0)
    (costs,) = found.costs.networks
    rows = ((5, 5), (0, 0), (0, 0), (5, 5))
    ends = replace(found.costs, networks=(replace(costs, transfer_in_us=rows, transfer_out_us=rows),))
    assert not ends.knows_hops


def test_plans_come_back_where_hops_are_known_and_say_what_one_chunk_per_unit_brings(
    cli: Cli, table: Path
) -> None:
    found = cli("plan", table)
    assert found.code == 0
    assert BACK in found.out
    assert f"among {ANY}" in words(found.out)
    assert "--passage once: period 10.000 ms, 355 % more" in found.out
    assert CHOSEN in words(found.err)
    document = cli("plan", table, "--json").document
    assert document["plan_class"] == ANY


def test_nothing_is_said_of_what_was_asked_for(cli: Cli, table: Path) -> None:
    asked = cli("plan", table, "--passage", "any")
    assert BACK in asked.out
    assert "--passage once" not in asked.out + asked.err
    once = cli("plan", table, "--passage", "once")
    assert f"among {ONCE}" in words(once.out)
    assert "--passage any: period 2.200 ms, 78 % less" in once.out
    assert "what a hop costs is known" not in once.err


def test_nothing_is_said_of_what_the_file_says(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    gapless.save(gapless.with_passage(problem()), path)
    own = cli("plan", path)
    assert BACK in own.out
    assert "--passage once" not in own.out + own.err


def test_where_nothing_is_left_to_gain_no_percentage_is_told(cli: Cli, table: Path) -> None:
    found = cli("plan", table, "--objective", "gapness")
    assert found.code == 0
    assert BACK in found.out
    assert "--passage once:" not in found.out


def test_tables_without_hops_have_one_chunk_per_unit(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "free.json"
    gapless.save(problem(hop_us=0), path)
    for name in (path, "pixel7a/alexnet-sparse"):
        found = cli("plan", name, "--out", tmp_path / "plan.json")
        assert f"among {ONCE}" in words(found.out)
        assert "--passage any: period" in found.out
        assert "what a hop costs" not in found.err
        assert "passage" not in json.loads((tmp_path / "plan.json").read_text())["asked"]


def test_backends_are_compared_on_plans_that_come_back(cli: Cli, table: Path) -> None:
    found = cli("compare", table, "--backends", "native,fallback")
    assert CHOSEN in words(found.err)
    assert f"among {ANY}" in words(found.out)
    assert "fallback" in found.out


SHARES = f"{Path(__file__).parents[3] / 'docs/examples/shares_backend.py'}:SharesBackend"
"""A heuristic that knows one chunk per unit, and no other plans."""


@pytest.mark.parametrize(
    "command", [("plan", "--backend"), ("compare", "--backends"), ("compare", "--backend")]
)
def test_a_backend_that_knows_one_chunk_per_unit_decides(
    cli: Cli, table: Path, command: tuple[str, str]
) -> None:
    found = cli(command[0], table, command[1], SHARES)
    assert found.code == 0
    assert f"{NOT_CHOSEN}: shares can plan no others" in words(found.err)
    assert CHOSEN not in words(found.err)
    assert ANY not in words(found.out)
    assert cli("plan", table, "--passage", "any", "--backend", SHARES).code == 2


def test_what_needs_one_chunk_per_unit_is_said(cli: Cli, table: Path, tmp_path: Path) -> None:
    gap = cli("plan", table, "--objective", "paper")
    assert f"{NOT_CHOSEN}: the gapness of the paper is that of one chunk per unit" in words(gap.err)
    assert f"among {ONCE}" in words(gap.out)
    pipelines = cli("plan", table, "--pipelines", "many", "--out", tmp_path / "plan.json")
    assert pipelines.code == 0
    assert f"{NOT_CHOSEN}: --pipelines has no other plans" in words(pipelines.err)
    assert "passage" not in json.loads((tmp_path / "plan.json").read_text())["asked"]


def test_a_rule_that_breaks_with_several_chunks_brings_one_per_unit(
    cli: Cli, table: Path, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text("def one_on_the_npu(view):\n    return view.chunks('npu') <= 1\n")
    assert CHOSEN in words(cli("plan", table, "--rules", rules).err)
    rules.write_text(
        "def first(view):\n"
        "    if hasattr(view, 'resources_used'):\n"
        "        raise ValueError('about one chunk per unit')\n"
        "    return view.on('a', 'npu')\n"
    )
    found = cli("plan", table, "--rules", rules)
    assert found.code == 0
    assert NOT_CHOSEN in words(found.err)
    assert "about one chunk per unit" in words(found.err)
    rules.write_text("def wrong(view):\n    return view.nothing()\n")
    assert cli("plan", table, "--rules", rules).code == 2  # in neither class


def test_orders_of_the_layers_are_of_one_chunk_per_unit(cli: Cli, tmp_path: Path) -> None:
    model = load(residual(2), tmp_path, name="net")
    layers = len(model.network.layers)
    found = gapless.table_problem([[1.0, 2.0]] * layers, ["npu", "cpu"], network="net")
    (costs,) = found.costs.networks
    costs = replace(costs, transfer_in_us=((9, 9),) * (layers + 1))
    table = replace(found.costs, networks=(costs,))
    path = tmp_path / "branches.json"
    gapless.save(replace(found, networks=(model.network,), costs=table), path)
    compared = cli("compare", path, "--layer-orders", "fixed,best")
    assert compared.code == 0
    assert f"{NOT_CHOSEN}: --layer-orders compares plans of that kind" in words(compared.err)
    free = cli("plan", path, "--layer-order", "free", "--time-limit", "500ms")
    assert free.code == 0
    assert f"{NOT_CHOSEN}: --layer-order has no other plans" in words(free.err)


def test_a_plan_is_held_against_what_it_was_made_for(cli: Cli, table: Path, tmp_path: Path) -> None:
    path, once = tmp_path / "plan.json", tmp_path / "once.json"
    assert cli("plan", table, "--out", path).code == 0
    assert json.loads(path.read_text())["asked"]["passage"] == "any"
    assert cli("plan", table, "--passage", "once", "--out", once).code == 0
    for files in ((path,), (table, path), (once,), (table, once)):
        checked = cli("tools", "check", *files)
        assert checked.code == 0, files
        assert checked.out.startswith("VALID")
        assert "what a hop costs" not in checked.err
    assert cli("tools", "check", table, path, "--passage", "once").code == 6
    free = tmp_path / "free.json"
    gapless.save(problem(hop_us=0), free)
    assert cli("tools", "check", free, path).code == 6  # that problem allows one chunk per unit


def test_plan_files_without_a_passage_are_about_one_chunk_per_unit(
    cli: Cli, table: Path, tmp_path: Path
) -> None:
    path = tmp_path / "old.json"
    assert cli("plan", table, "--passage", "once", "--out", path).code == 0
    data = json.loads(path.read_text())
    del data["asked"]["passage"]
    path.write_text(json.dumps(data))
    assert f"among {ONCE}" in words(cli("plan", path).out)
    assert cli("tools", "check", path).out.startswith("VALID")


def test_a_folder_of_a_profile_stands_for_its_problem(cli: Cli, table: Path, tmp_path: Path) -> None:
    found = cli("plan", tmp_path)
    assert BACK in found.out
    assert f"{table} is taken" in words(found.err)
    assert CHOSEN in words(found.err)


def test_old_problem_files_are_read_and_new_ones_written(table: Path) -> None:
    assert load_problem(table) == problem()
    assert "hops" not in table.read_text()  # what was not measured is not written
    told = problem(provenance=Provenance(device="a board", hops=True))
    gapless.save(told, table)
    assert load_problem(table) == told
    assert json.loads(table.read_text())["costs"]["provenance"]["hops"] is True


@pytest.mark.slow
@pytest.mark.measures
def test_a_profile_is_planned_and_run_with_its_hops(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither core can run everything, and no plan has one chunk per unit: only `any` has plans at all."""
    monkeypatch.chdir(tmp_path)
    load(residual(2), tmp_path, name="net")
    board = gapless.this_device(engine="onnxruntime", units=("core0", "core1"))
    lacks = (("Sigmoid",), ("Relu",))
    units = (replace(unit, unsupported=own) for unit, own in zip(board.units, lacks, strict=True))
    gapless.save(replace(board, units=tuple(units)), "board.json")
    assert cli("profile", "model.onnx", "--device", "board.json", "--out", "mine").code == 0
    table = load_problem("mine/problem.json").costs
    assert table.provenance.hops
    planned = cli("plan", "mine/problem.json", "--out", "plan.json")
    assert planned.code == 0, planned.err
    assert CHOSEN in words(planned.err)
    assert cli("plan", "mine/problem.json", "--passage", "once").code == 3
    for command in (("tools check",), ("simulate",), ("show",), ("explain",)):
        assert cli(*command, "plan.json").code == 0, command
        assert cli(*command, "mine/problem.json", "plan.json").code == 0, command
    ran = cli("run", "mine/problem.json", "plan.json", "--seconds", "100ms", "--json")
    assert ran.code == 0, ran.err
    assert len(json.loads(Path("plan.json").read_text())["chunks"]) >= 4
    assert cli("report", "plan.json", "--out", "page.html", "--backends", "none").code == 0
    assert "chunks on core" in Path("page.html").read_text()
