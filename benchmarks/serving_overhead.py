"""What a server adds to the engine's own time for a tensor of 600 kB, beside others, and where it goes.

    python -m benchmarks.serving_overhead --rounds 20 --calls 50
    python -m benchmarks.serving_overhead --python ../servers/bin/python --mlserver ../mlserver/bin/python
    python -m benchmarks.serving_overhead --against ../base --servers serve,uvicorn-httptools

Servers are processes of their own, all around the same small network in ONNX Runtime on one thread, and take
turns, round by round: `gapless serve`, and what `bare_servers` has: a bare application on its web server,
with the engine there or in a process of its own, and on other web servers.
What is added is the time of a call, as the client sees it on a connection that stays open, less what the
engine took in the median. The processor's time is that of the server with all its processes, engine included.
Servers whose packages are not installed are left out, and named. `--python`, `--mlserver`: interpreters that
have hypercorn and granian, and MLServer. `--against`: another version of gapless beside.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from rich.console import Console
from rich.table import Table

from gapless.formulations.coordination.record import percentile
from gapless.serving.wire import wire

from .arguments import chosen
from .processes import descendants

HERE = Path(__file__).absolute().parent
ROOT = HERE.parent
SHAPE = (1, 3, 224, 224)
OURS, BARE, OVER_GRPC = "serve", "uvicorn-httptools", "mlserver"
SERVERS = {
    OURS: "gapless serve",
    BARE: "a bare application on its web server",
    "apart": "the same, engine in another process",
    "uvicorn-h11": "bare, on uvicorn with h11",
    "hypercorn": "bare, on hypercorn",
    "granian": "bare, on granian",
    OVER_GRPC: "MLServer, gRPC",
    "loop": "a loop by hand",
}
"""Servers by name, in words; most are in `bare_servers`. MLServer's REST has no binary tensors."""

_START_S = 60.0
# What `gapless serve` asks of the C library for itself: without it, half of the time goes into memory.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(4 * 2**20), "MALLOC_TRIM_THRESHOLD_": str(64 * 2**20)}
_WARM = 3
_TICKS = os.sysconf("SC_CLK_TCK")


def network(folder: Path, layers: int) -> Path:
    """Write a network that reads all of its input as often as it has layers, and does little else."""
    names = ["x", *(f"x{number}" for number in range(1, layers))]
    relus = [helper.make_node("Relu", [taken], [given]) for taken, given in pairwise(names)]
    graph = helper.make_graph(
        [*relus, helper.make_node("GlobalAveragePool", names[-1:], ["y"])],
        "mean",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 3, 1, 1))],
    )
    path = folder / "mean.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), path)
    return path


