"""The agent of a board without an ssh: what it does when nothing is heard, and on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from gapless.boards import frames
from tests.processes import alive, descendants, soon
from tests.sshd import Sshd

AGENT = (
    "import sys; from gapless.boards import frames; frames.SILENCE_S = {silence}; "
    "from gapless.boards.agent import main; "
    "sys.stdout.write('greeting\\n'); sys.stdout.flush(); sys.exit(main())"
)
RUN = "0123456789abcdef"
SLEEP = "import time\ntime.sleep(600)\n"


def answer(stream: IO[bytes], reader: frames.Frames) -> tuple[bytes, bytes]:
    """Return the next frame, byte by byte."""
    while True:
        data = os.read(stream.fileno(), 1)
        if not data:
            return b"", b""
        for found in reader.feed(data):
            return found


@pytest.mark.slow
def test_a_command_ends_when_nothing_is_heard(tmp_path: Path) -> None:
    """A connection that is dead without being closed: the other side has not said a word for too long."""
    rules = tmp_path / "rules.py"
    rules.write_text(SLEEP)
    process = subprocess.Popen(
        [sys.executable, "-c", AGENT.format(silence=4)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={**os.environ, "GAPLESS_CACHE": str(tmp_path / "cache")},
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"greeting\n"
        reader = frames.Frames()
        assert answer(process.stdout, reader)[0] == frames.READY
        offer = {"groups": [], "run": RUN, "fresh": True, "seed": []}
        process.stdin.write(frames.message(frames.OFFER, offer))
        assert [answer(process.stdout, reader)[0] for _ in range(2)] == [frames.NEED, frames.TAKEN]
        words = ["plan", "pixel7a/octree", f"--rules={rules}"]
        process.stdin.write(frames.message(frames.GO, {"words": words, "about": "run.json"}))
        assert soon(lambda: bool(descendants(process.pid)))
        (child, *_) = descendants(process.pid)
        for _ in range(6):  # as long as there are signs of life, it goes on
            time.sleep(1)
            process.stdin.write(frames.frame(frames.ALIVE))
            assert alive(child)
        assert process.wait(timeout=60) == 1
        assert soon(lambda: not alive(child))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (frames.message(frames.OFFER, {"groups": [], "run": "../../etc", "fresh": True}), "no name of a run"),
        (frames.message(frames.GO, {"words": ["tools", "version"]}), "was expected"),
        (
            frames.message(
                frames.OFFER,
                {
                    "groups": [[{"name": "../x", "size_bytes": 1, "sha256": "0" * 64}]],
                    "run": RUN,
                    "fresh": True,
                },
            ),
            "no description of a file",
        ),
        (b"GET / HTTP/1.1\r\n\r\n", "message of"),
    ],
)
def test_an_agent_refuses_what_makes_no_sense(tmp_path: Path, message: bytes, words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", AGENT.format(silence=60)],
        input=message,
        stdout=subprocess.PIPE,
        env={**os.environ, "GAPLESS_CACHE": str(tmp_path / "cache")},
        check=False,
    )
    assert run.returncode == 1
    said = list(frames.Frames().feed(run.stdout.partition(b"\n")[2]))
    kind, payload = said[-1]
    assert kind == frames.REFUSED
    assert words in frames.content_of(payload)["message"]
    assert not (tmp_path / "etc").exists()


@pytest.mark.slow
def test_on_a_terminal_the_board_writes_as_for_one(board: Sshd) -> None:
    """Colours as here, the width of the terminal here, and one line break a line."""
    ours, its = pty.openpty()
    os.environ.setdefault("TERM", "xterm")
    command = [sys.executable, "-m", "gapless", "device", "detect", "--engine", "callable", "--on", "board"]
    with subprocess.Popen(command, stdout=its, stderr=its, stdin=subprocess.DEVNULL) as process:
        os.close(its)
        shown = b""
        while data := _read(ours):
            shown += data
    os.close(ours)
    assert process.returncode == 0, shown
    assert b"\x1b[1m" in shown  # bold headings
    assert b"excludes" in shown
    assert b"\r\r\n" not in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # how a terminal ends
        return b""
