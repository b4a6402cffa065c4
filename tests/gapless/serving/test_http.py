"""The web server itself: bodies, answers, nonsense and clients that leave, over real sockets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import Any

import pytest

pytest.importorskip("httptools")

from gapless.serving.connections import MOST_AHEAD, Connection, Connections, Patience, WebServer
from gapless.serving.messages import ARRIVAL, Application
from tests.processes import soon


class Echo:
    """Answers with what it is sent, and keeps the messages."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["path"] == "/fails":
            raise ValueError("a bug")
        body = b""
        while scope["path"] != "/early":
            message = await receive()
            self.heard.append(message)
            if message["type"] != "http.request":
                return
            body += message["body"]
            if not message["more_body"] and scope["path"] != "/waits":
                break
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@contextmanager
def served(application: Application) -> Iterator[tuple[socket.socket, Connections]]:
    """Yield a connection to a server, and the connections of that."""
    connections = Connections(100)
    server = WebServer(application, connections, backlog=8, grace_s=5.0)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        with socket.create_connection(listening.getsockname(), timeout=20) as client:
            yield client, connections
    finally:
        server.stop()
        thread.join()


def head(path: str = "/", *fields: str, method: str = "POST", version: str = "1.1") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/{version}", "Host: x", *fields, "", ""]).encode()


def answers(client: socket.socket, count: int) -> list[tuple[int, bytes]]:
    """Return codes and bodies of so many answers."""
    file, found = client.makefile("rb"), []
    for _ in range(count):
        code, length = int(file.readline().split()[1]), 0
        while line := file.readline().strip():
            if line.startswith(b"content-length: "):
                length = int(line.split()[1])
        found.append((code, file.read(length)))
    return found


def all_of(client: socket.socket) -> bytes:
    """Return what comes until the connection ends."""
    found = b""
    with suppress(ConnectionResetError):
        while data := client.recv(65536):
            found += data
    return found


def the(connections: Connections) -> Connection:
    assert soon(lambda: len(connections.open) == 1)
    return next(iter(connections.open))


def leave(connections: Connections) -> None:
    """End all connections: a server that listens to nobody does not notice when a client leaves."""
    for connection in list(connections.open):
        connection.loop.call_soon_threadsafe(connection.transport.abort)


