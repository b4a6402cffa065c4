"""Boards that say what no gapless says: too much, the wrong things, nothing; an error of the board each."""

from __future__ import annotations

import hashlib
import io
import json
import signal
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gapless.answers.doctor import board_blocks
from gapless.boards import channel, running
from gapless.boards.board import Board
from gapless.boards.checks import diagnose_board
from gapless.boards.folder import harmless
from gapless.boards.running import run_there
from gapless.boards.ssh import Address
from gapless.cli.options import boards
from gapless.executor.progress import Step
from gapless.formulations.errors import (
    BoardError,
    ExpressionError,
    InvalidInputError,
    InvalidPlanError,
    ProfilingError,
)
from gapless.question.subjects import Folder, Inputs
from gapless.view.terminal.blocks import blocks_view

from ..conftest import Cli

READY = {"protocol": channel.PROTOCOL, "gapless": "0.1.0", "root": "/srv/board"}
NEED: dict[str, Any] = {"groups": [], "seed": False}
STEERING = "\x1b]0;owned\x07\x1b[2J\x1b[31m\u202e\u2066evil\u200b\x9b31m"
"""Control characters and sequences, and characters that turn the direction of writing."""


def line(kind: str, **content: Any) -> bytes:
    return json.dumps({"is": kind, **content}).encode() + b"\n"


def greeting(ready: Any = READY) -> bytes:
    text = json.dumps(ready).encode()
    return struct.pack(">cI", b"R", len(text)) + text


def listed(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def said(  # noqa: PLR0917 - what it says, in its order
    out: bytes = b"{}",
    ready: Any = READY,
    need: Any = NEED,
    ended: Any = None,
    more: bytes = b"",
    files: Mapping[str, bytes] = {},
) -> bytes:
    """Return all that a board says while a command runs on it."""
    every = {"answer.json": out, **files}
    found = {"code": 0, "files": [listed(name, content) for name, content in every.items()]}
    found |= ended or {}
    contents = (line("Content") + content for content in every.values())
    return b"".join([greeting(ready), line("Need", **need), more, line("Ended", **found), *contents])


def strange(
    folder: Path, *says: bytes, greeting: str = "ready 3.11.2", then: str = "sys.stdin.read()"
) -> Address:
    """Return a board that says some bytes, and then does something."""
    for number, text in enumerate(says):
        (folder / f"says-{number}").write_bytes(text)
    path = folder / "ssh.py"
    path.write_text(
        "import sys, time\n"
        f"sys.stdout.write('gapless-board ' + {greeting!r} + chr(10))\n"
        "sys.stdout.flush()\n"
        f"for number in range({len(says)}):\n"
        f"    sys.stdout.buffer.write(open({str(folder)!r} + f'/says-{{number}}', 'rb').read())\n"
        "    sys.stdout.flush()\n"
        f"{then}\n"
    )
    return Address(destination="strange", ssh=(sys.executable, str(path)))


def test_what_is_right_is_taken(tmp_path: Path) -> None:
    ran = run_there(strange(tmp_path, said(b'{"a": 1}')), "tools version", ())
    assert (ran.code, ran.document()) == (0, {"a": 1})


def test_an_older_gapless_is_refused_by_its_version(tmp_path: Path) -> None:
    """What version 3 of the protocol began with, and then waited for an answer."""
    older = greeting({"protocol": 3, "gapless": "0.0.9", "root": "/srv/board", "python": "3.11"})
    with pytest.raises(BoardError, match=r"has gapless 0\.0\.9, here is .* do not understand each other"):
        run_there(strange(tmp_path, older), "tools version", ())


def test_a_command_that_was_killed_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(BoardError, match=r"killed on strange \(signal 9\): it may lack memory"):
        Board(strange(tmp_path, said(b"", ended={"code": 137}))).this_device()


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        ("InvalidInputError", 2, InvalidInputError),
        ("ProfilingError", 5, ProfilingError),
        ("InvalidPlanError", 5, InvalidPlanError),
        ("MalformedPlanError", 5, BoardError),  # which is made of a plan
        ("ExpressionError", 5, ExpressionError),
        ("KeyError", 1, BoardError),
        ("KeyboardInterrupt", 130, KeyboardInterrupt),
    ],
)
def test_errors_there_are_errors_here(
    tmp_path: Path, error: str, code: int, kind: type[BaseException]
) -> None:
    out = {"format": "gapless.error", "error": error, "message": "it is so"}
    with pytest.raises(kind) as caught:
        Board(strange(tmp_path, said(json.dumps(out).encode(), ended={"code": code}))).this_device()
    assert type(caught.value) is kind
    assert kind is KeyboardInterrupt or "it is so" in str(caught.value)


def test_steps_of_a_board_are_steps_here(tmp_path: Path) -> None:
    steps, shown = list[Step](), list[str]()
    told = [
        {"text": f"measuring {STEERING}", "done": 1, "total": 2},
        {"text": "too much", "done": 10**300, "total": 1},
        {"text": "backwards", "done": -1, "total": 1},
        {"text": "no end", "done": 1, "total": None},
        {"done": 1},
    ]
    more = b"".join(line("Line", text=json.dumps(each)) for each in told)
    run_there(strange(tmp_path, said(more=more)), "tools version", (), report=steps.append, show=shown.append)
    found = [(step.text, step.done, step.total) for step in steps if "strange" not in step.text]
    assert found == [(f"measuring {harmless(STEERING)}", 1, 2), ("backwards", 0, None), ("no end", 1, None)]
    assert len(shown) == 2  # a number that is too long, and a step without a text: lines of text


