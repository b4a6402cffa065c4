"""Problems to compare backends on: where they come from, and what is told where they cannot be had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.json_files import load
from gapless.solvers.families import families
from gapless.sweeps.instances import INSTANCES, InstanceSet, instances_of


def names(given: Any, objective: str = "") -> list[str]:
    return [name for name, _ in instances_of(given, objective).problems]


def written(path: Path, **content: Any) -> Path:
    path.write_text(json.dumps({"format": "gapless.instances", "version": 1, **content}))
    return path


def test_a_folder_gives_its_problem_files(tmp_path: Path) -> None:
    problem = gapless.load_problem("pixel7a/octree")
    for name in ("b", "a"):
        gapless.save(problem, tmp_path / f"{name}.json")
    written(tmp_path / "set.json", problems=["pixel7a/octree"])
    found = instances_of(tmp_path)
    assert [name for name, _ in found.problems] == ["a", "b"]
    assert found.title == tmp_path.name
    assert found.notes == ("left out, because they are no problem files: set.json",)


def test_all_defects_of_a_folder_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{")
    (tmp_path / "y.json").write_text('{"format": "gapless.problem", "version": 1}')
    with pytest.raises(InvalidInputError, match=r"x\.json(.|\n)*y\.json"):
        instances_of(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"holds no problem files \(\*\.json\)"):
        instances_of(tmp_path / "empty")


def test_shipped_names_and_patterns() -> None:
    assert names("pixel7a/octree, oneplus11/alex*") == [
        "pixel7a/octree",
        "oneplus11/alexnet-dense",
        "oneplus11/alexnet-sparse",
    ]
    with pytest.raises(InvalidInputError, match="matches no shipped problem"):
        instances_of("pixel9/*")
    with pytest.raises(InvalidInputError, match="pixel7a"):
        instances_of("pixel7/octree")


def test_a_file_names_problems_and_draws_others(tmp_path: Path) -> None:
    gapless.save(gapless.load_problem("pixel7a/octree"), tmp_path / "mine.json")
    path = written(
        tmp_path / "set.json",
        title="Mine",
        problems=["mine.json", "pixel7a/octree", {"workload": "vit", "platform": "kirin990"}],
        generate={"formulation": "flow_shop", "requests": [2, 3], "units": 3, "seeds": 2, "slowdown": True},
    )
    found = instances_of(path)
    assert found.title == "Mine"
    assert [name for name, _ in found.problems] == [
        "mine",
        "pixel7a/octree",
        "vit kirin990",
        "flow_shop requests=2 units=3 seed=0 slowdown",
        "flow_shop requests=2 units=3 seed=1 slowdown",
        "flow_shop requests=3 units=3 seed=0 slowdown",
        "flow_shop requests=3 units=3 seed=1 slowdown",
    ]
    drawn = [problem for _, problem in found.problems[3:]]
    assert all(one.interference is not None for one in drawn)
    assert len({one.fingerprint for one in drawn}) == 4
    assert [one.fingerprint for _, one in instances_of(path).problems[3:]] == [
        one.fingerprint for one in drawn
    ], "equal seeds give equal problems"
    assert load(path, INSTANCES).drawn[0]["units"] == 3


@pytest.mark.parametrize("formulation", [name for name, one in families().items() if one.drawn])
def test_every_family_that_can_be_drawn_gives_valid_problems(formulation: str) -> None:
    drawn = families()[formulation].drawn
    assert drawn is not None
    asked: dict[str, Any] = {name: 2 if name == "types" else (2, 3) for name in drawn.sizes}
    asked.update(dict.fromkeys(drawn.switches, True))
    found = instances_of(InstanceSet(generate={"formulation": formulation, "seeds": 2, **asked}))
    sizes = 2 ** len([name for name in drawn.sizes if name != "types"])
    assert len(found.problems) == 2 * sizes
    for _, problem in found.problems:
        assert problem.formulation.name == formulation
        assert gapless.plan(problem, time_limit_s=0.02).status != "infeasible"


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ({}, "cannot be drawn; choose one of chunking"),
        ({"formulation": "flow-shop"}, "did you mean flow_shop"),
        ({"formulation": "flow_shop", "units": 3}, "requests is absent; there are requests, units, seeds"),
        ({"formulation": "flow_shop", "requests": 2, "units": 3, "layers": 1}, "unknown key 'layers'"),
        ({"formulation": "flow_shop", "requests": 0, "units": 3}, "requests is 0, must be a whole number of"),
        ({"formulation": "flow_shop", "requests": (), "units": 3}, "requests is empty"),
        ({"formulation": "flow_shop", "requests": 2, "units": 9}, "units is 9, must be at most 8"),
        ({"formulation": "flow_shop", "requests": 2, "units": 3, "slowdown": 1}, "must be true or false"),
        (
            {"formulation": "flow_shop", "requests": 2, "units": 3, "seeds": 99_999},
            "these are 99999 problems",
        ),
        ({"formulation": "pipelines", "layers": 3, "devices": 1, "types": 2}, "1 devices for 2 types"),
    ],
)
def test_what_cannot_be_drawn_is_told(family: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"generate\[0\]: (.|\n)*{message}"):
        instances_of(InstanceSet(generate=family))


def test_defects_of_a_file_are_told_together(tmp_path: Path) -> None:
    path = written(tmp_path / "set.json", problems=["pixel7a/x", {"bored": "a"}], generate=[{}])
    with pytest.raises(InvalidInputError) as told:
        instances_of(path)
    assert all(part in str(told.value) for part in ("problems[0]", "problems[1]", "generate[0]"))


def test_a_python_file_makes_problems(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import gapless\n"
        "def problems():\n"
        "    yield 'one', gapless.load_problem('pixel7a/octree')\n"
        "    yield gapless.load_problem('pixel7a/octree')\n"
    )
    assert names(path) == ["one", "octree on pixel7a"]


def test_names_differ_and_objectives_are_overridden() -> None:
    problem = gapless.load_problem("pixel7a/octree")
    found = instances_of([problem, ("x", problem), problem], "latency")
    assert [name for name, _ in found.problems] == ["octree on pixel7a #1", "x", "octree on pixel7a #2"]
    assert {str(one.objective) for _, one in found.problems} == {"latency"}
    with pytest.raises(InvalidInputError, match="holds no problems"):
        instances_of([])