@pytest.mark.parametrize("size", [0, 1, 70_000, 600_000, 3_000_005])
@pytest.mark.parametrize("together", [True, False])
def test_a_body_of_known_length_comes_whole(size: int, together: bool) -> None:
    body = bytes(range(256)) * (size // 256 + 1)
    with served(Echo()) as (client, _):
        for _ in range(2):
            parts = [head("/", f"Content-Length: {size}"), body[:size]]
            for part in [b"".join(parts)] if together else parts:
                client.sendall(part)
            assert answers(client, 1) == [(200, body[:size])]


def test_chunks_and_requests_that_follow_at_once() -> None:
    chunked = (
        head("/", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n10000\r\n" + b"x" * 65536 + b"\r\n0\r\n\r\n"
    )
    known = head("/", "Content-Length: 2") + b"yz"
    with served(Echo()) as (client, _):
        client.sendall(chunked + known + head(method="GET") + chunked)
        long = b"abc" + b"x" * 65536
        assert answers(client, 4) == [(200, long), (200, b"yz"), (200, b""), (200, long)]


def test_a_client_that_sends_ahead_is_not_listened_to_for_ever() -> None:
    with served(Echo()) as (client, connections):
        client.sendall(head("/waits"))
        connection = the(connections)
        assert soon(lambda: connection.cycle is not None)
        client.sendall(head(method="GET"))
        client.settimeout(0.5)
        with pytest.raises(TimeoutError):
            client.sendall(head(method="GET") * 2_000_000)
        assert connection.heard_bytes < 300_000
        leave(connections)


@pytest.mark.parametrize(("count", "ends"), [(MOST_AHEAD, False), (MOST_AHEAD + 1, True)])
def test_a_client_that_sends_too_much_ahead_is_ended(count: int, ends: bool) -> None:
    app = Echo()
    with served(app) as (client, connections):
        client.sendall(head("/waits") + head(method="GET") * count)
        assert soon(lambda: bool(app.heard))
        assert soon(lambda: app.heard[-1]["type"] == "http.disconnect", 0.5) == ends
        assert len(app.scopes) == 1
        if ends:
            assert all_of(client) == b""
        leave(connections)


def test_a_client_that_has_sent_ahead_is_listened_to_again() -> None:
    with served(Echo()) as (client, _):
        for _ in range(3):
            client.sendall(head("/early") * MOST_AHEAD)
            assert answers(client, MOST_AHEAD) == [(200, b"")] * MOST_AHEAD


def test_a_client_that_offers_another_protocol_is_answered_in_this_one() -> None:
    offers = "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"
    with served(Echo()) as (client, _):
        for body in (b"", b"abc"):
            client.sendall(head("/", f"Content-Length: {len(body)}", *offers) + body)
            assert answers(client, 1) == [(200, body)]


@pytest.mark.parametrize("rest", [b"0\r\n", b"5;x="])
def test_what_comes_besides_a_body_in_chunks_is_not_kept(rest: bytes) -> None:
    app = Echo()
    with served(app) as (client, connections):
        client.sendall(head("/", "Transfer-Encoding: chunked") + b"1\r\na\r\n")
        assert soon(lambda: bool(app.heard))
        client.sendall(b"0\r\nx: y\r\n\r\n")
        assert answers(client, 1) == [(200, b"a")]
        assert b"x" not in dict(app.scopes[0]["headers"])
        client.sendall(head("/", "Transfer-Encoding: chunked") + b"1\r\na\r\n" + rest)
        with suppress(ConnectionError):
            for _ in range(100):
                client.sendall(b"x: y\r\n" * 10_000 if rest == b"0\r\n" else b"y" * 60_000)
        all_of(client)
        assert soon(lambda: not connections.open)


def test_a_client_that_asks_is_told_to_send_its_body() -> None:
    with served(Echo()) as (client, _):
        client.sendall(head("/", "Content-Length: 2", "Expect: 100-continue"))
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ab")
        assert answers(client, 1) == [(200, b"ab")]


def test_the_rest_of_a_body_behind_an_early_answer_is_skipped() -> None:
    chunk = b"4\r\nGET \r\n"
    with served(Echo()) as (client, _):
        client.sendall(head("/early", "Content-Length: 300000"))
        assert answers(client, 1) == [(200, b"")]
        client.sendall(b"GET / " * 50_000 + head("/early", "Transfer-Encoding: chunked") + chunk)
        assert answers(client, 1) == [(200, b"")]
        client.sendall(chunk + b"0\r\n\r\n" + head("/", "Content-Length: 1") + b"a")
        assert answers(client, 1) == [(200, b"a")]


@pytest.mark.parametrize(
    "text", [head(version="1.0"), head("/", "Connection: Keep-Alive, Close"), head(method="HEAD")]
)
def test_connections_end_where_one_of_both_says_so(text: bytes) -> None:
    with served(Echo()) as (client, connections):
        client.sendall(text)
        if text.startswith(b"HEAD"):
            client.sendall(head("/", "Content-Length: 3", "Connection: close", method="HEAD") + b"abc")
        found = all_of(client)
        assert found.endswith(b"\r\n\r\n")
        assert found.count(b"connection: close") == 1
        assert found.count(b"HTTP/1.1 200 OK") == 1 + text.startswith(b"HEAD")
        assert (b"content-length: 3" in found) == text.startswith(b"HEAD")
        assert soon(lambda: not connections.open)


@pytest.mark.parametrize(
    "text",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        head("http://x/"),
        b"\r\n" * 40_000,
        head("/", "Content-Length: -1"),
        head("/", "Content-Length: +1"),
        head("/", "Content-Length: " + "1" * 25),
        head("/", "Content-Length: 1", "Content-Length: 2"),
        head("/", "Transfer-Encoding: gzip"),
        head("/", "X: " + "y" * 600_000),
        head("/", "Transfer-Encoding: chunked") + b"zz\r\n",
        head("/", "Transfer-Encoding: chunked") + b"1\r\nab\r\n",
    ],
)
def test_nonsense_is_told_and_ends_the_connection(text: bytes) -> None:
    app = Echo()
    with served(app) as (client, connections):
        with suppress(ConnectionError):
            client.sendall(text)
        found = all_of(client)
        assert found.count(b"HTTP/1.1 ") == (1 if found else 0)
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\n") or len(text) > 16_384
        assert soon(lambda: not connections.open)
    assert all(message.get("more_body", True) for message in app.heard)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"the header Host is missing"),
        (head("http://x/"), b"its address must be the path on this server, beginning with /"),
        (b"\r\n" * 40_000, b"its head has more than 65,536 bytes"),
        (b"nonsense\r\n\r\n", b"Invalid method encountered"),
    ],
)
def test_nonsense_is_told_with_what_is_wrong(text: bytes, words: bytes) -> None:
    with served(Echo()) as (client, _):
        client.sendall(text)
        assert b'{"error": "the request is not valid HTTP: ' + words in all_of(client)


