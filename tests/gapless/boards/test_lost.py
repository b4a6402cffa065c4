"""Commands on a board that are interrupted or lose their connection: nothing is lost or goes on alone."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from gapless.cli.base.exits import ExitCode
from gapless.files.run_document import RunState, read_run
from tests.executor.pipelines import write
from tests.processes import alive, descendants, soon
from tests.sshd import Sshd

from ..conftest import Cli

pytestmark = [pytest.mark.measures, pytest.mark.slow]

SLOW = """
import time

def first(x):
    time.sleep(0.02)
    return 2 * x

def second(y):
    time.sleep(0.02)
    return y + 1

P = CallableModel(
    name="slow",
    inputs=(X,),
    layers=(
        CallableLayer(name="first", variants={"*": first}),
        CallableLayer(name="second", variants={"*": second}),
    ),
)
"""
"""A pipeline that takes its time, so that its runs can be met while they are at work."""


@pytest.fixture
def words(tmp_path: Path, unit: str) -> list[str]:
    """The command that is interrupted."""
    locator, out = write(tmp_path, SLOW), str(tmp_path / "out")
    return ["tune", locator, "--units", unit, "--top", "1", "--budget", "2s", "--on", "board", "--out", out]


def kept(folder: Path) -> set[tuple[str, ...]]:
    """Return what the stores below a folder hold: what it is about, and when it was recorded."""
    found: set[tuple[str, ...]] = set()
    for path in folder.rglob("store.sqlite"):
        try:
            with closing(sqlite3.connect(path.absolute().as_uri() + "?mode=ro", uri=True)) as connection:
                found |= set(connection.execute("SELECT kind, key, created FROM ledger"))
                found |= set(
                    connection.execute("SELECT candidate, rung || '.' || round, created FROM trials")
                )
        except sqlite3.Error:  # it is just being made
            continue
    return found


@contextmanager
def started(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Run the command as users do."""
    with subprocess.Popen(
        [sys.executable, "-m", "gapless", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def folder_there(board: Sshd, out: Path) -> Path:
    """Return the folder of a run on the board."""
    about = read_run(out)
    assert about is not None
    assert about.board is not None
    return board.shelf / "runs" / about.board.run


def at_work(board: Sshd, process: subprocess.Popen[str], out: Path) -> list[int]:
    """Wait until something was measured, and return the processes of the board."""
    begun = soon(lambda: (out / "run.json").is_file() or process.poll() is not None)
    assert begun, "nothing begins"
    assert process.poll() is None, process.communicate()
    there = folder_there(board, out)
    measured = soon(lambda: bool(kept(there)) or process.poll() is not None)
    assert measured, "nothing is measured"
    assert process.poll() is None, process.communicate()
    return descendants(board.pid)


def test_a_lost_connection_loses_nothing(cli: Cli, board: Sshd, words: list[str], tmp_path: Path) -> None:
    with started(words) as process:
        there = at_work(board, process, tmp_path / "out")
        before = kept(folder_there(board, tmp_path / "out"))
        for pid in there:
            with suppress(FileNotFoundError, ProcessLookupError):  # some last only for a moment
                if "sshd" in Path(f"/proc/{pid}/comm").read_text():
                    os.kill(pid, signal.SIGKILL)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == ExitCode.FAILURE
    assert "the connection to board was lost while `gapless tune` ran on board" in error
    assert "the same command with --resume goes on" in error
    cut = read_run(tmp_path / "out")
    assert cut is not None
    assert cut.standing is RunState.INTERRUPTED
    run = cli(*words, "--resume")  # at once: what the connection has left behind ends first
    assert run.code == 0, run.err
    assert not any(map(alive, there))
    assert before < kept(tmp_path / "out")  # the same measurements, with others: none was taken again
    there_still = folder_there(board, tmp_path / "out")
    assert soon(lambda: not there_still.exists())
    finished = read_run(tmp_path / "out")
    assert finished is not None
    assert finished.standing is RunState.FINISHED


def test_ctrl_c_stops_in_order_and_keeps_what_is_there(
    cli: Cli, board: Sshd, words: list[str], tmp_path: Path
) -> None:
    with started(words) as process:
        there = at_work(board, process, tmp_path / "out")
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted: board ends in order" in error
    assert "--resume goes on" in error
    assert soon(lambda: not any(map(alive, there)))
    about, measured = read_run(tmp_path / "out"), kept(tmp_path / "out")
    assert about is not None
    assert about.standing is RunState.INTERRUPTED
    assert measured
    there_still = folder_there(board, tmp_path / "out")
    assert soon(lambda: not there_still.exists())  # all of it is here
    assert cli(*words, "--resume").code == 0
    assert measured < kept(tmp_path / "out")


def test_a_second_ctrl_c_leaves_and_the_board_ends_alone(
    board: Sshd, words: list[str], tmp_path: Path
) -> None:
    with started(words) as process:
        there = at_work(board, process, tmp_path / "out")
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert soon(lambda: "interrupted" in (process.stderr.readline() if process.stderr else ""))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode in (ExitCode.INTERRUPTED, ExitCode.OK)
    assert soon(lambda: not any(map(alive, there)))


def test_a_killed_command_ends_on_the_board(board: Sshd, words: list[str], tmp_path: Path) -> None:
    with started(words) as process:
        there = at_work(board, process, tmp_path / "out")
        process.kill()
        assert soon(lambda: not any(map(alive, there)))
    cut = read_run(tmp_path / "out")
    assert cut is not None
    assert cut.standing is RunState.INTERRUPTED
    assert kept(folder_there(board, tmp_path / "out"))