@pytest.mark.parametrize("what", ["lines", "answer"])
def test_what_a_board_prints_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(running, "MAX_OUTPUT_BYTES", 1000)
    flood = said(more=4 * line("Line", text=300 * "x")) if what == "lines" else said(1001 * b" ")
    with pytest.raises(BoardError, match=r"(prints more than 1000|wants to send 1001) bytes.*: refused"):
        run_there(strange(tmp_path, flood), "tools version", ())


def test_what_ssh_complains_of_is_bounded(tmp_path: Path) -> None:
    flood = "for _ in range(2000): sys.stderr.write(4096 * 'x' + chr(10))\n"
    flood += "sys.stderr.write('the last')\nsys.exit(255)"
    with pytest.raises(BoardError, match="the last") as caught:
        run_there(strange(tmp_path, b"", then=flood), "tools version", ())
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize(
    ("what", "must"),
    [
        ({"ended": {"code": "0"}}, "Ended is not valid\n  - code"),
        ({"ended": {"code": True}}, "Ended is not valid\n  - code"),
        ({"ended": {"code": -9}}, "code is -9, must be an exit code from 0 to 255"),
        ({"ended": {"code": 10**400}}, "is not a number"),
        ({"ended": {"code": None}}, "Ended is not valid\n  - code"),
        ({"ended": {"files": {}}}, "Ended is not valid\n  - files"),
        ({"ended": {"files": []}}, "no answer of the command"),
        ({"need": {"groups": 5, "seed": False}}, "Need is not valid\n  - groups"),
        ({"need": {"groups": [0], "seed": False}}, r"groups are \(0,\), must be numbers below 0"),
        ({"need": {"groups": [], "seed": "no"}}, "Need is not valid\n  - seed"),
        ({"ready": {**READY, "root": 7}}, "Ready is not valid\n  - root"),
        ({"ready": {**READY, "root": "/"}}, "root is '/', must be the path of a folder"),
        ({"ready": {**READY, "root": ""}}, "root is '', must be"),
        ({"more": line("About", run={})}, r"a run\.json that cannot be used"),
        ({"more": line("Want")}, "Want while a command runs"),
    ],
)
def test_messages_of_the_wrong_types_are_of_the_board(
    tmp_path: Path, what: dict[str, Any], must: str
) -> None:
    with pytest.raises(BoardError, match=f"(?s)strange sen.*{must}"):
        run_there(strange(tmp_path, said(**what)), "tools version", ())


@pytest.mark.parametrize(
    "changed",
    [
        {"engines": 5},
        {"engines": [5]},
        {"engines": [{"name": 5, "ok": True}]},
        {"engines": [{"name": "mnn", "ok": "yes"}]},
        {"backends": {"a": 1}},
        {"permissions": "all"},
        {"permissions": [None]},
        {"gapless": None},
        {"device": 7},
    ],
)
def test_a_diagnosis_of_the_wrong_types_is_of_the_board(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    right = {"gapless": "0.1.0", "device": "pi", "python": "3.11", "engines": [], "backends": []}
    address = strange(tmp_path, said(json.dumps({**right, **changed}).encode()))
    monkeypatch.setenv("GAPLESS_SSH", " ".join(address.ssh))
    run = cli("doctor", "--on", "strange")
    assert "strange sent an answer of `gapless doctor` that is not valid" in " ".join(run.out.split())
    assert "gapless has a bug" not in run.err
    found = diagnose_board(address)
    assert (found.ok, found.diagnosis) == (False, None)


@pytest.mark.parametrize("out", [b"", b"[]", b"nothing", b'{"a": NaN}', b"[" * 100_000])
def test_an_answer_that_is_no_document_is_of_the_board(tmp_path: Path, out: bytes) -> None:
    with pytest.raises(BoardError, match="the board sent no answer"):
        run_there(strange(tmp_path, said(out)), "tools version", ()).document()


@pytest.mark.parametrize(
    ("document", "code"),
    [
        ({"units": 5}, 0),
        ({"units": [5]}, 0),
        ({"units": [{}]}, 0),
        ({"units": [{"unit": "cpu", "period_us": "fast"}]}, 0),
        ({"format": "gapless.error", "error": 5, "message": "x"}, 2),
        ({"format": "gapless.error", "error": "InvalidInputError", "message": "x", "problems": 5}, 2),
    ],
)
def test_results_of_the_wrong_types_are_of_the_board(tmp_path: Path, document: Any, code: int) -> None:
    address = strange(tmp_path, said(json.dumps(document).encode(), ended={"code": code}))
    with pytest.raises(BoardError, match="strange sent"):
        Board(address).bench_engine("squeezenet")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{}", "its format is None, not 'gapless.plan'"),
        (b'{"format": "gapless.plan", "version": 1, "chunks": 5}', "chunks"),
        (b"nothing", r"plan\.json"),
    ],
)
def test_files_of_the_wrong_types_are_of_the_board(tmp_path: Path, content: bytes, why: str) -> None:
    address = strange(tmp_path, said(files={"plan.json": content}))
    out = tmp_path / "out"
    with pytest.raises(BoardError, match=rf"(?s)strange sent a plan\.json that cannot be used.*{why}"):
        run_there(address, "tune", (), ["squeezenet"], Folder(out=out))
    assert not (out / "plan.json").exists()


