"""Bad input gives one clear message and exit code 2 or 3, never a traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..conftest import Cli, Run

SPARSE = "pixel7a/alexnet-sparse"
Edit = Callable[[dict[str, Any]], object]


def base() -> dict[str, Any]:
    """Return a problem that is right: two layers, two units."""
    return {
        "format": "gapless.problem",
        "version": 1,
        "platform": {"name": "board", "units": [{"name": "cpu"}, {"name": "gpu"}]},
        "networks": [{"name": "net", "layers": [{"name": "a"}, {"name": "b"}]}],
        "costs": {
            "units": ["cpu", "gpu"],
            "networks": [{"network": "net", "layer_us": [[3, 2], [1, 9]]}],
        },
    }


def edited(edit: Edit) -> bytes:
    tree = base()
    edit(tree)
    return json.dumps(tree).encode()


def times(value: str) -> bytes:
    """Return the problem with another text in the place of one time."""
    return json.dumps(base()).replace("[[3,", f"[[{value},").encode()


def units(tree: dict[str, Any]) -> Any:
    return tree["platform"]["units"]


def layers(tree: dict[str, Any]) -> Any:
    return tree["networks"][0]["layers"]


def rows(tree: dict[str, Any]) -> Any:
    return tree["costs"]["networks"][0]["layer_us"]


def many_layers(tree: dict[str, Any]) -> None:
    tree["networks"][0]["layers"] = [{"name": f"l{i}"} for i in range(10_000)]
    tree["costs"]["networks"][0]["layer_us"] = [[1, 1]] * 10_000


def expect(run: Run, code: int, *words: str) -> None:
    """Require one message, with the words, and nothing else."""
    assert run.code == code, run.err
    assert run.err.startswith("error: ")
    assert "\nerror: " not in run.err
    assert run.out == ""
    assert "Traceback" not in run.err
    assert "gapless has a bug" not in run.err
    assert "\x1b" not in run.err
    for word in words:
        assert word in run.err, run.err


DOCUMENTS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty file": (b"", ("not valid JSON: it is empty",)),
    "blank file": (b" \n \n", ("not valid JSON: it is empty",)),
    "cut off": (json.dumps(base()).encode()[:-30], ("not valid JSON", "line 1")),
    "trailing comma": (b'{"format": "gapless.problem",}', ("not valid JSON", "line 1, column")),
    "two documents": (b"{} {}", ("not valid JSON", "Extra data")),
    "binary": (bytes(range(128, 256)), ("not a text file in UTF-8",)),
    "a list": (b"[]", ("holds a list, not an object",)),
    "a number": (b"7", ("holds a int, not an object",)),
    "null": (b"null", ("not an object",)),
    "nested too deeply": (b"[" * 100_000, ("nested too deeply",)),
    "deep inside": (
        edited(lambda t: t.update(rules=[{"name": "r", "expr": 0}])).replace(
            b'"expr": 0', b'"expr": ' + b'["not",' * 900 + b"1" + b"]" * 900
        ),
        ("nested too deeply: more than 200 levels",),
    ),
    "number without end": (times("9" * 5000), ("9" * 40, "is not a number")),
    "huge time": (times("1" + "0" * 30), ("layer_us[0][0]",)),
    "float time": (times("3.5"), ("layer_us[0][0]", "integer", "3.5")),
    "whole float time": (times("3.0"), ("layer_us[0][0]", "3.0")),
    "text time": (times('"3"'), ("layer_us[0][0]", "'3'")),
    "bool time": (times("true"), ("layer_us[0][0]", "True")),
    "zero time": (times("0"), ("layer_us[0][0] is 0, must be at least 1",)),
    "negative time": (times("-4"), ("layer_us[0][0] is -4",)),
    "NaN": (times("NaN"), ("NaN is not a number",)),
    "infinity": (times("Infinity"), ("Infinity is not a number",)),
    "minus infinity": (times("-Infinity"), ("-Infinity is not a number",)),
    "float overflow": (times("1e999"), ("1e999 is not a number",)),
    "unknown key": (edited(lambda t: t.update(colour="red")), ("colour: unknown key",)),
    "unknown inner key": (edited(lambda t: units(t)[0].update(speed=3)), ("platform.units[0].speed",)),
    "missing key": (edited(lambda t: t.pop("costs")), ("costs: missing",)),
    "missing inner key": (edited(lambda t: layers(t)[1].pop("name")), ("layers[1].name: missing",)),
    "key twice": (
        json.dumps(base()).replace('"version": 1', '"version": 1, "version": 1').encode(),
        ("the key 'version' stands twice",),
    ),
    "no units": (edited(lambda t: units(t).clear()), ("units are missing",)),
    "no layers": (edited(lambda t: layers(t).clear()), ("layers are missing",)),
    "no networks": (edited(lambda t: t["networks"].clear()), ("networks are missing",)),
    "no times": (edited(lambda t: rows(t).clear()), ("layer_us is empty",)),
    "ragged row": (edited(lambda t: rows(t)[1].pop()), ("layer_us[1] has 1 entries",)),
    "too few rows": (edited(lambda t: rows(t).pop()), ("has 2 layers but 1 rows",)),
    "costs of other units": (
        edited(lambda t: t["costs"].update(units=["cpu", "npu"])),
        ("'npu'", "the platform has"),
    ),
    "costs of another network": (
        edited(lambda t: t["costs"]["networks"][0].update(network="other")),
        ("network 'net' has no costs",),
    ),
    "unit twice": (edited(lambda t: units(t)[1].update(name="cpu")), ("found twice: 'cpu'",)),
    "layer twice": (edited(lambda t: layers(t)[1].update(name="a")), ("found twice: 'a'",)),
    "network twice": (edited(lambda t: t["networks"].append(t["networks"][0])), ("twice: 'net'",)),
    "tensor twice": (
        edited(
            lambda t: t["networks"][0].update(
                tensors=[{"name": "x", "bytes": 1, "source": 0, "targets": [1]}] * 2
            )
        ),
        ("tensor names must be unique", "'x'"),
    ),
    "tensor backwards": (
        edited(
            lambda t: t["networks"][0].update(
                tensors=[{"name": "x", "bytes": 1, "source": 1, "targets": [0]}]
            )
        ),
        ("target 0 does not come after its source 1",),
    ),
    "cut out of range": (
        edited(lambda t: t["networks"][0].update(forbidden_cuts=[7])),
        ("forbidden cut 7",),
    ),
    "name with colour codes": (
        edited(lambda t: layers(t)[0].update(name="\x1b[31mred")),
        ("cannot be printed", "\\x1b[31mred"),
    ),
    "name with line break": (edited(lambda t: units(t)[0].update(name="a\nerror: b")), ("printed",)),
    "name that reverses text": (edited(lambda t: units(t)[0].update(name="\u202egpu")), ("printed",)),
    "half a character": (edited(lambda t: units(t)[0].update(name="\ud800")), ("error",)),
    "empty name": (edited(lambda t: layers(t)[0].update(name="")), ("name is empty",)),
    "endless name": (edited(lambda t: layers(t)[0].update(name="x" * 10_000)), ("10000 characters",)),
    "name that is a number": (edited(lambda t: layers(t)[0].update(name=5)), ("layers[0].name",)),
    "10,000 layers": (edited(many_layers), ("'net' has 10000 layers", "at most 2000")),
    "future version": (edited(lambda t: t.update(version=99)), ("has version 99", "Update gapless")),
    "version 0": (edited(lambda t: t.update(version=0)), ("version is 0",)),
    "version as text": (edited(lambda t: t.update(version="1")), ("version is '1'",)),
    "version as bool": (edited(lambda t: t.update(version=True)), ("version is True",)),
    "no version": (edited(lambda t: t.pop("version")), ("version is None",)),
    "another format": (edited(lambda t: t.update(format="gapless.costs")), ("'gapless.costs'",)),
    "no format": (edited(lambda t: t.pop("format")), ("its format is missing",)),
    "unknown objective": (edited(lambda t: t.update(objective={"terms": ["speed"]})), ("'speed'",)),
    "term twice": (edited(lambda t: t.update(objective={"terms": ["period"] * 2})), ("twice",)),
    "no terms": (edited(lambda t: t.update(objective={"terms": []})), ("terms are missing",)),
    "balance above 1": (
        edited(lambda t: t.update(limits={"min_balance_permille": 1001})),
        ("must be at most 1000",),
    ),
    "negative limit": (edited(lambda t: t.update(limits={"min_units": -1})), ("min_units is -1",)),
    "rule about nothing": (
        edited(lambda t: t.update(rules=[{"name": "r", "expr": ["var", "uses", 7]}])),
        ("rules[0] 'r'", "names no quantity"),
    ),
    "rule that is no expression": (
        edited(lambda t: t.update(rules=[{"name": "r", "expr": {"a": 1}}])),
        ("rules[0] 'r'", "is not an expression"),
    ),
    "rule that is a number": (
        edited(lambda t: t.update(rules=[{"name": "r", "expr": ["sum", 3]}])),
        ("rules[0] 'r'", "truth value"),
    ),
    "rule twice": (
        edited(lambda t: t.update(rules=[{"name": "r", "expr": 1}] * 2)),
        ("rule names must be unique",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_bad_documents(cli: Cli, tmp_path: Path, name: str) -> None:
    content, words = DOCUMENTS[name]
    path = tmp_path / "problem.json"
    path.write_bytes(content)
    run = cli("plan", path)
    expect(run, 2, *words)
    document = cli("plan", path, "--json").document
    assert (document["format"], document["exit_code"]) == ("gapless.error", 2)


def test_all_defects_are_told_at_once(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "problem.json"

    def break_much(tree: dict[str, Any]) -> None:
        tree.update(colour="red")
        units(tree)[0].update(speed=3)
        rows(tree)[0][0] = "3"
        rows(tree)[1][1] = 0.5

    path.write_bytes(edited(break_much))
    expect(cli("plan", path), 2, "colour", "speed", "layer_us[0][0]", "layer_us[1][1]")
    assert len(cli("plan", path, "--json").document["problems"]) == 4


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_other_encodings(cli: Cli, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "problem.json"
    path.write_bytes(json.dumps(base()).encode(encoding))
    run = cli("plan", path)
    assert run.code in (0, 2)
    assert "Traceback" not in run.err


def test_a_huge_file_is_not_read(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(10 * 2**30)
    expect(cli("plan", path), 2, "has 10737418240 bytes, more than")


def test_a_folder_is_not_a_file(cli: Cli, tmp_path: Path) -> None:
    expect(cli("plan", tmp_path), 2, f"cannot read {tmp_path}: it is a folder; name a file")


def test_a_device_that_never_ends(cli: Cli) -> None:
    expect(cli("plan", "/dev/zero"), 2, "more than the")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(cli: Cli, problem_file: Path) -> None:
    problem_file.chmod(0)
    expect(cli("plan", problem_file), 2, "Permission denied")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere.json", ("neither a file nor the name", "gapless list problems")),
        ("pixel7/alexnet", ("did you mean", "pixel7a/alexnet-dense")),
        ("pixel7a", ("did you mean", "pixel7a/octree")),
        ("PIXEL7A/OCTREE", ("neither a file",)),
        ("../../etc/shadow/x", ("neither a file",)),
        ("", ("'' is neither a file",)),
        ("x" * 10_000, ("xxx... is neither a file".replace("...", "...'"),)),
        ("a\x00b", ("'a\\x00b' is neither a file",)),
        ("\x1b[31mred", ("'\\x1b[31mred' is neither",)),
        ("[red]x[/red]", ("'[red]x[/red]' is neither",)),
        ("\udcff", ("neither a file",)),
    ],
    ids=["missing", "near", "platform", "case", "path", "empty", "long", "null", "ansi", "markup", "bytes"],
)
def test_bad_names_of_problems(cli: Cli, name: str, words: tuple[str, ...]) -> None:
    expect(cli("plan", name), 2, *words)


def test_paths_cannot_colour_the_terminal(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "\x1b[31m[bold]x.json"
    path.write_text("{")
    expect(cli("plan", path), 2, "\\x1b[31m[bold]x.json is not valid JSON")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan",), "no problem is named"),
        (("plan", SPARSE, "extra"), "unexpected extra argument"),
        (("fly", SPARSE), "no command 'fly'; "),
        (("plan", SPARSE, "--speed", "3"), "no option --speed; "),
        (("plan", SPARSE, "--backend", "hal"), "no backend 'hal'; `gapless doctor` lists them"),
        (("compare", SPARSE, "--backends", "native,hal"), "no backend 'hal'"),
        (("compare", SPARSE, "--backends", ""), "--backends is '', must be one name"),
        (("plan", SPARSE, "--objective", "speed"), "'speed' is not known; use one or more of period"),
        (("plan", SPARSE, "--objective", ""), "'' is not known"),
        (("plan", SPARSE, "--objective", "period,period"), "found twice"),
        (("plan", SPARSE, "--objective", "slack"), "slack needs a whole number of permille"),
        (("plan", SPARSE, "--objective", "slack:-5"), "slack needs a whole number"),
        (("plan", SPARSE, "--objective", "slack:5%"), "slack needs a whole number"),
        (("plan", SPARSE, "--objective", "slack:5:speed"), "'speed' is not known"),
        (("tune", SPARSE, "--engine", "simulated", "--store", __file__), "it is no store, or it is damaged"),
        (("plan", SPARSE, "--top", "0"), "--top"),
        (("plan", SPARSE, "--top", "-1"), "--top"),
        (("plan", SPARSE, "--top", "many"), "--top"),
        (("plan", SPARSE, "--time-limit", "0"), "--time-limit is '0', must be at least 1us"),
        (
            ("plan", SPARSE, "--time-limit", "-3s"),
            "--time-limit is '-3s', must be a time with its unit, e.g. 10s",
        ),
        (
            ("plan", SPARSE, "--time-limit", "3"),
            "--time-limit: '3' has no unit (us, ms, s, min, h), e.g. 10s",
        ),
        (("plan", SPARSE, "--time-limit", "99999h"), "must be at most 10000h"),
        (("plan", SPARSE, "--time-limit", "nan"), "--time-limit is 'nan', must be a time"),
        (("plan", SPARSE, "--time-limit", "inf"), "--time-limit is 'inf', must be a time"),
        (("plan", SPARSE, "--memory-limit", "0"), "--memory-limit is '0', must be at least 1KiB"),
        (("plan", SPARSE, "--memory-limit", "512"), "--memory-limit: '512' has no unit (B, kB, MB"),
        (("plan", SPARSE, "--threads", "0"), "--threads"),
        (("plan", SPARSE, "--min-balance", "80"), "--min-balance is '80', must be a percentage"),
        (("plan", SPARSE, "--min-balance", "101%"), "min_balance_permille is 1010"),
        (("plan", SPARSE, "--min-utilisation", "1.25%"), "at most one decimal"),
        (("plan", SPARSE, "--min-units", "-1"), "--min-units"),
        (("plan", SPARSE, "--costs", "hot"), "choose one of isolated, heavy, interpolated"),
        (("plan", SPARSE, "--out", "/nowhere/plan.json"), "the folder /nowhere does not exist"),
        (("plan", SPARSE, "--out", "/"), "it is a folder"),
        (("plan", SPARSE, "--rules", "/nowhere.py"), "cannot read the rules file"),
        (("simulate", SPARSE, "/nowhere.json"), "cannot read /nowhere.json: No such file"),
        (("simulate", SPARSE, "/nowhere.json", "--requests", "0"), "--requests"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_options(cli: Cli, words: tuple[str, ...], message: str) -> None:
    expect(cli(*words), 2, message)
    assert cli(*words, "--json").document["exit_code"] == 2


def test_costs_do_not_apply_to_files(cli: Cli, problem_file: Path) -> None:
    expect(cli("plan", problem_file, "--costs", "heavy"), 2, "chooses between the tables", "is a file")


RULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "syntax error": ("def rule(view):\n    return view.uses('GPU'\n", ("rules.py, line 2", "never closed")),
    "import error": ("import nothing_of_this_name\n", ("rules.py, line 1: ModuleNotFoundError",)),
    "exception": ("x = 1\ny = x / 0\n", ("rules.py, line 2: ZeroDivisionError",)),
    "leaves": ("import sys\nsys.exit(0)\n", ("rules.py, line 2: SystemExit",)),
    "null byte": ("x = 1\0\n", ("rules.py, line 1", "null bytes")),
    "endless recursion": ("def r(view):\n    return r(view)\n", ("line 2: ", "RecursionError")),
    "recursion while loading": ("def _f():\n    return _f()\n_f()\n", ("line 2: RecursionError",)),
    "exception in a rule": ("def r(view):\n    x = 1\n    return x.y\n", ("line 3: ", "AttributeError")),
    "if on an expression": (
        "def r(view):\n    if view.uses('GPU'):\n        return view.uses('Big')\n",
        ("line 2: rule 'r'", "no truth value", "a.implies(b)"),
    ),
    "chained comparison": ("def r(view):\n    return 1 <= view.chunks() <= 2\n", ("line 2: ", "chained")),
    "returns nothing": ("def r(view):\n    view.uses('GPU')\n", ("line 1: rule 'r'", "returned None")),
    "returns a number": ("def r(view):\n    return view.chunks()\n", ("line 1: ", "truth value")),
    "returns True": ("def r(view):\n    return True\n", ("line 1: ", "returned True")),
    "float": ("def r(view):\n    return view.chunks() <= 2.5\n", ("line 2: ", "2.5")),
    "unknown layer": ("def r(view):\n    return view.on('x', 'GPU')\n", ("line 2: ", "no layer 'x'")),
    "unknown unit": ("def r(view):\n    return view.uses('TPU')\n", ("line 2: ", "no unit 'TPU'")),
    "layer out of range": ("def r(view):\n    return view.on(9, 'GPU')\n", ("no layer 9",)),
    "cut after the last": ("def r(view):\n    return view.cut_after('fc')\n", ("the last layer",)),
    "wrong call": ("from gapless.rules import pin\nr = pin('fc')\n", ("line 2: TypeError",)),
    "ready-made, unknown": (
        "from gapless.rules import pin\nr = pin('x', unit='GPU')\n",
        ("rule 'pin(x, GPU)'", "no layer 'x'"),
    ),
    "no rules": ("x = 3\ndef _hidden(view):\n    return view.uses('GPU')\n", ("defines no rules",)),
    "empty": ("", ("defines no rules",)),
    "RULES is no list": ("RULES = 5\n", ("RULES is a int",)),
    "RULES holds no rule": ("RULES = [5]\n", ("RULES[0] is 5, not a rule",)),
    "the same twice": (
        "from gapless.rules import avoid\nRULES = [avoid('GPU'), avoid('GPU')]\n",
        ("rule names must be unique",),
    ),
    "predicate fails": (
        "from gapless import OpaqueRule\nr = OpaqueRule(name='r', predicate=lambda plan: plan.nothing)\n",
        ("rule 'r' failed on the plan", "AttributeError"),
    ),
    "predicate answers 1": (
        "from gapless import OpaqueRule\nr = OpaqueRule(name='r', predicate=lambda plan: 1)\n",
        ("rule 'r' returned 1", "True or False"),
    ),
    "hostile name": (
        "from gapless.rules import Const\ndef r(view):\n    return Const(1)\nr.__name__ = '\\x1b[31m'\n",
        ("cannot be printed",),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_broken_rules_files(cli: Cli, tmp_path: Path, name: str) -> None:
    source, words = RULES[name]
    path = tmp_path / "rules.py"
    path.write_text(source)
    expect(cli("plan", SPARSE, "--rules", path), 2, *words)


def test_a_binary_rules_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "rules.py"
    path.write_bytes(bytes(range(128, 256)))
    expect(cli("plan", SPARSE, "--rules", path), 2, "rules.py")
    expect(cli("plan", SPARSE, "--rules", tmp_path), 2, "Is a directory")


@pytest.mark.parametrize(
    "words",
    [
        "requests coordinate nonsense --platform pixel4 --picture no/where.png",
        "requests coordinate nonsense --platform pixel4 --report no/where.html",
        "requests stream nonsense:3 --picture no/where.png",
        "show nonsense --svg no/where.svg",
        "serve nonsense --trace no/where.json",
        "report nonsense --out no/where.html",
    ],
)
def test_a_file_that_cannot_be_written_is_said_before_anything_is_done(cli: Cli, words: str) -> None:
    run = cli(*words.split())
    assert run.code == 2
    assert run.err.startswith("error: cannot write no/where")
    assert "the folder no does not exist" in run.err


def test_a_name_that_no_file_can_have_is_said_before_anything_is_done(cli: Cli) -> None:
    run = cli("plan", SPARSE, "--out", "x" * 300)
    assert (run.code, run.err) == (2, f"error: cannot write {'x' * 300}: File name too long\n")


@pytest.mark.parametrize("name", ["x.txt", "x"])
@pytest.mark.parametrize("command", ["requests coordinate nonsense", "requests stream nonsense:3"])
def test_a_picture_of_no_kind_is_refused_before_anything_is_done(cli: Cli, command: str, name: str) -> None:
    run = cli(*command.split(), "--picture", name)
    assert run.code == 2
    assert run.err.startswith(f"error: --picture is '{name}', must end with one of .")
    assert ", .png, " in run.err
