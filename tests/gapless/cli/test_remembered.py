"""What a plan file remembers of its problem: name, objective, limits and rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gapless.api.planning import plan as planned
from gapless.api.problems import load_problem, table_problem
from gapless.cli.base.exits import ExitCode
from gapless.files.plans import remembered_problem
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_plan, dump_problem, load_planned
from gapless.formulations.plan import Plan
from gapless.formulations.problem import Problem
from gapless.rules import pin
from gapless.solvers.exhaustive import all_plans

from ..conftest import Cli

NAME = "pixel7a/alexnet-sparse"
WITHOUT_LITTLE = "def no_little(view):\n    return ~view.uses('Little')\n"
SHORT = """
from gapless import OpaqueRule
short = OpaqueRule(name="short", predicate=lambda plan: len(plan.chunks) < 4)
"""


def ruled_plan(cli: Cli, folder: Path, rules: str) -> tuple[Path, Path]:
    """Plan with a rules file; return the plan and the rules file."""
    path, file = folder / "plan.json", folder / "rules.py"
    file.write_text(rules)
    assert cli("plan", NAME, "--rules", file, "--max-units", "3", "--out", path).code == ExitCode.OK
    return path, file


def broken(problem: Problem, folder: Path) -> Path:
    """Write a plan for a problem that breaks its rule; the file remembers both."""
    plan = next(p for p in all_plans(problem) if any(chunk.unit == "gpu" for chunk in p.chunks))
    (folder / "problem.json").write_text(dump_problem(replaced(problem)))
    path = folder / "plan.json"
    path.write_text(dump_plan(plan, problem, {"problem": str(folder / "problem.json")}))
    return path


def replaced(problem: Problem) -> Problem:
    """Return a problem without its rules."""
    return Problem(platform=problem.platform, networks=problem.networks, costs=problem.costs)


def test_rules_are_remembered(cli: Cli, tmp_path: Path) -> None:
    path, file = ruled_plan(cli, tmp_path, WITHOUT_LITTLE)
    file.unlink()
    origin = load_planned(path)[1]
    assert [rule.name for rule in origin.rules] == ["no_little"]
    assert remembered_problem(origin).fingerprint == origin.fingerprint, "the very same problem"
    found = cli("explain", path, "--json")
    assert (found.code, found.err) == (ExitCode.OK, "")
    assert [one["name"] for one in found.document["bindings"]] == ["no_little", "max_units"]


def test_a_remembered_rule_is_checked(cli: Cli, tmp_path: Path) -> None:
    problem = table_problem([[3, 2], [1, 4]], ["cpu", "gpu"]).with_rules(
        pin(0, unit="cpu"), pin(1, unit="cpu")
    )
    path = broken(problem, tmp_path)
    run = cli("tools", "check", path)
    assert run.code == ExitCode.VERIFICATION
    assert "layer 1 runs on 'cpu'" in run.out
    report = cli("report", path, "--out", tmp_path / "report.html", "--backends", "none")
    assert report.code == ExitCode.USAGE
    assert "layer 1 runs on 'cpu'" in report.err


def test_other_rules_take_the_place_of_remembered_ones(cli: Cli, tmp_path: Path) -> None:
    path, file = ruled_plan(cli, tmp_path, WITHOUT_LITTLE)
    file.write_text("def no_gpu(view):\n    return ~view.uses('GPU')\n")
    run = cli("tools", "check", path, "--rules", file)
    assert run.code == ExitCode.VERIFICATION
    assert "no_gpu" in run.out
    assert "no_little" not in run.out


def test_opaque_rules_are_named(cli: Cli, tmp_path: Path) -> None:
    path, file = ruled_plan(cli, tmp_path, WITHOUT_LITTLE + SHORT)
    note = "opaque rules, which no file can keep: 'short'; add them with --rules"
    page = tmp_path / "report.html"
    for words in (
        ["tools check", path],
        ["show", path],
        ["report", path, "--out", page, "--backends", "none"],
    ):
        run = cli(*words)
        assert run.code == ExitCode.OK
        assert note in run.err
    assert note not in cli("tools", "check", path, "--rules", file).err


@pytest.mark.parametrize("options", [[], ["--objective", "latency"]])
def test_a_problem_that_has_changed_is_told(cli: Cli, tmp_path: Path, options: list[str]) -> None:
    problem = table_problem([[3, 2], [1, 4]], ["cpu", "gpu"])
    place, path = tmp_path / "problem.json", tmp_path / "plan.json"
    best = planned(problem).plan
    assert isinstance(best, Plan)
    place.write_text(dump_problem(problem))
    path.write_text(dump_plan(best, problem, {"problem": str(place)}))
    assert cli("tools", "check", path, *options).err == ""
    place.write_text(dump_problem(table_problem([[3, 2], [1, 5]], ["cpu", "gpu"])))
    assert ("the problem has changed since" in cli("tools", "check", path, *options).err) == (not options)


def test_rules_that_do_not_fit_any_more(cli: Cli, tmp_path: Path) -> None:
    path, _ = ruled_plan(cli, tmp_path, WITHOUT_LITTLE)
    tree = json.loads(path.read_bytes())
    tree["rules"][0]["expr"] = ["var", "on", 99, 0]
    path.write_text(json.dumps(tree))
    run = cli("tools", "check", path)
    assert run.code == ExitCode.USAGE
    assert "give its rules again with --rules" in run.err
    assert "no_little" in run.err
    with pytest.raises(InvalidInputError, match="has changed since the plan was made"):
        remembered_problem(load_planned(path)[1])


def test_rules_of_the_problem_itself_stay_one(tmp_path: Path) -> None:
    problem = load_problem(NAME).with_rules(pin(0, unit="GPU"))
    best = planned(problem).plan
    assert best is not None
    (tmp_path / "problem.json").write_text(dump_problem(problem))
    path = tmp_path / "plan.json"
    path.write_text(dump_plan(best, problem, {"problem": str(tmp_path / "problem.json")}))
    assert remembered_problem(load_planned(path)[1]) == problem
