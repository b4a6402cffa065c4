"""The log of a server: one line per message, none of which a client can write or multiply."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("httptools")

import gapless
from gapless.cli.base.exits import ExitCode, code_of_error
from gapless.cli.tasks.serving import say, serve_until
from gapless.executor.coordination.loop import Outage
from gapless.formulations.errors import InvalidInputError, NothingLeftError
from gapless.question.service import Service
from gapless.serving.logs import MOST_LINES, LogHandler, kept
from gapless.serving.server import Server
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import json_body, over_socket, vector
from tests.gapless.serving.test_server import PROGRAM, port_of
from tests.processes import soon, workers

INFER = "/v2/models/net/infer"


class Log:
    """A log whose clock is a number."""

    def __init__(self, *, level: int = logging.INFO, as_json: bool = False) -> None:
        self.now_s = 1000.0
        self.file = StringIO()
        self.handler = LogHandler(self.file, as_json=as_json, clock=lambda: self.now_s)
        self.handler.setLevel(level)

    def say(self, text: str, *values: object, level: int = logging.WARNING, name: str = "gapless.x") -> None:
        record = logging.LogRecord(name, level, __file__, 1, text, values, None)
        self.handler.handle(record)

    @property
    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()

    @property
    def texts(self) -> list[str]:
        return [line.split(" ", 2)[2] for line in self.lines]


def test_the_same_message_comes_once_in_a_minute_with_a_count() -> None:
    log = Log()
    for _ in range(50_000):
        log.say("cannot accept")
        log.now_s += 0.001
    log.say("something %s", "else")
    assert log.texts == ["cannot accept", "something else"]
    log.now_s += 60.0
    log.handler.tell_left_out()
    assert log.texts[2:] == ["cannot accept (49999 more times)"]
    log.say("cannot accept")
    log.say("cannot accept")
    assert log.texts[3:] == ["cannot accept"]
    log.handler.close()
    assert log.texts[4:] == ["cannot accept (once more)"]
    assert log.lines[0].split(" ")[1] == "WARNING"


def test_different_messages_are_no_flood_either() -> None:
    log = Log()
    for number in range(10_000):
        log.say("message %d", number)
    assert len(log.lines) == MOST_LINES
    log.now_s += 60.0
    log.say("later")
    assert log.texts[-2:] == [
        f"{10_000 - MOST_LINES} other messages were left out: at most {MOST_LINES} a minute are written",
        "later",
    ]
    for minute in range(5):  # nothing is kept of what was said long ago
        for number in range(1000):
            log.say("message %d of %d", number, minute)
        log.now_s += 60.0
    assert len(log.handler._said) <= 2 * MOST_LINES


def test_clients_cannot_write_lines_of_their_own() -> None:
    log = Log()
    log.say("asked for %s", "x\n2026-01-01 ERROR all is lost\r\x1b[2J\u202egpj")
    log.say("asked for %s", "y" * 1_000_000)
    assert log.texts[0] == r"asked for x | 2026-01-01 ERROR all is lost | \x1b[2J\u202egpj"
    assert len(log.lines) == 2
    assert len(log.lines[1]) < 3000
    as_json = Log(as_json=True)
    as_json.say('a "quoted"\nword', level=logging.ERROR)
    found = json.loads(as_json.file.getvalue())
    assert (found["level"], found["logger"], found["message"]) == ("error", "gapless.x", 'a "quoted" | word')


def test_an_error_is_one_line_with_its_place() -> None:
    log = Log()
    try:
        Path("/nowhere/at all").read_text()
    except OSError as error:
        record = logging.LogRecord("gapless.x", logging.ERROR, __file__, 1, "failed", (), None)
        record.exc_info = (type(error), error, error.__traceback__)
    log.handler.handle(record)
    assert len(log.lines) == 1
    assert log.texts[0].startswith("failed: FileNotFoundError: ")
    assert "(at pathlib.py:" in log.texts[0]
    log.say("%d words", "no number")
    assert log.texts[1] == "a message could not be written: TypeError"


def test_what_clients_cause_is_debug() -> None:
    for name in ("uvicorn.error", "asyncio"):
        log, debug = Log(), Log(level=logging.DEBUG)
        for each in (log, debug):
            each.say("Invalid HTTP request received.", name=name)
            each.say("a bug", level=logging.ERROR, name=name)
        assert log.texts == ["a bug"]
        assert debug.texts == ["Invalid HTTP request received.", "a bug"]


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    class Gone(StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    handler = LogHandler(Gone(), as_json=False)
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 1, "lost", (), None))
    handler.close()


@pytest.mark.slow
def test_requests_and_clients_that_hang_up_are_debug() -> None:
    nonsense = b"POST /nowhere HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\na"
    lines: dict[str, list[str]] = {}
    for level in ("debug", "info"):
        file = StringIO()
        with coordinator("a") as opened, kept(file, level=level, as_json=True):
            opened.register(chain(("add", 1.0), name="net"))
            with gapless.serve(opened, port=0) as server:
                port = port_of(server)
                assert over_socket(port, "POST", INFER, json_body(vector(1.0))).code == 200
                for rest in (b"\r\nzz\r\n\r\n", b"", b"zzzz\r\n"):
                    with socket.create_connection(("127.0.0.1", port)) as client:
                        client.sendall(nonsense)
                        assert client.recv(1000).startswith(b"HTTP/1.1 404 ")  # before all has come
                        client.sendall(rest)
                        client.shutdown(socket.SHUT_WR)
                        while client.recv(1000):  # what is unread when it closes, the server never sees
                            pass
                assert over_socket(port, "GET", "/v2/health/live").code == 200
        lines[level] = file.getvalue().splitlines()
    assert lines["info"] == []
    found = [json.loads(line) for line in lines["debug"]]
    asked = next(each for each in found if each.get("path") == INFER)
    assert (asked["method"], asked["code"], asked["level"]) == ("POST", 200, "debug")
    assert asked["client"].startswith("127.0.0.1:")
    assert {each["level"] for each in found} == {"debug"}


def test_what_a_command_says_is_in_a_log_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    for as_json, told in ((True, ""), (False, "net is here\n")):
        file = StringIO()
        with kept(file, level="info", as_json=as_json):
            say("net is here")
        assert capsys.readouterr().err == told
        assert [json.loads(line)["message"] for line in file.getvalue().splitlines()] == (
            ["net is here"] if as_json else []
        )


@pytest.mark.slow
def test_a_server_without_units_waits_and_then_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    read = Service.field_named("give_up_s").read
    texts = ("0", "120s", "1500ms", "never")
    assert [read(text, in_file=False) for text in texts] == [0.0, 120.0, 1.5, math.inf]
    for text in ("", "-1s", "nan", "inf", "Never", "1e3", "120"):
        with pytest.raises(InvalidInputError, match=r"--give-up.* e\.g\. 120s"):
            read(text, in_file=False)
    now = [100.0]

    @contextmanager
    def waits() -> Iterator[Callable[[float | None], bool]]:
        def stop(seconds: float | None) -> bool:
            now[0] += seconds or 0.0
            return False

        yield stop

    monkeypatch.setattr("gapless.cli.tasks.serving._stopped_by_signals", waits)
    monkeypatch.setattr("gapless.cli.tasks.serving.time", SimpleNamespace(monotonic=lambda: now[0]))
    for give_up_s, for_good, ended_s in (
        (120.0, False, 240.0),
        (0.0, False, 121.0),
        (120.0, True, 121.0),
        (math.inf, False, 400.0),
        (math.inf, True, 400.0),
    ):
        now[0] = 100.0
        with coordinator("a") as opened:
            opened._loop.outage = Outage(120.0, "no memory", for_good=for_good)
            now[0] = 120.0
            server = Server(opened, port=0)
            assert over_socket(port_of(server), "GET", "/v2/health/live").code == 503
            assert over_socket(port_of(server), "GET", "/v2/health/ready").code == 503
            service = Service(seconds=280.0, give_up_s=give_up_s)
            if give_up_s == math.inf:
                serve_until(server, service, trace=None)
            else:
                with pytest.raises(
                    NothingLeftError, match=r"no unit is left to serve with, .*: no memory; st"
                ):
                    serve_until(server, service, trace=None)
            assert now[0] == ended_s
    assert code_of_error(NothingLeftError("x")) is ExitCode.NOTHING_LEFT


@pytest.mark.slow
def test_the_command_outlives_a_lack_of_files_and_gives_up_when_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "gapless", "serve", "net.py:NET", "--units", "core0", "--socket", "s"]
    # Starts fail after 0, 0.25, 0.75, 1.75 and 3.75 s: a slow machine has until 7.75 s to lift the limit.
    command += ["--give-up", "12s", "--log-json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(gapless.__file__).parent.parent)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        lines: list[str] = []
        reader = threading.Thread(target=lines.extend, args=(process.stderr,))
        reader.start()
        assert soon(lambda: any("Ctrl-C stops" in line for line in lines))
        limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)

        def kill_the_worker(files: int) -> None:
            resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (files, limits[1]))
            os.kill(min(workers(process.pid)), signal.SIGKILL)

        kill_the_worker(5)
        assert soon(lambda: any("no worker can be started: " in line for line in lines))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, limits)
        try:
            assert soon(lambda: over_socket("s", "POST", INFER, json_body(vector(3.0))).code == 200)
        except OSError:
            raise AssertionError("".join(lines)) from None  # it has ended: its log says why
        kill_the_worker(5)
        assert process.wait(timeout=60) == 7
        reader.join()
    # How long it lasted is this machine's: a second passes where starting a worker is slow.
    assert re.match(r"error: no unit is left to serve with, for \d+ s \(--give-up\): ", lines[-1])
    told = [json.loads(line) for line in lines[:-1]]
    losses = [each["message"] for each in told if each["level"] == "warning"]
    assert sum("was killed by SIGKILL" in text for text in losses) == 2
    assert sum("Too many open files" in text for text in losses) >= 5
    assert told[-1]["message"] == "no unit is left to serve with"
    assert len(lines) < 40
