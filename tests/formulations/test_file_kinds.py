"""A file of another kind than is needed says what it is and what to do with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gapless.api.planning import plan
from gapless.api.problems import table_problem
from gapless.formulations.errors import InvalidInputError, SchemaVersionError
from gapless.formulations.files import dump_plan, dump_problem, load_plan, load_problem
from gapless.formulations.json_files import load_tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    problem = table_problem({"conv": [9, 2], "fc": [1, 8]}, ["cpu", "gpu"])
    best = plan(problem).plan
    assert best is not None
    (tmp_path / "problem.json").write_text(dump_problem(problem))
    (tmp_path / "plan.json").write_text(dump_plan(best, problem))
    return tmp_path


def test_a_plan_is_no_problem_and_the_other_way_round(folder: Path) -> None:
    with pytest.raises(
        SchemaVersionError, match=r"plan\.json is no .*it holds a plan.*`gapless tools check /.*plan\.json`"
    ):
        load_problem(folder / "plan.json")
    with pytest.raises(SchemaVersionError, match=r"it holds a problem.*`gapless plan /.*problem\.json --out"):
        load_plan(folder / "problem.json")


def test_a_folder_names_the_file_that_is_meant(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"it is a folder; did you mean .*/problem\.json\?"):
        load_problem(folder)
    with pytest.raises(InvalidInputError, match=r"it is a folder; did you mean .*/plan\.json\?"):
        load_plan(folder)
    (folder / "plan.json").unlink()
    with pytest.raises(InvalidInputError, match="it is a folder; name a file"):
        load_plan(folder)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("net.onnx", "it is a model: `gapless profile .*net.onnx` measures it"),
        ("NET.ONNX", "it is a model"),
        ("store.sqlite", "--store takes it"),
        ("report.html", "it is a report"),
        ("frames.npz", "`gapless run --input` takes them"),
        ("net.tflite", r"export it to a \.onnx file first"),
    ],
)
def test_files_that_are_no_json_say_what_they_are(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).write_bytes(b"\x08\x07")
    with pytest.raises(InvalidInputError, match=words):
        load_problem(tmp_path / name)
    with pytest.raises(InvalidInputError, match=words):
        load_tree(tmp_path / name)


def test_a_model_that_is_not_there_is_not_called_a_model(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No such file"):
        load_plan(tmp_path / "net.onnx")
