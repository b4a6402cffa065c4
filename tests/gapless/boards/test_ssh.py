"""Ways to a board, and what is said where there is none."""

from __future__ import annotations

import shlex
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from gapless.answers.doctor import board_blocks
from gapless.boards.checks import BoardDiagnosis, Check, _of_document, diagnose_board
from gapless.boards.running import run_there
from gapless.boards.ssh import Address
from gapless.cli.base.exits import ExitCode
from gapless.formulations.errors import BoardError, InvalidInputError
from gapless.question.subjects import Inputs
from gapless.version import __version__
from gapless.view.terminal.blocks import blocks_view
from tests.sshd import Sshd

from ..conftest import Cli

HERE = Address(destination="board")


def lacking(address: Address) -> list[str]:
    """Return what a board lacks: all that comes before it is there."""
    *before, last = diagnose_board(address).checks
    assert all(check.ok for check in before)
    return [] if last.ok else [last.what]


def shim(board: Sshd, folder: Path, before: str) -> str:
    """Return a command that runs Python code as Python does, after some lines of ours."""
    path = folder / "shim.py"
    path.write_text(f"import sys\n{before}\nsys.path[0] = ''\nexec(sys.argv[2])\n")
    return f"{board.variables['GAPLESS_REMOTE_PYTHON']} {shlex.quote(str(path))}"


@pytest.mark.parametrize(
    "destination", ["", "-oProxyCommand=touch pwned", "two words", "new\nline", " board", "a\0"]
)
def test_what_can_be_no_destination(destination: str) -> None:
    with pytest.raises(InvalidInputError, match="names no board"):
        Address(destination=destination)


def test_a_shell_there_gets_words_whole() -> None:
    words = HERE.command("echo", "a b", "$(reboot)", "it's")
    assert words[0] == "ssh"
    assert words[-2] == "board"
    assert shlex.split(words[-1]) == ["echo", "a b", "$(reboot)", "it's"]


def test_options_of_ssh_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_SSH", "ssh -p 2222 -o 'ProxyCommand nc %h'")
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", "gapless-env/bin/python")
    found = Address.of("pi@board")
    assert found.command("true")[:5] == ["ssh", "-p", "2222", "-o", "ProxyCommand nc %h"]
    assert found.python == ("gapless-env/bin/python",)
    monkeypatch.setenv("GAPLESS_SSH", "ssh 'half")
    with pytest.raises(InvalidInputError, match="GAPLESS_SSH"):
        Address.of("pi@board")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["alias", "address", "url", "jump"])
def test_ways_to_a_board(cli: Cli, board: Sshd, form: str, tmp_path: Path) -> None:
    """An alias, an address with the port as an option, an ssh URL, and a board behind another one."""
    destination = {
        "alias": "board",
        "address": "127.0.0.1",
        "url": f"ssh://127.0.0.1:{board.port}",
        "jump": "behind",
    }
    out = tmp_path / "platform.json"
    with pytest.MonkeyPatch.context() as patch:
        if form == "address":
            patch.setenv("GAPLESS_SSH", f"{board.variables['GAPLESS_SSH']} -p {board.port}")
        run = cli("device", "detect", "--on", destination[form], "--engine", "callable", "--out", out)
    assert run.code == 0, run.err
    assert '"gapless.platform"' in out.read_text()
    assert "excludes" in run.out


@pytest.mark.parametrize(
    ("destination", "words"),
    [
        ("stranger", "ssh-copy-id stranger"),
        ("changed", "ssh-keygen -R"),
        ("ssh://127.0.0.1:1", "no ssh server listens"),
        ("nosuch.invalid", "no host has this name"),
    ],
)
def test_why_there_is_no_way(cli: Cli, board: Sshd, destination: str, words: str) -> None:
    run = cli("profile", "squeezenet", "--on", destination, "--out", board.folder / "never")
    assert run.code == ExitCode.FAILURE
    assert f"cannot reach {destination}" in run.err
    assert words in run.err
    assert not (board.folder / "never").exists()
    diagnosed = cli("doctor", "--on", destination)
    assert diagnosed.code == ExitCode.FAILURE
    assert "missing" in diagnosed.out