def request(array: Any, model: str, host: str, name: str = "x") -> bytes:
    """Return a whole request of one input in binary form."""
    tensor = {
        "name": name,
        "shape": list(array.shape),
        "datatype": "FP32",
        "parameters": {"binary_data_size": array.nbytes},
    }
    told = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    lines = (
        f"POST /v2/models/{model}/infer HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/octet-stream",
        f"Inference-Header-Content-Length: {len(told)}",
        f"Content-Length: {len(told) + array.nbytes}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + told + bytes(array)


class Caller:
    """A client with one connection that stays open, which does as little as it can."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, whole: bytes) -> tuple[float, dict[str, Any], bytes]:
        """Return how many microseconds a call took, the document of its answer, and what follows it."""
        start_ns = time.perf_counter_ns()
        self._socket.sendall(whole)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head, _, body = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields[b"content-length"]):
            body += self._received()
        took_us = (time.perf_counter_ns() - start_ns) / 1000
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError(f"{head.splitlines()[0]!r}: {body!r}")
        length = int(fields.get(b"inference-header-content-length", len(body)))
        return took_us, json.loads(body[:length]), body[length:]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def _received(self) -> bytes:
        data = self._socket.recv(1 << 20)
        if not data:
            raise OSError("the server has ended")
        return data


def grpc_request(array: Any) -> bytes:
    """Return the same as a message of gRPC."""
    made = wire().messages["ModelInferRequest"](model_name="model", raw_input_contents=[array.tobytes()])
    made.inputs.add(name="x", datatype="FP32", shape=array.shape)
    data: bytes = made.SerializeToString()
    return data


class GrpcCaller:
    """A client of gRPC with one connection."""

    def __init__(self, port: int) -> None:
        import grpc  # noqa: PLC0415 - an extra

        self._error = grpc.RpcError
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", [("grpc.max_receive_message_length", -1)])
        self._method = self._channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

    def call(self, whole: bytes) -> tuple[float, dict[str, Any], bytes]:
        """Return how many microseconds a call took, and what it gave, as `Caller` does."""
        start_ns = time.perf_counter_ns()
        try:
            data = self._method(whole, timeout=60)
        except self._error as error:
            raise OSError(str(error)) from None
        took_us = (time.perf_counter_ns() - start_ns) / 1000
        said = wire().messages["ModelInferResponse"].FromString(data)
        told = {"engine_us": float(said.parameters["engine_us"].string_param)}
        numbers = np.array(said.outputs[0].contents.fp32_contents, np.float32).tobytes()
        return took_us, {"parameters": told}, b"".join(said.raw_output_contents) or numbers

    def close(self) -> None:
        """End the connection."""
        self._channel.close()


@dataclass
class Round:
    """What one server did in one round."""

    calls_us: list[float] = field(default_factory=list)
    engine_us: list[float] = field(default_factory=list)  # empty: it does not say
    cpu_s: float = 0.0


class Beside:
    """A server that is measured."""

    def __init__(self, name: str, words: Sequence[str], root: Path = ROOT) -> None:
        self.name = name
        self.rounds: list[Round] = []
        self._port = free_port()
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(
            [word.replace("PORT", str(self._port)) for word in words],
            stdout=self.output,
            stderr=subprocess.STDOUT,
            cwd=tempfile.gettempdir(),
            env={**os.environ, "PYTHONPATH": str(root), **_MEMORY},
        )
        self._model = "mean" if "serve" in words else "model"
        self._statistics = (0, 0)
        array = np.random.default_rng(0).random(SHAPE, np.float32)
        over_grpc = any("mlserver" in word for word in words)
        self._connect: Callable[[], Caller | GrpcCaller] = lambda: Caller(self._port)
        self._whole = request(array, self._model, f"127.0.0.1:{self._port}")
        if over_grpc:
            self._connect, self._whole = lambda: GrpcCaller(self._port + 1), grpc_request(array)
        self._wanted = array.mean(axis=(2, 3)).ravel()

    def open(self) -> str:
        """Wait until it answers rightly; return why it does not, or nothing."""
        until_s, why = time.monotonic() + _START_S, "it did not answer in time"
        while time.monotonic() < until_s:
            if self._process.poll() is not None:
                self.output.seek(0)
                lines = self.output.read().decode(errors="replace").strip().splitlines()
                return lines[-1] if lines else "it has ended"
            try:
                self._caller = self._connect()
                _, told, blob = self._caller.call(self._whole)
            except OSError as error:
                why = str(error)
                time.sleep(0.1)
                continue
            found = np.frombuffer(blob, np.float32) if blob else np.array(told["outputs"][0]["data"])
            if not np.allclose(found.ravel(), self._wanted, atol=1e-4):
                return "its answer is wrong"
            return ""
        return why

    def round(self, calls: int, *, kept: bool) -> None:
        """Call it some times."""
        self._caller.close()  # some servers end a connection that is idle for 5 s
        self._caller = self._connect()
        for _ in range(_WARM):
            self._caller.call(self._whole)
        found, before_s, before_ns = Round(), self._cpu_s(), self._infer_ns()
        for _ in range(calls):
            took_us, told, _ = self._caller.call(self._whole)
            found.calls_us.append(took_us)
            if "engine_us" in told.get("parameters", {}):
                found.engine_us.append(told["parameters"]["engine_us"])
        if before_ns:
            found.engine_us = [(self._infer_ns() - before_ns) / calls / 1000]
        found.cpu_s = self._cpu_s() - before_s
        if kept:
            self.rounds.append(found)

    def added_us(self, engine_us: float) -> list[list[float]]:
        """Return what it added to the engine's own time, by rounds."""
        return [[call - engine_us for call in each.calls_us] for each in self.rounds]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.output.close()

    def _infer_ns(self) -> int:
        """Return how long the engine of `gapless serve` has run, as it says itself."""
        if self._model != "mean":
            return 0
        host = f"127.0.0.1:{self._port}"
        asked = f"GET /v2/models/mean/stats HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        try:
            _, told, _ = self._caller.call(asked)
        except OSError:  # an older version
            return 0
        found: int = told["model_stats"][0]["inference_stats"]["compute_infer"]["ns"]
        return found

    def _cpu_s(self) -> float:
        pid = self._process.pid
        return sum(map(_cpu_s, (pid, *descendants(pid))))


def _cpu_s(pid: int) -> float:
    try:
        words = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / _TICKS


def free_port() -> int:
    """Return a port that is free now, and the two behind it, most likely."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _words(name: str, model: Path, options: argparse.Namespace) -> list[str]:
    if name == OURS:
        words = [sys.executable, "-P", "-m", "gapless", "serve", f"mean={model}", "--units", options.units]
        return [*words, "--port", "PORT"]
    if name == OVER_GRPC:
        return [options.mlserver, "-m", "benchmarks.bare_mlserver", str(model), "PORT"]
    python = sys.executable if name in (BARE, "apart", "uvicorn-h11", "loop") else options.python
    return [python, "-m", "benchmarks.bare_servers", name, str(model), "PORT"]


def compared(options: argparse.Namespace, console: Console) -> Table:
    """Let all servers take turns, and return what each added."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        model, servers = network(Path(folder), options.layers), list[Beside]()
        asked = [(name, SERVERS[name], ROOT) for name in SERVERS if name in options.servers]
        asked += [(OURS, f"gapless serve of {each.name}", each.absolute()) for each in options.against]
        for name, title, root in asked:
            server = Beside(title, _words(name, model, options), root)
            stack.callback(server.close)
            if why := server.open():
                console.print(f"left out: {title}: {why}")
            else:
                servers.append(server)
        for number in range(options.rounds + 1):
            for server in servers[number % len(servers) :] + servers[: number % len(servers)]:
                server.round(options.calls, kept=number > 0)
    return _table(servers, options)


def _table(servers: Sequence[Beside], options: argparse.Namespace) -> Table:
    table = Table(title=f"{options.rounds} rounds of {options.calls} calls", title_justify="left")
    for column in (
        "server",
        "added p50, ms",
        "p99",
        "p50 by rounds",
        "times bare",
        "processor, ms",
        "engine, ms",
    ):
        table.add_column(column, justify="left" if column == "server" else "right")
    by_name = {server.name: server for server in servers}
    for server in servers:
        engine, rounds = _engine_us(server, servers), server.added_us(_engine_us(server, servers))
        added, rows = sorted(us for each in rounds for us in each), [median(each) for each in rounds]
        times = "-"
        bare = by_name.get(SERVERS[BARE])
        if bare is not None and bare is not server:
            others = map(median, bare.added_us(_engine_us(bare, servers)))
            ratios = sorted(a / b for a, b in zip(rows, others, strict=True))
            times = f"{median(ratios):.2f} ({percentile(ratios, 100):.2f}-{percentile(ratios, 900):.2f})"
        cpu_ms = 1000 * sum(each.cpu_s for each in server.rounds) / len(added)
        table.add_row(
            server.name,
            _ms(percentile(added, 500)),
            _ms(percentile(added, 990)),
            f"{_ms(min(rows))}-{_ms(max(rows))}",
            times,
            f"{cpu_ms:.2f}",
            _ms(engine),
        )
    return table


def _engine_us(server: Beside, servers: Sequence[Beside]) -> float:
    """Return what the engine takes in the median; where a server does not say it, as in the first one."""
    first = server if server.rounds[0].engine_us else servers[0]
    return median(us for each in first.rounds for us in each.engine_us)


def _ms(us: float | None) -> str:
    return "-" if us is None else f"{us / 1000:.2f}"


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=50, help="of each server in a round")
    parser.add_argument("--layers", type=int, default=1, help="of the network: 100 take some milliseconds")
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--servers", type=chosen([*SERVERS]), default=[*SERVERS], metavar="NAME,...")
    parser.add_argument("--python", default=sys.executable, help="for the other web servers")
    parser.add_argument("--mlserver", default=sys.executable, help="for MLServer")
    parser.add_argument("--against", type=Path, nargs="*", default=(), help="other versions of gapless")
    options = parser.parse_args()
    console = Console(width=118)
    console.print(
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    console.print(compared(options, console))


if __name__ == "__main__":
    main()
