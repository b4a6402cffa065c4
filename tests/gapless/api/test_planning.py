"""Planning from Python: problems by value, by name and by file."""

from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_problem, save

NAME = "pixel7a/alexnet-sparse"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    save(dump_problem(gapless.load_problem(NAME)), path)
    return path


def test_problems_are_named_as_in_tune(written: Path) -> None:
    problem = gapless.load_problem(NAME)
    best = gapless.plan(problem)
    assert best.plan is not None
    for named in (NAME, str(written), written):
        assert gapless.plan(named, top=3).candidates == gapless.plan(problem, top=3).candidates
        comparison = gapless.compare(named, backends=["native", "exhaustive"])
        assert {result.objective for result in comparison.results} == {best.objective}
        assert gapless.explain(named, best.plan) == gapless.explain(problem, best.plan)


@pytest.mark.parametrize("name", ["pixel7a/alexnet-spares", "squeezenet", "nothing.json"])
def test_what_is_no_problem_is_refused_with_what_there_is(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"did you mean|gapless"):
        gapless.plan(name)
