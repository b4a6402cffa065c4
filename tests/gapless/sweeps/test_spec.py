from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gapless.files.schema import json_schema
from gapless.formulations.errors import InvalidInputError
from gapless.sweeps.spec import LimitSet, Sweep, SweepModel, SweepPlatform, load_sweep, parse_range


def spec_file(folder: Path, **content: Any) -> Path:
    path = folder / "spec.json"
    path.write_text(json.dumps({"format": "gapless.sweep", "version": 1, **content}))
    return path


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("3", (3,)), ("0..3", (0, 1, 2, 3)), ("4, 1,2", (4, 1, 2)), ("1..2,2..3", (1, 2, 3))],
)
def test_ranges(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_range(text, least=0) == numbers


@pytest.mark.parametrize("text", ["", "x", "1..", "..2", "-1", "3..1", "1;2", "65", "0..9999", "1.5", "²"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"write e\.g\. 0\.\.4"):
        parse_range(text, least=0)


def test_a_range_begins_where_it_may() -> None:
    with pytest.raises(InvalidInputError, match="from 1 to"):
        parse_range("0..2", least=1)


def test_all_defects_of_a_file_are_named_at_once(tmp_path: Path) -> None:
    path = spec_file(
        tmp_path,
        modells=["octree"],
        platforms=["pixel7a", {"name": "raspberry-pis", "devices": {"pi4": "many"}, "bath": 3}],
        limits=[{"max_units": -1}],
        time_limit_s="long",
        prices={"pixel7a": "cheap"},
        problems=[{"workload": 3}],
    )
    with pytest.raises(InvalidInputError) as caught:
        load_sweep(path)
    said = str(caught.value)
    for words in (
        "modells: unknown key",
        "bath",
        "'many'",
        "max_units is -1",
        "time_limit_s",
        "prices.pixel7a",
    ):
        assert words in said, said
    assert "workload" in said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"models": ("octree",)}, "models and no platforms"),
        ({"platforms": ("pixel7a",)}, "platforms and no models"),
        ({"time_limit_s": 0}, "time_limit_s is 0"),
        ({"time_limit_s": float("nan")}, "time_limit_s is nan"),
        ({"prices": {"pixel7a": 0}}, "the price of 'pixel7a'"),
        ({"backends": ("native", "native")}, "found twice: 'native'"),
        ({"limits": (LimitSet(), LimitSet())}, "limits must be unique"),
        ({"threads": 0}, "threads is 0"),
        ({"models": "octree"}, "models must be a list"),
    ],
)
def test_a_sweep_that_contradicts_itself(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        Sweep(**given)


def test_limits_are_called_by_what_they_say() -> None:
    assert LimitSet(max_units=2, max_period_us=9).words == "max_period_us=9, max_units=2"
    assert LimitSet(max_units=2, label="two").words == "two"
    with pytest.raises(InvalidInputError, match="max_units is -1"):
        LimitSet(max_units=-1)


def test_a_file_reads_as_it_is_written_and_fits_its_schema(tmp_path: Path) -> None:
    path = spec_file(
        tmp_path,
        models=["octree", {"name": "m.onnx", "shape": "x=1,3"}],
        platforms=["pixel7a", {"name": "raspberry-pis", "devices": {"pi4": "0..2"}, "batch": 4}],
        problems=[{"workload": "bert", "platform": "kirin990", "board": "Kirin"}],
        limits=[{"label": "two", "max_units": 2}],
        prices={"pi4": 60},
    )
    jsonschema.validate(json.loads(path.read_text()), json_schema("sweep"))
    found = load_sweep(path).sweep
    assert found.models == ("octree", SweepModel(name="m.onnx", shape="x=1,3"))
    assert found.platforms[1] == SweepPlatform(name="raspberry-pis", devices={"pi4": "0..2"}, batch=4)
    assert found.limits[0].max_units == 2
    assert found.prices == {"pi4": 60}


def test_files_are_looked_for_beside_the_sweep(tmp_path: Path) -> None:
    for name in ("m.onnx", "own.json", "rules.py", "mine.py", "octree.txt"):
        (tmp_path / name).write_text("")
    path = spec_file(
        tmp_path,
        models=["m.onnx", "octree"],
        platforms=["own.json"],
        problems=["own.json", {"problem": "own.json", "board": "own.json"}],
        limits=[{"rules": "rules.py"}],
        backends=["native", "mine.py:Mine"],
    )
    found = load_sweep(path).sweep
    own = str(tmp_path / "own.json")
    assert found.models == (str(tmp_path / "m.onnx"), "octree")
    assert found.platforms == (own,)
    assert found.problems == (own, {"problem": own, "board": "own.json"})
    assert (found.limits[0].rules, found.limits[0].words) == (str(tmp_path / "rules.py"), "rules.py")
    assert found.backends == ("native", f"{tmp_path}/mine.py:Mine")


PYTHON = """
import gapless

sweep = gapless.studies.Sweep(models=["octree"], platforms=["pixel7a"], backends=["native"])

def problems():
    problem = gapless.load_problem("oneplus11/octree")
    yield problem
    yield "without the GPU", problem.with_rules(lambda view: ~view.uses("GPU"))
"""


def test_a_python_file_makes_a_sweep_and_problems(tmp_path: Path) -> None:
    path = tmp_path / "spec.py"
    path.write_text(PYTHON)
    found = load_sweep(path)
    assert found.sweep.models == ("octree",)
    assert [name for name, _ in found.problems] == ["", "without the GPU"]
    assert len(found.problems[1][1].rules) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "neither `sweep`"),
        ("sweep = 3", "sweep is a int"),
        ("problems = 3", "problems is a int"),
        ("def problems():\n    yield 3", r"problems\[0\] is 3"),
        ("def problems():\n    return 1 / 0", "line 2: ZeroDivisionError"),
        ("import gapless\nsweep = gapless.studies.Sweep(models=['a'])", "line 2: InvalidInputError"),
        ("sweep =", "line 1: invalid syntax"),
    ],
)
def test_python_files_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "spec.py"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        load_sweep(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for name in ("spec.json", "spec.py"):
        with pytest.raises(InvalidInputError, match="cannot read"):
            load_sweep(tmp_path / name)


def test_exact_backends_may_work_cold() -> None:
    assert Sweep(problems=("x",), start="none").start == "none"
    with pytest.raises(InvalidInputError, match="start is 'both', must be native or none"):
        Sweep(problems=("x",), start="both")
