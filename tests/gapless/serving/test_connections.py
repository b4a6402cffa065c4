"""Connections end: each phase has its deadline, and silent ones make room; the clock is a number."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import pytest

pytest.importorskip("httptools")

import uvicorn

import gapless
from gapless.formulations.errors import ExecutionError
from gapless.serving.connections import MOST_CONNECTIONS, Connection, Connections, Patience, most_connections
from tests.executor.coordination.coordinators import coordinator
from tests.executor.pipeline.fakes import chain
from tests.gapless.serving.clients import json_body, over_socket, vector
from tests.processes import many_descriptors, soon

PATIENCE = Patience(idle_s=75.0, head_s=10.0, body_s=20.0, least_rate=100.0, crowd=3, crowd_s=2.0)
HEAD = b"POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5000\r\n\r\n"


class Transport:
    """Keeps what is written; nobody reads it once `stuck`."""

    def __init__(self) -> None:
        self.written = b""
        self.unsent = 0
        self.gone = False

    def write(self, data: bytes) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.gone

    def get_extra_info(self, name: str) -> None:
        return None

    def abort(self) -> None:
        self.gone = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    close = abort


class Clock:
    """The loop of the connections: its time is set, and it runs nothing."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def time(self) -> float:
        return self.now_s

    def call_later(self, *words: Any) -> Clock:
        return self

    def cancel(self) -> None:
        pass

    def create_task(self, work: Coroutine[Any, Any, None], **how: Any) -> Clock:
        work.close()  # it has not begun
        return Clock()

    def add_done_callback(self, function: Any) -> None:
        pass


class Server:
    """Connections of a server, of which only a few may be open."""

    def __init__(self, most: int = 100) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            return None

        self.clock = Clock()
        self.connections = Connections(most, PATIENCE)
        self._config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None)
        self._config.load()
        self._state = uvicorn.Server(self._config).server_state

    def connect(self, *parts: bytes) -> tuple[Connection, Transport]:
        """Return a connection over which something has come."""
        transport = Transport()
        found = self.connections(
            config=self._config, server_state=self._state, app_state={}, _loop=self.clock
        )
        found.connection_made(transport)  # type: ignore[arg-type]
        for part in parts:
            found.data_received(part)
        return found, transport

    def pass_by(self, seconds: float) -> None:
        """Let time pass; somebody looks every second."""
        for _ in range(int(seconds)):
            self.clock.now_s += 1.0
            self.connections.sweep(self.clock.now_s)


def ended_after(server: Server, transport: Transport, *, most: int = 2000) -> int:
    """Return after how many seconds a connection was ended."""
    for second in range(1, most):
        server.pass_by(1)
        if transport.gone:
            return second
    return most


def answer(connection: Connection) -> None:
    """Answer a request as an application does."""
    assert connection.cycle is not None
    connection.cycle.response_started = connection.cycle.response_complete = True


def test_each_phase_has_a_deadline() -> None:
    server = Server()
    for parts, limit in (((), 10), ((b"POST /x HT",), 10), ((HEAD,), 20), ((HEAD, b"x" * 500), 20)):
        _, transport = server.connect(*parts)
        assert limit < ended_after(server, transport) <= limit + 3
        assert transport.written.startswith(b"HTTP/1.1 408 ") == bool(parts)
    connection, transport = server.connect(HEAD, b"x" * 5000)
    server.pass_by(500)
    assert not transport.gone  # it is at work
    answer(connection)
    assert 75 < ended_after(server, transport) <= 77
    assert transport.written == b""
    assert not server.connections.open


def test_a_client_is_not_late_while_it_is_not_listened_to() -> None:
    server = Server()
    connection, transport = server.connect(HEAD.replace(b"5000", b"500000"), b"x" * 70_000)
    server.pass_by(100)
    assert not transport.gone
    connection.flow.resume_reading()  # the application wants more
    assert 20 < ended_after(server, transport) < 23
    assert transport.written.startswith(b"HTTP/1.1 408 ")


def test_drops_of_a_head_or_a_body_do_not_hold_it_open() -> None:
    server = Server()
    for parts, limit in (((b"POST",), 12), ((HEAD,), 23)):
        connection, transport = server.connect(*parts)
        for _ in range(limit):
            connection.data_received(b"x")
            server.pass_by(1)
        assert transport.gone


