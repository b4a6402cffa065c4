"""What is proved is said of the plans that were looked at: in the terminal, on pages, in JSON, in files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gapless.formulations.files import dump_problem
from gapless.solvers.samples import golden_instances

from ..conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"
ONCE = "plans with at most one chunk per unit"
ORDERED = "plans in which every request passes the units once, in the order cpu, npu"

ROOT = Path(__file__).parents[3]

SAMPLES = {
    "chunking": "transfer_cost",
    "cooperation": "groups_split_a_map",
    "flow_shop": "workload_slowdown",
    "jobs": "jobs_each_unit_has_its_order",
    "partition": "parts_follow_the_branches",
    "pipelines": "pipelines_side_by_side",
    "task_graph": "branches_side_by_side",
}
GOLDEN = {golden.name: golden.problem for golden in golden_instances()}


def flat(text: str) -> str:
    return " ".join(text.split())


def board(units: list[str], rows: dict[str, list[list[int | None]]]) -> str:
    """Return a workload of one request per network on units in this order, as a problem file."""
    return json.dumps(
        {
            "format": "gapless.problem",
            "version": 1,
            "platform": {"name": "board", "units": [{"name": unit} for unit in units]},
            "networks": [
                {"name": name, "layers": [{"name": f"{name}.{index}"} for index in range(len(times))]}
                for name, times in rows.items()
            ],
            "costs": {
                "units": units,
                "networks": [{"network": name, "layer_us": times} for name, times in rows.items()],
                "provenance": {"method": "table"},
            },
            "objective": {"terms": ["makespan"]},
            "workload": {"requests": [{"name": name, "network": name} for name in rows]},
        }
    )


@pytest.fixture
def backwards(tmp_path: Path) -> Path:
    """A network that runs on the NPU and then on the CPU, on a platform that lists the CPU first."""
    path = tmp_path / "backwards.json"
    path.write_text(
        board(["cpu", "npu"], {"detector": [[None, 3000], [10000, None]], "tracker": [[6000, 2000]]})
    )
    return path


def test_an_infeasible_workload_names_its_order_of_the_units(
    cli: Cli, backwards: Path, tmp_path: Path
) -> None:
    free = cli("plan", backwards, "--json").document
    assert (free["status"], free["objective"]) == ("optimal", 13000), "in any order, if none is asked for"
    run = cli("plan", backwards, "--passage", "ordered")
    assert run.code == 3
    assert f"INFEASIBLE proved: none keeps everything that is asked among {ORDERED}" in flat(run.out)
    assert "There is no such plan because of this alone" in run.out
    assert (
        "Another order of the units, or several passes, may have a plan (--passage once, --passage any)"
        in (flat(run.out))
    )
    assert cli("plan", backwards, "--passage", "once").code == 0
    compared = cli("compare", backwards, "--passage", "ordered", "--backends", "native,exhaustive")
    assert compared.code == 3
    assert f"2 backends prove that none is valid among {ORDERED}" in flat(compared.out)
    assert "Another order of the units" in compared.out
    other = tmp_path / "forwards.json"
    other.write_text(
        board(["npu", "cpu"], {"detector": [[3000, None], [None, 10000]], "tracker": [[2000, 6000]]})
    )
    document = cli("plan", other, "--passage", "ordered", "--json").document
    assert (document["status"], document["objective"]) == ("optimal", 13000)
    assert "in the order npu, cpu" in document["plan_class"]


@pytest.mark.slow
@pytest.mark.parametrize("formulation", SAMPLES)
def test_status_json_and_explanation_name_the_class(cli: Cli, tmp_path: Path, formulation: str) -> None:
    problem = GOLDEN[SAMPLES[formulation]]
    assert problem.formulation.name == formulation
    path, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    path.write_text(dump_problem(problem))
    passage = ("--passage", "once") if problem.data is None and problem.costs.knows_hops else ()
    run = cli("plan", path, *passage, "--out", plan)
    assert f"OPTIMAL proved: no valid one is better among {problem.plan_class} [" in flat(run.out)
    assert cli("plan", path, *passage, "--json").document["plan_class"] == problem.plan_class
    assert f"Looked among {problem.plan_class}, for" in flat(cli("explain", plan).out)
    assert cli("explain", plan, "--json").document["plan_class"] == problem.plan_class
    compared = cli("compare", path, *passage, "--backends", "native")
    assert f"Proved by native: the optimum among {problem.plan_class}." in flat(compared.out)
    assert cli("tools", "check", plan, "--json").document["plan_class"] == problem.plan_class


def test_an_answer_of_limits_names_the_class(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--max-period", "5ms")
    assert run.code == 3
    assert f"none keeps everything that is asked among {ONCE}" in flat(run.out)
    assert cli("plan", SPARSE, "--max-period", "5ms", "--json").document["plan_class"] == ONCE


@pytest.mark.slow
def test_a_comparison_with_and_without_its_class(cli: Cli, tmp_path: Path) -> None:
    answers, plan, page = tmp_path / "answers.json", tmp_path / "plan.json", tmp_path / "page.html"
    cli("plan", SPARSE, "--out", plan)
    cli("compare", SPARSE, "--backends", "native,exhaustive", "--out", answers)
    document: dict[str, Any] = json.loads(answers.read_text())
    assert [result.pop("plan_class") for result in document["results"]] == [ONCE, ONCE]
    answers.write_text(json.dumps(document))  # as older versions wrote it
    assert cli("report", plan, answers, "--out", page).code == 0
    words = flat(re.sub(r"<[^>]+>", "", page.read_text()))
    assert f"no valid one is better among {ONCE}" in words
    assert f"2 backends prove the same optimum among {ONCE}: native, exhaustive." in words
    assert f"Looked among {ONCE}, for " in words


def test_trade_offs_with_and_without_their_class(cli: Cli, tmp_path: Path) -> None:
    front, page = tmp_path / "front.json", tmp_path / "page.html"
    run = cli("plan", SPARSE, "--pareto", "period,units", "--out", front)
    assert f"trade-offs among {ONCE} [" in flat(run.out)
    document = json.loads(front.read_text())
    assert document.pop("plan_class") == ONCE
    front.write_text(json.dumps(document))  # as older versions wrote it
    assert cli("report", front, "--out", page).code == 0
    assert f"are all trade-offs among {ONCE} [" in flat(page.read_text())


def test_tables_of_many_plans_name_the_classes(cli: Cli, tmp_path: Path) -> None:
    spec, out = tmp_path / "boards.json", tmp_path / "out"
    spec.write_text(
        json.dumps(
            {
                "format": "gapless.sweep",
                "version": 1,
                "models": ["octree"],
                "platforms": ["pixel7a", "oneplus11"],
            }
        )
    )
    run = cli("sweep", spec, "--out", out, "--jobs", "1")
    assert run.code == 0
    assert f"Proofs and bounds are among {ONCE}." in flat(run.out)
    assert (out / "sweep.csv").read_text().count(ONCE) == 2
    assert f"Proofs and bounds are among {ONCE}." in flat((out / "sweep.html").read_text())


def test_no_page_speaks_of_all_plans() -> None:
    """What is proved holds for a class of plans, so no text says that no plan at all is better."""
    claims = re.compile(
        r"no plan (is|was) better|no plan at all (takes|reaches)|no plan can (beat|be)|best possible",
        re.IGNORECASE,
    )
    places = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "gapless" / "view").rglob("*.html"),
    ]
    places += [path for room in ("cli", "view", "api") for path in (ROOT / "gapless" / room).rglob("*.py")]
    others = {"hetero2pipe-recomputed.md", "faq.md"}
    found = [path for path in places if path.name not in others and claims.search(flat(path.read_text()))]
    assert found == []
