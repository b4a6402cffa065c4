"""Plan files that are wrong, problems without a plan, and odd problems that are right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .cli.test_bad_input import Edit, base, edited, expect, rows, units
from .conftest import Cli

SPARSE = "pixel7a/alexnet-sparse"
CHUNK = {"network": "alexnet-sparse", "start": 0, "stop": 9, "unit": "GPU"}


def plan_text(*chunks: dict[str, Any], **more: object) -> str:
    return json.dumps({"format": "gapless.plan", "version": 1, "chunks": list(chunks), **more})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (plan_text(), ("a plan needs at least one chunk",)),
        (plan_text({**CHUNK, "stop": 0}), ("it is empty: stop must be greater than start",)),
        (plan_text({**CHUNK, "start": -1}), ("start is -1",)),
        (plan_text({**CHUNK, "stop": 9.0}), ("stop", "9.0")),
        (plan_text({**CHUNK, "unit": 3}), ("unit", "3")),
        (plan_text({**CHUNK, "speed": 3}), ("speed: unknown key",)),
        (plan_text(CHUNK, plan_id="0123456789ab"), ("it was edited", "'0123456789ab'")),
        (plan_text(CHUNK, plan_id=5), ("plan_id",)),
        (plan_text(CHUNK).replace('"version": 1', '"version": 2'), ("has version 2 of gapless.plan",)),
        (plan_text(CHUNK).replace("gapless.plan", "gapless.problem"), ("'gapless.problem'",)),
        ("{}", ("its format is missing",)),
        ("not json", ("not valid JSON",)),
    ],
)
def test_bad_plan_files(cli: Cli, tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    for command in ("tools check", "simulate"):
        expect(cli(command, SPARSE, path), 2, *words)


def test_a_plan_for_another_network(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_text(CHUNK))
    run = cli("tools", "check", "pixel7a/octree", path)
    assert run.code == 6
    assert "network 'alexnet-sparse'; the problem has 'octree'" in run.out
    expect(cli("simulate", "pixel7a/octree", path), 2, "the problem has 'octree'")


def test_a_plan_that_a_unit_cannot_run(cli: Cli, tmp_path: Path) -> None:
    problem, path = tmp_path / "problem.json", tmp_path / "plan.json"
    problem.write_bytes(edited(lambda t: rows(t)[1].__setitem__(1, None)))
    path.write_text(plan_text({"network": "net", "start": 0, "stop": 2, "unit": "gpu"}))
    run = cli("tools", "check", problem, path)
    assert run.code == 6
    assert "cannot run layers [1]" in run.out


def no_unit_for_b(tree: dict[str, Any]) -> None:
    rows(tree)[1][:] = [None, None]


def needs_the_cpu_twice(tree: dict[str, Any]) -> None:
    tree["networks"][0]["layers"].append({"name": "c"})
    rows(tree)[:] = [[1, None], [None, 1], [1, None]]


def too_little_memory(tree: dict[str, Any]) -> None:
    tree["networks"][0]["layers"][0]["weight_bytes"] = 100
    tree["platform"]["memory_bytes"] = 99


def contradictory_pins(tree: dict[str, Any]) -> None:
    tree["rules"] = [
        {"name": "a on cpu", "text": "a runs on the cpu", "expr": ["var", "on", 0, 0]},
        {"name": "a on gpu", "text": "a runs on the gpu", "expr": ["var", "on", 0, 1]},
        {"name": "harmless", "text": "this one holds", "expr": 1},
    ]


def too_many_units(tree: dict[str, Any]) -> None:
    tree["limits"] = {"min_units": 3}


INFEASIBLE: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "a layer that no unit can run": (no_unit_for_b, ("no unit can run the layers 'b'",)),
    "a unit would be needed twice": (needs_the_cpu_twice, ("no sequence of chunks",)),
    "too little memory": (too_little_memory, ("the device holds at most 99 bytes",)),
    "contradictory pins": (contradictory_pins, ("a runs on the cpu", "a runs on the gpu")),
    "more units than there are": (too_many_units, ("at least 3 units are used",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INFEASIBLE)
def test_problems_without_a_plan(cli: Cli, tmp_path: Path, name: str) -> None:
    edit, words = INFEASIBLE[name]
    path = tmp_path / "problem.json"
    path.write_bytes(edited(edit))
    run = cli("plan", path)
    assert (run.code, run.err) == (3, "")
    assert "INFEASIBLE" in run.out
    assert "this one holds" not in run.out
    for word in words:
        assert word in run.out, run.out
    document = cli("plan", path, "--json").document
    assert document["status"] == "infeasible"
    assert document["conflict"]["smallest"] is True


def test_contradictory_pins_of_a_rules_file(cli: Cli, tmp_path: Path) -> None:
    rules = tmp_path / "rules.py"
    rules.write_text(
        "from gapless.rules import pin\none, other = pin('fc', unit='GPU'), pin('fc', unit='Big')\n"
    )
    run = cli("plan", SPARSE, "--rules", rules)
    assert (run.code, run.err) == (3, "")
    assert "layer 'fc' runs on 'GPU'" in run.out
    assert "layer 'fc' runs on 'Big'" in run.out


def idle_unit(tree: dict[str, Any]) -> None:
    for row in rows(tree):
        row[0] = None


def markup(tree: dict[str, Any]) -> None:
    units(tree)[0]["name"] = tree["costs"]["units"][0] = "[red]x[/red]"
    tree["networks"][0]["layers"][0]["name"] = "../../[bold]:smile:"
    tree["platform"]["name"] = "שלום[/]"


def long_names(tree: dict[str, Any]) -> None:
    tree["networks"][0]["layers"][1]["name"] = "l" * 200
    units(tree)[1]["name"] = tree["costs"]["units"][1] = "u" * 200


def huge_times(tree: dict[str, Any]) -> None:
    rows(tree)[:] = [[2**40, 2**40], [1, 2**40]]


ODD: dict[str, tuple[Edit, tuple[str, ...]]] = {
    "a unit that can run nothing": (idle_unit, ("not used", "0-1 gpu")),
    "names that look like markup": (markup, ("[red]x[/red]", "../../[bold]:smile:", "שלום[/]")),
    "the longest names": (long_names, ("u" * 20,)),
    "times of days": (huge_times, ("1,099,511,627.776 ms",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_odd_problems_are_planned(cli: Cli, tmp_path: Path, name: str) -> None:
    edit, words = ODD[name]
    path = tmp_path / "problem.json"
    path.write_bytes(edited(edit))
    for command in (("show",), ("plan",), ("compare", "--backends", "native,exhaustive")):
        run = cli(*command, path)
        assert (run.code, run.err) == (0, "")
        if command == ("plan",):
            for word in words:
                assert word in run.out, run.out


def test_what_show_writes_is_what_it_read(cli: Cli, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_bytes(json.dumps(base()).encode())
    cli("show", first, "--out", second)
    one, two = (cli("show", path, "--json").document["problem"]["fingerprint"] for path in (first, second))
    assert one == two


@pytest.mark.parametrize("action", [lambda path: path.mkdir(), lambda path: path.write_text("old")])
def test_out_replaces_files_only(cli: Cli, tmp_path: Path, action: Callable[[Path], object]) -> None:
    path = tmp_path / "out.json"
    action(path)
    run = cli("plan", SPARSE, "--out", path)
    assert run.code == (2 if path.is_dir() else 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json"]
