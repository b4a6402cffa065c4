"""Servers that are as small as can be, each around one model in ONNX Runtime: what `gapless serve` is beside.

    python -m benchmarks.bare_servers uvicorn-httptools MODEL.onnx 8001

`uvicorn-httptools`: the web server of `gapless serve` with an application that only runs the model; `apart`:
there, too, with the engine in a process of its own, which finds its input in shared memory; `uvicorn-h11`,
`hypercorn` and `granian`: the first application there; `loop`: no web server at all, a socket and the fewest
lines that answer this one client.
All speak the Open Inference Protocol with binary tensors, for one input and one output, and say with each
answer how long the engine took. Needs numpy and onnxruntime, and what is named; nothing of gapless.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import multiprocessing
import socket
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import onnxruntime as ort

_SHARED_BYTES = 16 * 1024 * 1024
LENGTH = b"inference-header-content-length"


class Engine:
    """One model with one float input, on one thread that does not spin."""

    def __init__(self, path: str) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self._name = self._session.get_inputs()[0].name

    def run(self, array: Any) -> tuple[Any, float]:
        """Return the output, and how many microseconds it took."""
        start_ns = time.perf_counter_ns()
        (found,) = self._session.run(None, {self._name: array})
        return found, (time.perf_counter_ns() - start_ns) / 1000


class EngineApart:
    """The same in a process of its own: inputs are in shared memory, and a pipe says that one is there."""

    def __init__(self, path: str) -> None:
        self._shared = mmap.mmap(-1, _SHARED_BYTES)
        self._pipe, there = multiprocessing.Pipe()
        forking = multiprocessing.get_context("fork")
        forking.Process(target=_run_apart, args=(path, self._shared, there), daemon=True).start()

    async def run(self, array: Any) -> tuple[Any, float]:
        """Return the output, and how many microseconds it took."""
        loop = asyncio.get_running_loop()
        answered = loop.create_future()
        np.frombuffer(self._shared, np.float32, array.size).reshape(array.shape)[:] = array
        loop.add_reader(self._pipe.fileno(), answered.set_result, None)
        self._pipe.send(array.shape)
        await answered
        loop.remove_reader(self._pipe.fileno())
        found: tuple[Any, float] = self._pipe.recv()
        return found


def _run_apart(path: str, shared: mmap.mmap, pipe: Connection) -> None:
    engine, every = Engine(path), np.frombuffer(shared, np.float32)
    while True:
        shape = pipe.recv()
        pipe.send(engine.run(every[: np.prod(shape)].reshape(shape)))


def _taken(body: bytes | bytearray | memoryview, length: int) -> Any:
    """Return the input of a request, of which so much is the JSON document."""
    view = memoryview(body)
    shape = json.loads(bytes(view[:length]))["inputs"][0]["shape"]
    return np.frombuffer(view[length:], np.float32).reshape(shape)


def _answer(found: Any, engine_us: float) -> tuple[bytes, int]:
    """Return an answer, and how much of it is the JSON document."""
    blob = found.tobytes()
    size = {"binary_data_size": len(blob)}
    tensor = {"name": "y", "datatype": "FP32", "shape": list(found.shape), "parameters": size}
    told = json.dumps({"parameters": {"engine_us": engine_us}, "outputs": [tensor]}).encode()
    return told + blob, len(told)


def application(path: str, *, apart: bool = False) -> Any:
    """Return an ASGI application that only runs the model."""
    engine = EngineApart(path) if apart else Engine(path)

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
        found, told = b"{}", 2
        if body:
            array = _taken(body, length)
            given = await engine.run(array) if isinstance(engine, EngineApart) else engine.run(array)
            found, told = _answer(*given)
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
                    found, told = _answer(*engine.run(_taken(body, length))) if len(body) else (b"{}", 2)
                    lines = b"HTTP/1.1 200 OK", b"content-length: %d" % len(found), LENGTH + b": %d" % told
                    client.sendall(b"\r\n".join([*lines, b"", found]))


def _uvicorn(path: str, port: int, parser: str, *, apart: bool = False) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    config = uvicorn.Config(
        application(path, apart=apart),
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


def main() -> None:
    """Serve, until somebody ends it."""
    kind, path, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "loop":
        _loop(path, port)
    elif kind.startswith("uvicorn-"):
        _uvicorn(path, port, kind.removeprefix("uvicorn-"))
    elif kind == "apart":
        _uvicorn(path, port, "httptools", apart=True)
    else:
        {"hypercorn": _hypercorn, "granian": _granian}[kind](path, port)


if __name__ == "__main__":
    main()
