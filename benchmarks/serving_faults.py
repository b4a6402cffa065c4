"""What a server withstands: silent clients, killed workers, and both; beside another version of gapless.

    python -m benchmarks.serving_faults silent starts --against ../base
    python -m benchmarks.serving_faults storm --kills 100 --restarts 1000
    python -m benchmarks.serving_faults speed --rounds 10 --against ../base

Servers are processes of their own (`gapless serve`), and so are most clients. "silent": 64 clients that send
half a body and 1,100 that send nothing, and then a worker is killed; somebody asks all the while. "storm":
workers are killed for a minute under load, every answer is looked at, and the log is measured. "starts": from
a kill to the first chunk that the unit runs again. "speed": requests in turns to this version and to another.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.formulations.coordination.record import percentile

from .processes import workers

HERE = Path(__file__).absolute().parent.parent
PARTS = ("silent", "storm", "starts", "speed")
HALF, SILENT = 64, 1100


class Served:
    """A server of one version: its process, its port and its log."""

    def __init__(self, root: Path, options: argparse.Namespace, *words: str) -> None:
        self.log = tempfile.NamedTemporaryFile(mode="r", suffix=".log")  # noqa: SIM115 - closed in `close`
        command = [sys.executable, "-P", "-m", "gapless", "serve", options.model]
        command += ["--units", options.units, "--port", "0", "--json", *words]
        with open(self.log.name, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=tempfile.gettempdir(),
                env={**os.environ, "PYTHONPATH": str(root)},
            )
        self.port = self._port()
        self.path = f"/v2/models/{options.model}/infer"
        self.ready_bytes = os.stat(self.log.name).st_size

    def _port(self) -> int:
        while self.process.poll() is None:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", Path(self.log.name).read_text()):
                return int(found[1])
            time.sleep(0.05)
        sys.exit(Path(self.log.name).read_text())

    @property
    def workers(self) -> list[int]:
        """Process numbers of the workers, the oldest first."""
        found = workers(self.process.pid)
        found = {pid for pid in found if b"worker_process" in _read(f"/proc/{pid}/cmdline")}
        return sorted(found, key=_started_at)

    def metric(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        text = ask(self.port, "GET", "/metrics", timeout_s=30)[1].decode()
        rows = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, rows))

    def close(self) -> dict[str, Any]:
        """End it, and return what it says that it did."""
        self.process.terminate()
        out, _ = self.process.communicate(timeout=60)
        found: dict[str, Any] = json.loads(out) if out else {}
        return found


def ask(
    port: int, method: str, path: str, body: bytes = b"", *, timeout_s: float = 5.0, **headers: str
) -> tuple[int, bytes]:
    """Return code and body of an answer to a client of its own connection; 0: there was none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    except OSError as error:
        return 0, type(error).__name__.encode()
    finally:
        connection.close()


class Question:
    """A request in binary form, of inputs drawn by a seed."""

    def __init__(self, served: Served, seed: int = 0) -> None:
        _, text = ask(served.port, "GET", served.path.removesuffix("/infer"))
        drawn = np.random.default_rng(seed)
        given, blobs = [], b""
        for tensor in json.loads(text)["inputs"]:
            array = drawn.random(tensor["shape"], np.float32)
            given.append({**tensor, "parameters": {"binary_data_size": array.nbytes}})
            blobs += array.tobytes()
        head = json.dumps({"inputs": given, "parameters": {"binary_data_output": True}}).encode()
        self.body = head + blobs
        self.headers = {"Inference-Header-Content-Length": str(len(head))}

    def ask(self, served: Served, *, timeout_s: float = 5.0) -> tuple[int, bytes]:
        """Return code and body of the answer."""
        return ask(served.port, "POST", served.path, self.body, timeout_s=timeout_s, **self.headers)


