"""Servers that are as small as can be, each around one model in ONNX Runtime: what `gapless serve` is beside.

    python -m benchmarks.bare_servers uvicorn-httptools MODEL.onnx 8001

`gapless`: the web server of `gapless serve` with an application that only runs the model; `uvicorn-h11`,
`uvicorn-httptools`, `hypercorn` and `granian`: the same application there; `loop`: no web server at all, a
socket and the fewest lines that answer this one client.
All speak the Open Inference Protocol with binary tensors, for one input and one output, and say with each
answer how long the engine took. Needs numpy and onnxruntime, and what is named; gapless for `gapless` alone.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from typing import Any

import numpy as np
import onnxruntime as ort

LENGTH = b"inference-header-content-length"


class Engine:
    """One model with one float input, on one thread that does not spin."""

    def __init__(self, path: str) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        taken = self._session.get_inputs()[0]
        self.name, self.shape = taken.name, taken.shape
        self.given = self._session.get_outputs()[0].name

    def run(self, array: Any) -> tuple[Any, float]:
        """Return the output, and how many microseconds it took."""
        start_ns = time.perf_counter_ns()
        (found,) = self._session.run(None, {self.name: array})
        return found, (time.perf_counter_ns() - start_ns) / 1000

    def answer(self, body: bytes | bytearray | memoryview, length: int) -> tuple[bytes, int]:
        """Return the answer to a request, and how much of it is the JSON document."""
        view = memoryview(body)
        given = json.loads(bytes(view[:length]))["inputs"][0]
        array = np.frombuffer(view[length:], np.float32).reshape(given["shape"])
        found, engine_us = self.run(array)
        blob = found.tobytes()
        tensor = {"name": self.given, "datatype": "FP32", "shape": list(found.shape)}
        tensor["parameters"] = {"binary_data_size": len(blob)}
        told = json.dumps({"parameters": {"engine_us": engine_us}, "outputs": [tensor]}).encode()
        return told + blob, len(told)


def application(path: str) -> Any:
    """Return an ASGI application that only runs the model."""
    engine = Engine(path)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            raise NotImplementedError  # there is nothing to start and to end
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        length = int(dict(scope["headers"]).get(LENGTH, len(body)))
        found, told = engine.answer(body, length) if body else (b"{}", 2)
        headers = [(b"content-length", str(len(found)).encode()), (LENGTH, str(told).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": found})

    return app


def _loop(path: str, port: int) -> None:
    """Answer one client after the other: a head that ends with an empty line, and a body of known length."""
    engine = Engine(path)
    with socket.create_server(("127.0.0.1", port)) as listening:
        while True:
            with listening.accept()[0] as client:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while head := client.recv(65536):
                    head, _, begun = head.partition(b"\r\n\r\n")
                    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
                    body = np.empty(int(fields.get(b"content-length", 0)), np.uint8).data
                    body[: len(begun)] = begun
                    at = len(begun)
                    while at < len(body):
                        at += client.recv_into(body[at:])
                    length = int(fields.get(LENGTH, len(body)))
                    found, told = engine.answer(body, length) if len(body) else (b"{}", 2)
                    lines = b"HTTP/1.1 200 OK", b"content-length: %d" % len(found), LENGTH + b": %d" % told
                    client.sendall(b"\r\n".join([*lines, b"", found]))


def _uvicorn(path: str, port: int, parser: str) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        application(path),
        http=parser,
        ws="none",
        lifespan="off",
        loop="asyncio",
        access_log=False,
        log_level="error",
    )
    uvicorn.Server(config).run([listening])


def _hypercorn(path: str, port: int) -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    asyncio.run(serve(application(path), config))


def _granian(path: str, port: int) -> None:
    from granian.constants import Interfaces
    from granian.server.embed import Server

    server = Server(
        application(path), address="127.0.0.1", port=port, interface=Interfaces.ASGINL, log_enabled=False
    )
    asyncio.run(server.serve())


def _gapless(path: str, port: int) -> None:
    from gapless.serving.server import web_server

    listening = socket.create_server(("127.0.0.1", port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    web_server(application(path)).run([listening])


def main() -> None:
    """Serve, until somebody ends it."""
    kind, path, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "loop":
        _loop(path, port)
    elif kind.startswith("uvicorn-"):
        _uvicorn(path, port, kind.removeprefix("uvicorn-"))
    else:
        {"gapless": _gapless, "hypercorn": _hypercorn, "granian": _granian}[kind](path, port)


if __name__ == "__main__":
    main()