def test_a_program_that_is_not_there(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_SSH", "no-such-ssh")
    run = cli("device", "detect", "--on", "board")
    assert (run.code, "no-such-ssh cannot be started" in run.err) == (ExitCode.FAILURE, True)


@pytest.mark.slow
def test_doctor_finds_everything(cli: Cli, board: Sshd) -> None:
    run = cli("doctor", "--on", "board", "--json")
    assert (run.code, run.document["ok"]) == (0, True), run.out
    assert [check["what"] for check in run.document["checks"]] == ["ssh", "Python", "gapless", "engine"]
    assert run.document["diagnosis"]["format"] == "gapless.diagnosis"
    found = BoardDiagnosis(
        board="board",
        checks=tuple(Check(**check) for check in run.document["checks"]),
        diagnosis=run.document["diagnosis"],
    )
    with (text := StringIO()) as stream:
        Console(file=stream, width=200).print(blocks_view(board_blocks(found)))
        assert "The board can profile, tune and run." in text.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("python", "missing", "words"),
    [
        ("no-such-python", "Python", "cannot run no-such-python"),
        (f"{sys.executable} -I -S", "gapless", "not installed"),
    ],
)
def test_doctor_says_what_is_missing(  # noqa: PLR0917 - pytest fills them in
    cli: Cli, board: Sshd, monkeypatch: pytest.MonkeyPatch, python: str, missing: str, words: str
) -> None:
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", python)
    assert lacking(Address.of("board")) == [missing]
    run = cli("doctor", "--on", "board")
    assert run.code == ExitCode.FAILURE
    assert words in " ".join(run.out.split())
    assert "board " in run.out.partition("what to do about")[2]
    refused = cli("device", "detect", "--on", "board")
    assert refused.code == ExitCode.FAILURE
    assert "error: board" in refused.err


@pytest.mark.parametrize(
    ("before", "missing", "words"),
    [
        ("sys.version_info = (3, 9, 2, 'final', 0)", "Python", "has Python 3.9.2"),
        (
            "sys.modules['gapless.boards.agent'] = None",
            "gapless",
            "agent",
        ),
    ],
)
def test_boards_with_something_old(  # noqa: PLR0917 - pytest fills them in
    board: Sshd,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    before: str,
    missing: str,
    words: str,
) -> None:
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", shim(board, tmp_path, before))
    address = Address.of("board")
    assert lacking(address) == [missing]
    with pytest.raises(BoardError, match=words):
        run_there(address, "tools version", ())


@pytest.mark.slow
def test_another_version_is_a_note_and_another_protocol_an_error(
    cli: Cli, board: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(
        "GAPLESS_REMOTE_PYTHON", shim(board, tmp_path, "import gapless.version as v; v.__version__ = '9.9'")
    )
    ran = run_there(Address.of("board"), "tools version", ())
    assert "9.9" in ran.notes[0]
    assert ran.document()["gapless"] == __version__
    old = "import gapless.boards.channel as c; c.PROTOCOL = 0"
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", shim(board, tmp_path, old))
    with pytest.raises(BoardError, match="do not understand each other"):
        run_there(Address.of("board"), "tools version", ())


def test_a_board_without_an_engine() -> None:
    engines = [
        {"name": "mnn", "ok": False, "reason": "MNN is not installed"},
        {"name": "callable", "ok": True},
    ]
    gapless, engine = _of_document(HERE, {"gapless": "9.9", "engines": engines})
    assert (gapless.ok, engine.ok) == (False, False)
    assert engine.found == "MNN is not installed"
    assert engine.cure == ("ssh board \"python3 -m pip install 'gapless[mnn,zoo]'\"",)


@pytest.mark.slow
def test_what_the_login_shell_prints_does_no_harm(board: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    python = board.variables["GAPLESS_REMOTE_PYTHON"]
    loud = ["sh", "-c", f'echo "Welcome! gapless-board"; echo; exec {python} "$@"', "sh"]
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", shlex.join(loud))
    assert run_there(Address.of("board"), "tools version", ()).code == 0


def test_a_board_without_room(board: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says so in the middle of a file, when it has stopped reading."""
    python = board.variables["GAPLESS_REMOTE_PYTHON"]
    small = shlex.join(["sh", "-c", f'ulimit -f 1000; exec {python} "$@"', "sh"])
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", small)
    path = tmp_path / "large.npz"
    path.write_bytes(bytes(20_000_000))
    with pytest.raises(BoardError, match=r"board refuses while files were copied to board: .*File too large"):
        run_there(Address.of("board"), "tools version", [(Inputs.field_named("feed"), path)])
    assert not list((board.shelf / "files").glob(".unfinished*"))


def test_a_board_whose_folder_cannot_be_written(board: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    python = board.variables["GAPLESS_REMOTE_PYTHON"].replace(str(board.cache), "/proc/none")
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", python)
    with pytest.raises(BoardError, match="/proc/none"):
        run_there(Address.of("board"), "tools version", ())


def test_a_board_that_talks_nonsense(board: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAPLESS_REMOTE_PYTHON", "sh -c 'echo gapless-board ready 3.11; yes' sh")
    with pytest.raises(BoardError, match="does not understand"):
        run_there(Address.of("board"), "tools version", ())