def outputs(body: bytes) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return all numbers of an answer in binary form."""
    document, end = json.JSONDecoder().raw_decode(body.decode("latin-1"))
    assert document["outputs"]
    return np.frombuffer(body[end:], np.float32)


def silent(served: Served, options: argparse.Namespace) -> list[str]:
    """Let silent clients come, kill a worker, and ask twice a second."""
    question = Question(served)
    words = [sys.executable, "-m", "benchmarks.serving_faults", "--client", str(served.port), served.path]
    codes: list[tuple[float, int, float]] = []
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=HERE) as clients:
        assert clients.stdout is not None
        if not clients.stdout.readline():
            sys.exit("the silent clients did not come")
        begin_s = time.monotonic()
        os.kill(served.workers[0], signal.SIGKILL)
        while (at_s := time.monotonic() - begin_s) < options.seconds:
            code, _ = question.ask(served)
            codes.append((at_s, code, time.monotonic() - begin_s - at_s))
            time.sleep(0.5)
        live, _ = ask(served.port, "GET", "/v2/health/live")
        workers = len(served.workers)
        clients.terminate()
    counts = Counter(code or "no answer" for _, code, _ in codes)
    first = next((at_s + took_s for at_s, code, took_s in codes if code == 200), None)
    taken = sorted(1000 * took_s for _, code, took_s in codes if code == 200)
    return [
        ", ".join(f"{code}: {number}" for code, number in sorted(counts.items(), key=str)),
        "never" if first is None else f"{first:.1f} s",
        "-" if not taken else f"{percentile(taken, 500):.0f} / {taken[-1]:.0f} ms",
        f"{workers} of {len(options.units.split(','))}",
        str(live or "no answer"),
    ]


def be_silent(port: int, path: str) -> None:
    """Be clients that send half a body, and clients that send nothing, until this process is ended."""
    half = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\n{{"
    held = []
    for number in range(HALF + SILENT):
        with suppress(OSError):
            held.append(socket.create_connection(("127.0.0.1", port), timeout=20))
            if number < HALF:
                held[-1].sendall(half.encode())
    print("here", flush=True)
    time.sleep(3600)


def storm(served: Served, options: argparse.Namespace) -> list[str]:
    """Kill workers for a minute while clients ask, and look at every answer."""
    questions = [Question(served, seed) for seed in range(4)]
    right = [outputs(question.ask(served, timeout_s=60)[1]) for question in questions]
    answered = served.metric("gapless_request_seconds_count")
    until_s, counts = time.monotonic() + 60, Counter[str]()
    lock = threading.Lock()

    def asks(number: int) -> None:
        while time.monotonic() < until_s:
            code, body = questions[number % 4].ask(served, timeout_s=120)
            what = str(code or body.decode())
            if code == 200:
                what = "right" if np.allclose(outputs(body), right[number % 4], 1e-3, 1e-4) else "wrong"
            with lock:
                counts[what] += 1
            time.sleep(0.0 if code == 200 else 0.1)

    clients = [threading.Thread(target=asks, args=(number,)) for number in range(options.lanes)]
    for client in clients:
        client.start()
    killed = 0
    for number in range(options.kills):
        time.sleep(max(0.0, until_s - 60 + 60 * number / options.kills - time.monotonic()))
        if workers := served.workers:
            with suppress(ProcessLookupError):
                os.kill(workers[0], signal.SIGKILL)  # the other ones are starting, maybe
                killed += 1
    for client in clients:
        client.join()
    twice = served.metric("gapless_request_seconds_count") - answered - counts["right"] - counts["wrong"]
    log = Path(served.log.name).read_text()[served.ready_bytes :]
    return [
        str(killed),
        ", ".join(f"{what}: {number}" for what, number in sorted(counts.items())),
        f"{twice:+.0f}",
        f"{len(log.splitlines())} lines, {len(log) / 1000:.1f} kB",
    ]


def starts(served: Served, options: argparse.Namespace) -> list[str]:
    """Kill a worker again and again, and see how long its unit is away."""
    took_s = []
    for _ in range(options.rounds):
        begin_s = time.monotonic()
        os.kill(served.workers[0], signal.SIGKILL)
        while served.metric("gapless_unit_available") == len(options.units.split(",")):
            time.sleep(0.002)
        while served.metric("gapless_unit_available") < len(options.units.split(",")):
            time.sleep(0.01)
        took_s.append(time.monotonic() - begin_s)
        time.sleep(3.2)  # 20 in a minute are allowed
    return [f"{median(took_s):.2f} s", f"{min(took_s):.2f} to {max(took_s):.2f} s"]


def speed(all_served: list[Served], options: argparse.Namespace) -> list[list[str]]:
    """Ask servers in turns, over one connection and over several at a time."""
    took_us: list[list[float]] = [[] for _ in all_served]
    rates: list[list[float]] = [[] for _ in all_served]
    for turn in range(options.rounds):
        order = list(enumerate(all_served))
        for index, served in order if turn % 2 else reversed(order):
            question = Question(served)
            took_us[index] += _calls_us(served, question, options.turn_s)
            counts = [0] * options.lanes

            def lane(number: int, served: Served, question: Question, counts: list[int]) -> None:
                counts[number] = len(_calls_us(served, question, options.turn_s))

            lanes = [
                threading.Thread(target=lane, args=(number, served, question, counts))
                for number in range(options.lanes)
            ]
            begin_s = time.monotonic()
            for each in lanes:
                each.start()
            for each in lanes:
                each.join()
            rates[index].append(sum(counts) / (time.monotonic() - begin_s))
    return [
        [
            *(f"{percentile(sorted(times), share) or 0:,.0f} us" for share in (500, 900, 990)),
            f"{median(rate):.1f} a second",
            f"{median(a / b for a, b in zip(rate, rates[0], strict=True)):.3f}",
        ]
        for times, rate in zip(took_us, rates, strict=True)
    ]


def _calls_us(served: Served, question: Question, seconds: float) -> list[float]:
    """Ask for some seconds over one connection, and return how long each answer took."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    until_s, found = time.monotonic() + seconds, list[float]()
    while time.monotonic() < until_s:
        start_ns = time.perf_counter_ns()
        connection.request("POST", served.path, question.body, question.headers)
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200
        found.append((time.perf_counter_ns() - start_ns) / 1000)
    connection.close()
    return found


