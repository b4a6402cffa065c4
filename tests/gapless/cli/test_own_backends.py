"""Backends of the user on the command line: `module:Class` and `file.py:Class`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gapless.cli.base.exits import ExitCode

from ..conftest import Cli

SHARES = Path(__file__).parents[3] / "docs" / "examples" / "shares_backend.py"
SPARSE = "pixel7a/alexnet-sparse"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the backend of the documentation in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shares_backend.py").write_text(SHARES.read_text() + 'print("loaded")\n')
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "path"),
    [("shares_backend.py:SharesBackend", None), ("shares_backend:SharesBackend", ".")],
)
def test_a_real_process_takes_every_form(form: str, path: str | None) -> None:
    root = str(SHARES.parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, [path]), root])}
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "gapless",
            "plan",
            SPARSE,
            "--backend",
            form,
            "--memory-limit",
            "1GiB",
            "--json",
        ],
        env={**environment, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    document = json.loads(run.stdout)
    assert (document["backend"], document["status"], document["objective"]) == ("shares", "feasible", 7648)
    assert run.stderr == "loaded\n"


def test_they_are_compared_with_others(cli: Cli) -> None:
    run = cli("compare", SPARSE, "--backends", "native, shares_backend.py:SharesBackend", "--json")
    assert run.code == ExitCode.OK
    assert [(r["backend"], r["objective"]) for r in run.document["results"]] == [
        ("native", 7648),
        ("shares", 7648),
    ]


def test_they_are_in_reports(cli: Cli, folder: Path) -> None:
    own = "native,shares_backend.py:SharesBackend"
    assert cli("report", SPARSE, "--backends", own, "--out", folder / "page.html").code == ExitCode.OK
    assert ">shares<" in (folder / "page.html").read_text()


def test_one_that_was_asked_for_and_is_not_there_is_a_failure(cli: Cli, folder: Path) -> None:
    source = SHARES.read_text().replace(
        "Availability(ok=True)", "Availability(ok=False, reason='no licence')"
    )
    (folder / "missing.py").write_text(source)
    run = cli("compare", SPARSE, "--backends", "native,missing.py:SharesBackend")
    assert run.code == ExitCode.FAILURE
    assert "no licence" in run.out


def test_ctrl_c_keeps_what_it_had_shown(cli: Cli, folder: Path) -> None:
    head, _, tail = SHARES.read_text().partition("        return Claim(")
    body, _, rest = tail.partition("\n        )\n")
    source = f"{head}        claim = Claim({body}\n        )\n"
    source += f"        options.publish(claim)\n        raise KeyboardInterrupt\n{rest}"
    (folder / "stopping.py").write_text(source)
    run = cli("compare", SPARSE, "--backends", "native,stopping.py:SharesBackend", "--json")
    assert run.code == ExitCode.INTERRUPTED
    assert [r["objective"] for r in run.document["results"]] == [7648, 7648]
    run = cli("plan", SPARSE, "--backend", "stopping.py:SharesBackend", "--json")
    assert (run.code, run.document["objective"]) == (ExitCode.INTERRUPTED, 7648)


WRONG = """
class Half:
    name = "half"
class Raises:
    def __init__(self):
        raise OSError("no licence")
"""


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("nofile.py:X", "there is no file nofile.py"),
        ("shares_backend.py", "name the class in the file: shares_backend.py:CLASS"),
        ("shares_backend.py:Shares", "has no 'Shares'; did you mean SharesBackend?"),
        ("wrong.py:Half", "Half() is not a backend: it has no 'capabilities', 'availability', 'solve'"),
        ("wrong.py:Raises", "Raises() raised OSError: no licence"),
        ("garbled.py:X", "garbled.py, line 1: "),
        ("nowhere_at_all:X", "No module named 'nowhere_at_all'"),
        ("os:sep", "sep is not a backend"),
        (":", "write module:Class or file.py:Class"),
        ("hal", "one of your own is module:Class or file.py:Class"),
    ],
)
@pytest.mark.parametrize(
    "command", [("plan", "--backend"), ("compare", "--backends"), ("report", "--backends")]
)
def test_what_cannot_be_used_is_one_clear_message(
    cli: Cli, folder: Path, command: tuple[str, str], form: str, words: str
) -> None:
    (folder / "wrong.py").write_text(WRONG)
    (folder / "garbled.py").write_text("def f(:\n")
    run = cli(command[0], SPARSE, command[1], form)
    assert run.code == ExitCode.USAGE
    assert run.err.removeprefix("loaded\n").startswith("error: ")
    assert words in run.err
    assert "Traceback" not in run.err
    assert run.out == ""
