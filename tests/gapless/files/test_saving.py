"""Values of Python as files: what is written is what the commands read."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.files.plans import named_plan, problem_of_plan
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import PLATFORM, load
from gapless.formulations.json_files import format_of

from ..conftest import Cli

NAME = "pixel7a/alexnet-sparse"


def test_all_plans_of_an_answer_know_their_problem(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "plans.json"
    result = gapless.plan(NAME, top=3, objective="latency")
    gapless.save(result, path, problem=NAME)
    assert gapless.load_plans(path) == tuple(candidate.plan for candidate in result.candidates)
    assert problem_of_plan(named_plan(path))[0].objective == result.asked
    assert cli("tools", "check", path).code == 0


def test_one_plan_beside_its_problem(tmp_path: Path, cli: Cli) -> None:
    problem = gapless.load_problem(NAME).with_limits(max_units=2)
    best = gapless.plan(problem).candidates[0].plan
    gapless.save(problem, tmp_path / "problem.json")
    gapless.save(best, tmp_path / "plan.json", problem=tmp_path / "problem.json")
    assert gapless.load_problem(tmp_path / "problem.json") == problem
    assert gapless.load_plan(tmp_path / "plan.json") == best
    assert cli("tools", "check", tmp_path / "plan.json").code == 0


def test_values_with_a_format_of_their_own(tmp_path: Path) -> None:
    problem = gapless.load_problem(NAME)
    gapless.save(problem.platform, tmp_path / "platform.json")
    assert load(tmp_path / "platform.json", PLATFORM) == problem.platform
    gapless.save(gapless.compare(problem, backends=["native"]), tmp_path / "comparison.json")
    assert format_of(tmp_path / "comparison.json") == "gapless.comparison"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    problem = gapless.load_problem(NAME)
    result = gapless.plan(problem)
    path = tmp_path / "x.json"
    for value, options, words in (
        (result, {}, "made for"),
        (result, {"problem": problem.with_limits(max_units=1)}, "another problem"),
        (gapless.plan(problem.with_limits(max_period_us=1)), {"problem": problem}, "another problem"),
        (3.5, {}, "no files of float"),
        (gapless.explain(problem, result.candidates[0].plan), {}, "no files of Explanation"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            gapless.save(value, path, **options)
    nothing = problem.with_limits(max_period_us=1)
    with pytest.raises(InvalidInputError, match="no plan to write: the answer of native is infeasible"):
        gapless.save(gapless.plan(nothing), path, problem=nothing)
    assert not path.exists()