def _started_at(pid: int) -> int:
    """Return when a process started, in clock ticks; its name may hold blanks."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[19]) if fields else 0


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


COLUMNS = {
    "silent": ("answers by code", "first 200 after", "200 in, p50 / most", "workers at the end", "live"),
    "storm": ("killed", "answers", "answered by units, not received", "log"),
    "starts": ("unit away, median", "from, to"),
    "speed": ("p50", "p90", "p99", "throughput", "of this version"),
}


@contextmanager
def _served(root: Path, options: argparse.Namespace, *words: str) -> Iterator[Served]:
    found = Served(root, options, *words)
    try:
        yield found
    finally:
        found.close()


def _rows(part: str, versions: list[Path], options: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    if part == "speed":
        with ExitStack() as stack:
            opened = [stack.enter_context(_served(root, options)) for root in versions]
            yield from zip(map(str, versions), speed(opened, options), strict=True)
        return
    for root in versions:
        words = [] if options.restarts is None or root != HERE else ["--restarts", str(options.restarts)]
        with _served(root, options, *words) as served:
            measured = {"silent": silent, "storm": storm, "starts": starts}[part]
            yield str(root), measured(served, options)


def main() -> None:
    """Measure what is asked for, and print it."""
    options = _arguments()
    console = Console(width=150)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}, gapless {gapless.__version__}; "
        f"{options.model} on {options.units}"
    )
    versions = [HERE, *(path.absolute() for path in options.against)]
    for part in options.parts:
        table = Table(title=part, title_justify="left")
        for column in ("version", *COLUMNS[part]):
            table.add_column(column)
        for name, cells in _rows(part, versions, options):
            table.add_row(name, *cells)
        console.print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"which of {', '.join(PARTS)}; all unless said otherwise")
    parser.add_argument("--against", type=Path, action="append", default=[], help="root of another version")
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--seconds", type=float, default=40.0, help="of silent clients")
    parser.add_argument("--kills", type=int, default=100, help="of a storm, within a minute")
    parser.add_argument("--restarts", type=int, help="as for `gapless serve`, of this version")
    parser.add_argument("--rounds", type=int, default=10, help="of starts, and of turns")
    parser.add_argument("--turn-s", type=float, default=3.0, help="how long a turn takes")
    parser.add_argument("--lanes", type=int, default=4, help="clients at a time")
    parser.add_argument("--client", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        be_silent(int(options.client[0]), options.client[1])
        sys.exit()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}")
    options.parts = options.parts or list(PARTS)
    return options


if __name__ == "__main__":
    main()