def steers(text: str) -> bool:
    return any(char in text for char in "\x1b\x07\u202e\u2066\u200b\x9b")


def refused(folder: Path) -> str:
    with pytest.raises(BoardError) as caught:
        run_there(strange(folder, line("Refused", message=STEERING)), "tools version", ())
    return str(caught.value)


def not_reached(folder: Path) -> str:
    with pytest.raises(BoardError) as caught:
        run_there(strange(folder, then=f"sys.stderr.write({STEERING!r})\nsys.exit(255)"), "tools version", ())
    return str(caught.value)


def greeted(folder: Path) -> str:
    with pytest.raises(BoardError) as caught:
        run_there(strange(folder, greeting=f"{STEERING} {STEERING}"), "tools version", ())
    return str(caught.value)


def noted(folder: Path) -> str:
    return "".join(
        run_there(strange(folder, said(ready={**READY, "gapless": STEERING})), "tools version", ()).notes
    )


def documented(folder: Path) -> str:
    out = json.dumps({STEERING: [STEERING]}).encode()
    return json.dumps(
        run_there(strange(folder, said(out)), "tools version", ()).document(), ensure_ascii=False
    )


def diagnosed(folder: Path) -> str:
    report = {"name": STEERING, "ok": False, "reason": STEERING}
    document = {"gapless": STEERING, "device": STEERING, "engines": [report], "permissions": [report]}
    out = io.StringIO()
    address = strange(folder, said(json.dumps(document).encode()))
    Console(file=out, width=200).print(blocks_view(board_blocks(diagnose_board(address))))
    return out.getvalue()


@pytest.mark.parametrize("told", [refused, not_reached, greeted, noted, documented, diagnosed])
def test_nothing_that_a_board_says_steers_the_terminal(tmp_path: Path, told: Any) -> None:
    text = told(tmp_path)
    assert "evil" in text
    assert not steers(text)


def test_lines_of_a_board_are_shown_without_what_steers(tmp_path: Path) -> None:
    shown: list[str] = []
    more = line("Line", text=STEERING)
    run_there(strange(tmp_path, said(more=more)), "tools version", (), show=shown.append)
    assert shown == ["]0;owned[2J[31mevil31m\n"]


@pytest.mark.slow
@pytest.mark.parametrize("says", [b"", greeting(), said()[:-30]])
def test_an_agent_that_hangs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bytes) -> None:
    monkeypatch.setattr(channel, "SILENCE_S", 1.0)
    address = strange(tmp_path, says, then="time.sleep(600)")
    with pytest.raises(BoardError, match=r"strange has not given a sign of life for 1 s, while"):
        run_there(address, "tools version", ())


@pytest.mark.slow
def test_an_agent_that_hangs_while_it_is_given_files_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "SILENCE_S", 1.0)
    large = tmp_path / "large.npz"
    large.write_bytes(bytes(3_000_000))
    says = greeting() + line("Need", groups=[0], seed=False)
    address = strange(tmp_path, says, then="time.sleep(600)")
    with pytest.raises(BoardError, match=r"sign of life for 1 s, while files were copied"):
        run_there(address, "tools version", [(Inputs.field_named("feed"), large)])


@pytest.mark.slow
def test_a_slow_command_is_no_hung_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channel, "SILENCE_S", 2.0)
    beats = (
        "for _ in range(8):\n"
        "    time.sleep(0.5)\n"
        "    sys.stdout.write(chr(10))\n"
        "    sys.stdout.flush()\n"
        f"sys.stdout.buffer.write(open({str(tmp_path / 'rest')!r}, 'rb').read())\n"
        "sys.stdout.flush()\nsys.stdin.read()"
    )
    whole = said()
    ends_at = whole.index(b'{"is": "Ended"')
    (tmp_path / "rest").write_bytes(whole[ends_at:])
    assert run_there(strange(tmp_path, whole[:ends_at], then=beats), "tools version", ()).code == 0


def test_ctrl_c_in_the_middle_of_a_line_ends_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raw(io.RawIOBase):
        pressed = False

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            if not self.pressed:
                self.pressed = True
                signal.raise_signal(signal.SIGUSR1)
            return len(data)

    stream = io.TextIOWrapper(io.BufferedWriter(Raw()), line_buffering=True)
    monkeypatch.setattr(sys, "stderr", stream)
    before = signal.signal(signal.SIGUSR1, lambda number, frame: boards._show("interrupted\n"))
    try:
        boards._show("a line\n")
    finally:
        signal.signal(signal.SIGUSR1, before)
