"""JSON Schemas: one for each kind of file, true to what gapless writes and to what it refuses."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gapless.api.planning import plan
from gapless.api.problems import load_problem, load_workload
from gapless.files.formats import FORMATS, file_format
from gapless.files.schema import json_schema, object_tables
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.files import dump_plan, dump_problem, format_of, parse, parse_problem
from gapless.rules import at_most, before, pin
from tests.executor.pipelines import write

from ..conftest import Cli

ROOT = Path(__file__).parents[3]
FOLDERS = ("formulations", "solvers", "executor", "profiler", "gapless")
SHIPPED = {
    folder: sorted((ROOT / folder).rglob("*.json"))
    for folder in ("profiler/platforms", "profiler/coordination", "profiler/slowdown/contention/data")
}
NAMES = [entry.name for entry in FORMATS]


def schemas_in_the_code() -> Iterator[str]:
    """Yield the format of each `Schema(...)` that a module of the package holds."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            if any((ROOT / part).is_symlink() for part in path.relative_to(ROOT).parents):
                continue
            for node in ast.parse(path.read_text()).body:
                match node:
                    case ast.Assign(
                        value=ast.Call(func=ast.Name(id="Schema"), keywords=given),
                    ):
                        said = next(each.value for each in given if each.arg == "format")
                        assert isinstance(said, ast.Constant)
                        yield str(said.value)