def test_a_slow_client_that_goes_on_is_waited_for() -> None:
    server = Server()
    connection, transport = server.connect(HEAD)
    for _ in range(40):
        server.pass_by(1)
        connection.data_received(b"x" * 110)
    assert not transport.gone
    assert 20 < ended_after(server, transport) < 60


def test_a_client_that_does_not_take_its_answer_is_left() -> None:
    server = Server()
    connection, transport = server.connect(HEAD, b"x" * 5000)
    answer(connection)
    transport.unsent = 10_000
    for _ in range(30):
        server.pass_by(1)
        transport.unsent -= 110
    assert not transport.gone
    assert ended_after(server, transport) < 60


def test_bytes_behind_an_early_answer_do_not_hold_it_open() -> None:
    server = Server()
    connection, transport = server.connect(HEAD, b"x")
    answer(connection)
    server.pass_by(2)
    for _ in range(20):
        connection.data_received(b"x")
        server.pass_by(1)
    assert transport.gone


@pytest.mark.parametrize("drop", [b"", b"x"])
def test_of_many_bodies_the_slow_ones_are_not_waited_for(drop: bytes) -> None:
    server = Server()
    slow = [server.connect(HEAD) for _ in range(10)]
    busy, transport = server.connect(HEAD)
    for _ in range(5):
        busy.data_received(b"x" * 110)
        for connection, its in slow:
            if drop and not its.gone:
                connection.data_received(drop)
        server.pass_by(1)
    assert sum(its.gone for _, its in slow) == 8
    assert not transport.gone


def test_the_most_silent_make_room_for_new_ones() -> None:
    server = Server(most=40)
    at_work = [server.connect(HEAD, b"x" * 5000)[1] for _ in range(20)]
    silent = [server.connect(*parts)[1] for parts in [()] * 10 + [(HEAD,)] * 2 + [(b"PO",)] * 8]
    server.clock.now_s += 0.5
    for number in range(1, 31):
        connection, transport = server.connect(HEAD, b"x" * 5000)
        assert transport.gone == (number > 20)  # then all others are at work
        assert len(server.connections.open) == 40
        assert connection in server.connections.open or transport.written.startswith(b"HTTP/1.1 503 ")
    assert all(each.gone for each in silent)
    assert not any(each.gone for each in at_work)


def test_connections_leave_files_for_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    def limits(soft: int) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))

    used = len(os.listdir("/proc/self/fd"))
    limits(used + 500)
    few, many = most_connections(2, batch=128), most_connections(8, batch=128)
    assert 300 < few < 500 - 128
    assert few - many == 48
    limits(10**6)
    assert most_connections(2, batch=128) == MOST_CONNECTIONS
    limits(resource.RLIM_INFINITY)
    assert most_connections(2, batch=128) == MOST_CONNECTIONS
    limits(used + 100)
    with pytest.raises(ExecutionError, match=rf"may open {used + 100} files.*ulimit -n"):
        most_connections(2, batch=128)


def connected(port: int, texts: Sequence[bytes]) -> list[socket.socket]:
    """Return clients that have sent something, and then nothing more."""
    found = [socket.create_connection(("127.0.0.1", port)) for _ in texts]
    for client, text in zip(found, texts, strict=True):
        with suppress(OSError):  # it had to make room
            client.sendall(text)
    return found


@pytest.mark.slow
def test_half_bodies_and_idle_connections_stop_nobody_while_a_worker_is_killed() -> None:
    ask = json_body(vector(1.0))
    with coordinator("a", "b") as opened, many_descriptors(900):
        opened.register(chain(("add", 1.0), name="net"))
        with gapless.serve(opened, port=0) as server:
            port = int(server.url.rpartition(":")[2])
            half = HEAD.replace(b"/x", b"/v2/models/net/infer") + b"x"
            clients = connected(port, [half] * 64 + [b""] * (MOST_CONNECTIONS + 76))
            os.kill(opened.pids["a"], signal.SIGKILL)
            assert soon(lambda: over_socket(port, "POST", "/v2/models/net/infer", ask).code == 200)
            assert soon(lambda: opened.statistics().units[0].restarts == 1)
            assert soon(lambda: all(unit.available for unit in opened.statistics().units))
            assert over_socket(port, "GET", "/v2/health/live").code == 200
            for client in clients:
                client.close()