def test_nothing_is_told_in_the_middle_of_an_answer() -> None:
    async def begins(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        while (await receive())["type"] == "http.request":
            pass

    with served(begins) as (client, _):
        client.sendall(head("/", "Transfer-Encoding: chunked"))
        found = client.recv(1000)
        client.sendall(b"nonsense\r\n")
        assert (found + all_of(client)).endswith(b"\r\n\r\nabc")


@pytest.mark.parametrize(("path", "body"), [("/", b"x"), ("/waits", b"xy")])
def test_applications_hear_of_clients_that_leave(path: str, body: bytes) -> None:
    app = Echo()
    with served(app) as (client, connections):
        client.sendall(head(path, "Content-Length: 2") + body)
        assert soon(lambda: the(connections).cycle is not None)
        client.close()
        assert soon(lambda: any(message["type"] == "http.disconnect" for message in app.heard))


def test_a_bug_of_the_application_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with served(Echo()) as (client, _):
        client.sendall(head("/fails"))
        assert all_of(client).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert "ValueError: a bug" in caplog.text


def test_a_request_arrives_with_its_first_byte() -> None:
    app, text = Echo(), head("/", "Content-Length: 100000") + b"x" * 100_000
    with served(app) as (client, connections):
        connection = the(connections)

        def heard(count: int) -> bool:
            return soon(lambda: connection.heard_bytes == count)

        for number, cut in enumerate((1, 50, 90_000)):
            before_s = monotonic()
            client.sendall(text[:cut])
            assert heard(number * len(text) + cut)
            between_s = monotonic()
            client.sendall(text[cut:])
            assert answers(client, 1) == [(200, b"x" * 100_000)]
            assert before_s <= app.scopes[-1][ARRIVAL] <= between_s


def test_what_is_asked_is_answered_before_a_server_ends() -> None:
    release = threading.Event()

    class Slow(Echo):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            import asyncio

            await asyncio.to_thread(release.wait)
            await super().__call__(scope, receive, send)

    connections = Connections(100, Patience(head_s=500.0, idle_s=500.0))
    server = WebServer(Slow(), connections, backlog=8, grace_s=500.0)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    with (
        socket.create_connection(listening.getsockname(), timeout=30) as idle,
        socket.create_connection(listening.getsockname(), timeout=30) as client,
    ):
        client.sendall(head("/", "Content-Length: 1") + b"a")
        assert soon(lambda: any(each.cycle for each in connections.open))
        server.stop()
        try:
            assert idle.recv(1) == b""
            sleep(0.5)  # uvicorn waits for 0.1 s in any case
        finally:
            release.set()
        assert answers(client, 1) == [(200, b"a")]
        assert client.recv(1) == b""
    thread.join()