@pytest.mark.slow
def test_every_schema_of_the_code_is_a_known_kind_of_file() -> None:
    found = sorted(schemas_in_the_code())
    assert found == sorted(f"gapless.{entry.name}" for entry in FORMATS)
    assert len(set(NAMES)) == len(NAMES) == len(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_a_schema(name: str) -> None:
    schema = json_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["format"]["const"] == file_format(name).schema.format == f"gapless.{name}"
    assert schema["properties"]["version"]["const"] == file_format(name).schema.version
    assert {"format", "version"} <= set(schema["required"])
    # A comparison is what `gapless compare --json` prints: a report reads a part of it.
    assert schema["additionalProperties"] is (name == "comparison")
    for table in object_tables(schema):
        assert table.text, f"{table.name} is not described"
        assert "Attributes" not in table.text


@pytest.mark.parametrize(
    "name", ["problem", "plan", "platform", "network", "costs", "deployment", "slowdowns"]
)
def test_files_that_people_write_are_described_key_by_key(name: str) -> None:
    tables = list(object_tables(json_schema(name)))
    assert [f"{table.name}.{row.name}" for table in tables for row in table.rows if not row.text] == []


def valid(path: Path) -> str:
    """Return the name of the format of a file, which is valid by its schema."""
    name = (format_of(path) or "").removeprefix("gapless.")
    jsonschema.validate(json.loads(path.read_text()), json_schema(name))
    return name


def test_fields_of_a_base_class_are_described_there() -> None:
    def texts(name: str, kind: str) -> dict[str, str]:
        fields = json_schema(name)["$defs"][kind]["properties"]
        return {key: field["description"] for key, field in fields.items() if "description" in field}

    written = texts("comparison", "WrittenResult")
    assert (written["backend"], written["runtime_s"]) == ("Who answered.", "Seconds of the search.")
    assert written["backend_version"].startswith("Of the solver")
    assert texts("sweep", "LimitSet")["max_gapness_us"] == "Largest gapness, microseconds."


@pytest.mark.slow
@pytest.mark.parametrize("folder", SHIPPED)
def test_shipped_files_are_valid(folder: str) -> None:
    assert SHIPPED[folder]
    for path in SHIPPED[folder]:
        valid(path)


@pytest.mark.slow
def test_files_that_commands_write_are_valid(cli: Cli, tmp_path: Path) -> None:
    name, run = "pixel7a/alexnet-sparse", tmp_path / "run"
    made = [tmp_path / file for file in ("plan.json", "ratios.json", "trace.json", "here.json")]
    simulated = ["--engine", "simulated", "--costs", "isolated", "--top", "2", "--rounds", "2"]
    commands: list[list[str | Path]] = [
        ["plan", name, "--out", made[0]],
        ["costs", "interference", "pixel7a", "--out", made[1]],
        ["tools", "trace", name, made[0], "--simulated", "--out", made[2]],
        ["device", "detect", "--out", made[3]],
        ["tune", name, *simulated, "--out", run],
    ]
    for words in commands:
        assert cli(*words).code == 0, words
    found = {valid(path) for path in made}
    assert found == {"plan", "interference", "chrome_trace", "platform"}
    written = {path.name: path for path in run.glob("*.json")}
    found = {valid(path) for path in written.values()}
    assert {"problem", "executions", "tuning", "rounds", "comparison"} <= found


@pytest.mark.measures
@pytest.mark.slow
def test_files_that_are_measured_are_valid(cli: Cli, tmp_path: Path) -> None:
    locator = write(tmp_path)
    out, answer, measured = tmp_path / "out", tmp_path / "plan.json", tmp_path / "measured.json"
    assert cli("profile", locator, "--units", "core0", "--out", out).code == 0
    assert cli("plan", out / "problem.json", "--out", answer).code == 0
    assert cli("run", out / "problem.json", answer, "--seconds", "100ms", "--out", measured).code == 0
    assert valid(out / "profile.json") == "profile"
    assert valid(out / "problem.json") == "problem"
    assert valid(measured) == "measurement"


def problem_with_everything() -> str:
    problem = load_problem("pixel7a/alexnet-sparse", costs="interpolated")
    return dump_problem(problem.with_rules(pin("conv1", unit="GPU"), at_most(2)))


def test_rules_and_workloads_are_valid() -> None:
    workload = load_workload("bert,vit", platform="kirin990", passage="ordered")
    workload = workload.with_rules(before("vit", "bert"))
    answer = plan(workload, time_limit_s=0.5).plan
    assert answer is not None
    for name, text in (
        ("problem", problem_with_everything()),
        ("problem", dump_problem(workload)),
        ("plan", dump_plan(answer, workload, {"workload": "bert,vit", "platform": "kirin990"})),
    ):
        jsonschema.validate(json.loads(text), json_schema(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "expr", [1.5, "on", ["on", 0, 1], ["var"], ["sum", [1, 2]], ["not", 1, 2], ["<=", 1], ["var", "on", "x"]]
)
def test_a_rule_that_is_no_expression_is_not_valid(expr: object) -> None:
    tree = json.loads(problem_with_everything())
    tree["rules"][0]["expr"] = expr
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree, json_schema("problem"))


def places(tree: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the way to each value of a document."""
    if path:
        yield path
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in entries:
        yield from places(value, (*path, key))


def spoilt(tree: dict[str, Any], path: tuple[str | int, ...], defect: object) -> dict[str, Any]:
    """Return a document with a defect at a place: another value, a key less, or one too many."""
    tree = deepcopy(tree)
    at: Any = tree
    for key in path[:-1]:
        at = at[key]
    if defect == "left out":
        del at[path[-1]]
    elif defect == "unknown key":
        if isinstance(at, dict):
            at["nobody knows this"] = 1
    else:
        at[path[-1]] = defect
    return tree


DEFECTS: list[object] = ["left out", "unknown key", None, True, -1, 0, 7, 2.5, "text", [], {}, [[]], {"a": 1}]


@cache
def validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(json_schema(name))


def is_valid(name: str, tree: object) -> bool:
    return bool(validator(name).is_valid(tree))


def read(name: str, tree: object) -> object:
    data = json.dumps(tree).encode()
    if name == "problem":  # its rules are read in a second step
        return parse_problem(data, name="file")
    return parse(data, file_format(name).schema, name="file")


@cache
def document(name: str) -> dict[str, Any]:
    problem = load_problem("pixel7a/alexnet-sparse")
    found = plan(problem).plan
    assert found is not None
    text = problem_with_everything() if name == "problem" else dump_plan(found, problem)
    tree: dict[str, Any] = json.loads(text)
    return tree


@pytest.mark.slow
@pytest.mark.parametrize("name", ["problem", "plan"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_the_schema_refuses_is_refused(name: str, data: st.DataObject) -> None:
    tree = document(name)
    path = data.draw(st.sampled_from(sorted(places(tree), key=str)))
    broken = spoilt(tree, path, data.draw(st.sampled_from(DEFECTS)))
    if is_valid(name, broken):
        return
    with pytest.raises(InvalidInputError):
        read(name, broken)


@pytest.mark.parametrize(
    ("path", "defect"),
    [
        (("format",), "gapless.problem"),
        (("version",), 0),
        (("chunks",), "left out"),
        (("chunks",), "unknown key"),
        (("chunks", 0, "unit"), "left out"),
        (("chunks", 0, "start"), "0"),
        (("chunks", 0, "start"), True),
        (("chunks", 0), []),
        (("order",), "none"),
    ],
)
def test_both_refuse_what_has_another_shape(path: tuple[str | int, ...], defect: object) -> None:
    broken = spoilt(document("plan"), path, defect)
    assert not is_valid("plan", broken)
    with pytest.raises(InvalidInputError):
        read("plan", broken)


def test_the_command_lists_shows_and_writes(cli: Cli, tmp_path: Path) -> None:
    listed = cli("list", "files")
    assert listed.code == 0
    assert all(name in listed.out for name in NAMES)
    assert [entry["name"] for entry in cli("list", "files", "--json").document["formats"]] == NAMES
    shown = cli("tools", "schema", "plan").out
    assert "plan_id?" in shown
    assert "Digest of chunks and order" in shown
    assert "cpu, gpu, npu, dsp, other" in cli("tools", "schema", "platform").out
    out = tmp_path / "plan.schema.json"
    assert cli("tools", "schema", "gapless.plan", "--out", out).code == 0
    assert (
        json.loads(out.read_text())
        == cli("tools", "schema", "plan", "--json").document
        == json_schema("plan")
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plam"], "did you mean plan"),
        (["nonsense"], "gapless list files"),
        (["--out", "x.json"], "FORMAT is missing: a kind of file, such as plan"),
    ],
)
def test_the_command_says_what_is_wrong(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run = cli("tools", "schema", *words)
    assert run.code == 2
    assert message in run.err.replace("\n", " ")
    assert list(tmp_path.iterdir()) == []
