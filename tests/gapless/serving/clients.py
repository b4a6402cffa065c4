"""Clients of the server: one that calls the application itself, and one over a socket."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.tally import Fate
from gapless.serving.app import App
from gapless.serving.messages import ARRIVAL

_BETWEEN_KILLS = 10


@dataclass(frozen=True, kw_only=True)
class Response:
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        length = self.headers.get("inference-header-content-length")
        return json.loads(self.body if length is None else self.body[: int(length)])

    @property
    def blobs(self) -> bytes:
        return self.body[int(self.headers["inference-header-content-length"]) :]

    @property
    def error(self) -> str:
        return str(self.document["error"])


@dataclass
class Messages:
    """What a web server would hand in, and what comes out."""

    parts: list[bytes]
    sent: list[MutableMapping[str, Any]] = field(default_factory=list)
    read: int = 0

    async def receive(self) -> MutableMapping[str, Any]:
        if self.read == len(self.parts):
            await asyncio.Event().wait()  # the client waits for its answer
        part = self.parts[self.read]
        self.read += 1
        return {"type": "http.request", "body": part, "more_body": self.read < len(self.parts)}

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.sent.append(message)


async def asked(
    app: App,
    method: str,
    path: str,
    body: bytes | Sequence[bytes] = b"",
    headers: Mapping[str, str] | None = None,
    *,
    arrival_s: float | None = None,
) -> Response:
    """Return what an application answers; `arrival_s`: when the request began to come."""
    messages = Messages([body] if isinstance(body, bytes) else list(body))
    given = {"Host": "localhost:8000", **(headers or {})}
    told = [(key.lower().encode(), value.encode()) for key, value in given.items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": told}
    await app(scope if arrival_s is None else {**scope, ARRIVAL: arrival_s}, messages.receive, messages.send)
    start, *rest = messages.sent
    return Response(
        code=start["status"],
        headers={key.decode(): value.decode() for key, value in start["headers"]},
        body=b"".join(message["body"] for message in rest),
    )


def ask(app: App, *words: Any, **options: Any) -> Response:
    """Do the same outside of an event loop."""
    return asyncio.run(asked(app, *words, **options))


def json_body(array: NDArray[Any], **changes: Any) -> bytes:
    """Return a request of one input in JSON."""
    tensor = {"name": "x", "shape": list(array.shape), "datatype": "FP32", "data": array.ravel().tolist()}
    return json.dumps({"inputs": [{**tensor, **changes}]}).encode()


def binary_body(array: NDArray[Any], **more: Any) -> tuple[bytes, dict[str, str]]:
    """Return a request of one input in binary form, and its header."""
    data = array.tobytes()
    tensor = {
        "name": "x",
        "shape": list(array.shape),
        "datatype": "FP32",
        "parameters": {"binary_data_size": len(data)},
    }
    head = json.dumps({"inputs": [tensor], **more}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


def over_socket(
    place: str | int, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> Response:
    """Return what a server at a port, or at a Unix socket, answers."""
    connection = http.client.HTTPConnection("127.0.0.1", place if isinstance(place, int) else 0, timeout=60)
    if isinstance(place, str):
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.connect(place)
    connection.request(method, path, body, dict(headers or {}))
    found = connection.getresponse()
    response = Response(
        code=found.status,
        headers={key.lower(): value for key, value in found.getheaders()},
        body=found.read(),
    )
    connection.close()
    return response


def vector(value: float) -> NDArray[Any]:
    """Return an input of the models of these tests."""
    return np.full(16, value, np.float32)


@contextmanager
def killing(own: Coordinator, unit: str | None = None) -> Iterator[None]:
    """Kill the worker of a unit, or of the first one, again whenever enough was answered meanwhile.

    No request is met three times then, which would answer it with the error, however slow the machine is.
    """
    ended = threading.Event()

    def kill() -> None:
        killed = -_BETWEEN_KILLS
        while not ended.wait(0.02):
            pid = own.pids.get(unit or next(iter(own.pids), ""))
            answered = own.statistics().total(Fate.ANSWERED)
            if pid is not None and answered >= killed + _BETWEEN_KILLS:
                os.kill(pid, signal.SIGKILL)
                killed = answered

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        ended.set()
        killer.join()
