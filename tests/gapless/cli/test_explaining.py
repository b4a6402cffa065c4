"""`gapless explain`: on the terminal, as a document, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.answers.explaining import MOST_ROWS
from gapless.api.problems import table_problem
from gapless.cli.base.exits import ExitCode
from gapless.formulations.files import dump_plan, dump_problem
from gapless.formulations.plan import Chunk, Plan
from gapless.formulations.problem import Problem
from tests.workload_instances import workload_problem

from ..conftest import Cli

NAME = "pixel7a/alexnet-sparse"

pytestmark = pytest.mark.usefixtures("counted_time")


def test_a_plan_explains_itself(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert cli("plan", NAME, "--out", path).code == ExitCode.OK
    run = cli("explain", path)
    assert run.code == ExitCode.OK
    assert "Little sets the pace with 7.648 ms" in run.out
    assert "after 3 (pool2)  GPU | Little" in run.out
    assert "Medium  yes   -           period 11.953 ms (+56.3 %)   0-3 GPU | 4-8 Big" in run.out
    assert (
        "Next best plan: period 7.862 ms (+2.8 %)  [0-0 Medium | 1-3 GPU | 4-4 Little | 5-8 Big]" in run.out
    )
    assert "Demands" not in run.out, "nothing was demanded"


def test_the_document_holds_all_of_it(cli: Cli, tmp_path: Path) -> None:
    path, out = tmp_path / "plan.json", tmp_path / "why.json"
    rules = tmp_path / "rules.py"
    rules.write_text("def no_gpu(view):\n    return ~view.uses('GPU')\n")
    assert cli("plan", NAME, "--rules", rules, "--out", path).code == ExitCode.OK
    run = cli("explain", NAME, path, "--rules", rules, "--max-units", "3", "--json", "--out", out)
    assert run.code == ExitCode.OK
    assert run.err.strip() == f"wrote {out}"
    assert run.out == out.read_text()
    document = run.document
    assert document["format"] == "gapless.explanation"
    assert document["terms"] == ["period", "gapness"]
    gpu = document["units"][3]
    assert (gpu["unit"], gpu["used"], gpu["otherwise"]["plan"]) == ("GPU", False, None)
    assert gpu["otherwise"]["reason"] == "contradicts: the rule 'no_gpu' holds"
    binds = {entry["name"]: entry["binds"] for entry in document["bindings"]}
    assert binds == {"no_gpu": True, "max_units": False}
    assert document["bindings"][0]["without"]["values"] == [8931, 3706]


def test_demands_and_rivals_are_shown(cli: Cli, tmp_path: Path) -> None:
    problem = table_problem({"conv": [9, 2], "fc": [1, None]}, ["cpu", "gpu"], network="net")
    problem = problem.with_limits(max_units=1)
    path, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    path.write_text(dump_problem(problem))
    plan.write_text(dump_plan(Plan(chunks=(Chunk(network="net", start=0, stop=2, unit="cpu"),)), problem))
    run = cli("explain", path, plan)
    assert run.code == ExitCode.OK
    assert "max_units: at most 1 units are used  yes    period 2.000 ms (-80.0 %)" in run.out
    assert "gpu   no    1 layer: fc  contradicts: at most 1 units are used" in run.out
    assert "Next best plan: there is no other valid one" in run.out


def test_a_workload_is_explained(cli: Cli, tmp_path: Path) -> None:
    problem = workload_problem(
        {"a": [[10_000, 20_000], [30_000, 20_000]], "b": [[5_000, 9_000], [None, 9_000]]},
        ["a", "b"],
        slowdown=[[0, 100], [200, 0]],
    )
    path, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    path.write_text(dump_problem(problem))
    assert cli("plan", path, "--out", plan).code == ExitCode.OK
    run = cli("explain", path, plan)
    assert run.code == ExitCode.OK
    assert " ends last, at " in run.out
    assert "a0 after 0 (l0)  npu | big" in run.out
    assert "npu   yes   1 layer: l1" in run.out


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (((0, 5, "GPU"), (4, 9, "GPU")), "coverage: layers 4 to 4 are covered twice"),
        (((0, 9, "NPU"),), "names: chunk [0, 9) on 'NPU': no such unit"),
    ],
)
def test_a_broken_plan_is_bad_input(
    cli: Cli, plan_file: Callable[..., Path], parts: tuple[tuple[int, int, str], ...], text: str
) -> None:
    run = cli("explain", NAME, plan_file(*parts))
    assert run.code == ExitCode.USAGE
    assert "nothing to explain" in run.err
    assert text in run.err


def test_a_time_limit_of_nothing_is_bad_input(cli: Cli, plan_file: Callable[..., Path]) -> None:
    run = cli("explain", NAME, plan_file((0, 9, "GPU")), "--time-limit", "0")
    assert run.code == ExitCode.USAGE
    assert "--time-limit is '0', must be at least 1us" in run.err


def test_long_explanations_are_cut_short(cli: Cli, tmp_path: Path) -> None:
    problem = _many_units()
    path, plan = tmp_path / "problem.json", tmp_path / "plan.json"
    path.write_text(dump_problem(problem))
    whole = Plan(chunks=(Chunk(network="net", start=0, stop=2, unit="u0"),))
    plan.write_text(dump_plan(whole, problem))
    run = cli("explain", path, plan)
    assert f"... and {len(problem.platform.units) - MOST_ROWS} more (--json shows all)" in run.out


def _many_units() -> Problem:
    names = [f"u{index}" for index in range(MOST_ROWS + 5)]
    return table_problem([[1] * len(names), [1, *[None] * (len(names) - 1)]], names, network="net")
