"""The agent of a board without an ssh: what it does when nothing is heard, or what makes no sense."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gapless.boards import channel
from gapless.boards.channel import Channel, Need, Order
from tests.processes import alive, descendants, soon

AGENT = (
    "import sys; from gapless.boards import channel; channel.SILENCE_S = {silence}; "
    "from gapless.boards.agent import main; "
    "sys.stdout.write('greeting\\n'); sys.stdout.flush(); sys.exit(main())"
)
RUN = "0123456789abcdef"
NOTHING: dict[str, Any] = {"fresh": True, "groups": (), "seed": ()}
SLEEP = "import time\ntime.sleep(600)\n"


class Here(Channel):
    """The other end of an agent."""

    def lost(self) -> BaseException:
        return EOFError()

    def hung(self) -> BaseException:
        return TimeoutError()

    def wrong(self, why: str) -> BaseException:
        return ValueError(why)


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
        here = Here(process.stdout.fileno(), process.stdin.fileno())
        assert here.ready().protocol == channel.PROTOCOL
        here.say(Order(words=("plan", "pixel7a/octree", f"--rules={rules}"), run=RUN, **NOTHING))
        assert here.told(Need) == Need(groups=(), seed=False)
        assert soon(lambda: bool(descendants(process.pid)))
        (child, *_) = descendants(process.pid)
        for _ in range(6):  # as long as there are signs of life, it goes on
            time.sleep(1)
            process.stdin.write(b"\n")
            assert alive(child)
        assert process.wait(timeout=60) == 1
        assert soon(lambda: not alive(child))


FILE = {"name": "../x", "size_bytes": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"is": "Order", "words": [], "run": "../../etc", **NOTHING}, "no name of a run"),
        ({"is": "Want"}, "was expected"),
        ({"is": "Order", "words": [], "run": RUN, **NOTHING, "groups": [[FILE]]}, "no name of a file"),
        ("GET / HTTP/1.1\r", "not valid JSON"),
    ],
)
def test_an_agent_refuses_what_makes_no_sense(tmp_path: Path, message: Any, words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", AGENT.format(silence=60)],
        input=(message if isinstance(message, str) else json.dumps(message)).encode() + b"\n",
        stdout=subprocess.PIPE,
        env={**os.environ, "GAPLESS_CACHE": str(tmp_path / "cache")},
        check=False,
    )
    assert run.returncode == 1
    refusal = json.loads(run.stdout[run.stdout.index(b'{"is"') :])
    assert refusal["is"] == "Refused"
    assert words in refusal["message"]
    assert not (tmp_path / "etc").exists()


def test_a_run_that_goes_on_is_not_forgotten_though_its_clock_was_of_1970(tmp_path: Path) -> None:
    """A board without a battery: its clock was set after the connection was lost."""
    kept = [tmp_path / "cache" / "boards" / "runs" / name for name in (RUN, "f" * 16)]
    for folder in kept:
        folder.mkdir(parents=True)
        os.utime(folder, (0, 0))
    seed = [{"name": "store.sqlite", "size_bytes": 1, "sha256": "0" * 64}]
    order = {"is": "Order", "words": [], "run": RUN, "fresh": False, "groups": [], "seed": seed}
    run = subprocess.run(
        [sys.executable, "-c", AGENT.format(silence=60)],
        input=json.dumps(order).encode() + b"\n",
        stdout=subprocess.PIPE,
        env={**os.environ, "GAPLESS_CACHE": str(tmp_path / "cache")},
        check=False,
    )
    need = json.loads(run.stdout[run.stdout.index(b'{"is"') :])
    assert need == {"is": "Need", "groups": [], "seed": False}  # what it has measured is there
    assert [folder.is_dir() for folder in kept] == [True, False]
