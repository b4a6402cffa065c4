"""What serving costs and withstands: latency that is added, overload, killed workers, units taken away.

    python -m benchmarks.serving --rounds 500
    python -m benchmarks.serving --minutes 30 --factor 2
    python -m benchmarks.serving --minutes 30 --kill-every 5
    python -m benchmarks.serving --kills 50
    python -m benchmarks.serving --json-seconds 20

Clients are processes of their own. Direct calls of the coordinator and calls over the server take turns, so
that both see the same machine (`serving_overhead` has other servers beside it). Under load, requests come at
a fixed rate, a multiple of what the coordinator was seen to do just before, whatever becomes of earlier ones;
memory is that of processes with shared pages in parts (PSS).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import IO

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.coordination.tally import Fate, Statistics
from gapless.formulations.coordination.record import percentile

from .processes import descendants, resident_bytes

_MIB = 2**20
_LANES = 256
"""Connections of the load: more than the queue is long, or nothing would be refused."""


def _sum(name: str, shape: tuple[int, ...]) -> gapless.running.CallableModel:
    layer = gapless.running.CallableLayer(
        name="y", variants={"*": lambda x: np.full(16, x.sum(), np.float32)}, inputs=("x",)
    )
    return gapless.running.CallableModel(
        name=name,
        inputs=(gapless.running.TensorSpec(name="x", shape=shape),),
        layers=(layer,),
        outputs=("y",),
    )


SMALL, IMAGE, LARGE = (
    _sum("small", (16,)),
    _sum("image", (1, 3, 224, 224)),
    _sum("large", (1, 3, 1024, 1024)),
)
"""Models that do next to nothing, so that what is measured is the server."""


_BESIDE = (
    ("nobody", "", 0),
    ("two clients that send images of 3 MB", "image", 2),
    ("one that sends 60 MB to the large model", "large", 1),
    ("one that sends 60 MB to the small model", "small", 1),
    ("one that names 20 million inputs", "", 1),
)
"""Beside whom a small model is watched: the model that others send JSON to, and how many they are."""


def main() -> None:
    """Measure what is asked for, and print it."""
    options = _arguments()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}; {options.model} on {options.units}"
    )
    units = gapless.this_device(units=options.units.split(","))
    if options.json_seconds:
        console.print(_beside_json(units, options.json_seconds))
        return
    with gapless.serve(
        [options.model], platform=units, port=0, queue=options.queue, restarts=10_000, policy=options.policy
    ) as server:
        if options.rounds:
            console.print(_added(server, options))
        if options.minutes:
            console.print(_load(server, options))
        if options.kills:
            console.print(_kills(server, options))


def _added(server: gapless.running.Server, options: argparse.Namespace) -> Table:
    """Let direct calls and calls over the server take turns."""
    coordinator = server.coordinator
    inputs = coordinator.registered[options.model].held.model.sample_inputs(0)
    direct_us, served_us = list[float](), list[float]()
    with _client(server, options, "one") as client:
        ask = _talk(client)
        for number in range(options.rounds + 10):
            start_ns = time.perf_counter_ns()
            coordinator.run(options.model, inputs)
            direct = (time.perf_counter_ns() - start_ns) / 1000
            over = float(ask("go"))
            if number >= 10:
                direct_us.append(direct)
                served_us.append(over)
        client.terminate()
    for _ in range(4):
        for future in [coordinator.submit(options.model, inputs) for _ in range(options.queue)]:
            future.result()
    statistics = coordinator.statistics()
    table = _table(f"{options.rounds} rounds", "what", "p50, us", "p90, us", "p99, us")
    added_us = [over - direct for over, direct in zip(served_us, direct_us, strict=True)]
    rows = {"direct": direct_us, "over the server": served_us, "added, by pairs": added_us}
    rows["end of a chunk to the next start, queue not empty"] = _gaps_us(coordinator, 4 * options.queue)
    for what, values in rows.items():
        known = sorted(values)
        table.add_row(what, *(f"{percentile(known, share) or 0:,.0f}" for share in (500, 900, 990)))
    table.caption = f"{statistics.decision_us or 0:.1f} us a decision in the median"
    return table


def _gaps_us(coordinator: gapless.coordination.Coordinator, count: int) -> list[float]:
    """Return how long units waited between two of the last chunks."""
    history = coordinator.history()
    assert history is not None
    last = sorted(history.events, key=lambda event: event.end_ns)[-count:]
    units = {event.unit for event in last}
    rows = [sorted((e for e in last if e.unit == unit), key=lambda e: e.start_ns) for unit in units]
    return [(b.start_ns - a.end_ns) / 1000 for row in rows for a, b in pairwise(row)]


def _load(server: gapless.running.Server, options: argparse.Namespace) -> Table:
    """Send more than can be served, and look at codes and memory."""
    coordinator = server.coordinator
    inputs = coordinator.registered[options.model].held.model.sample_inputs(0)
    start_s, count = time.monotonic(), 0
    while time.monotonic() < start_s + 5:
        for future in [coordinator.submit(options.model, inputs) for _ in range(options.queue)]:
            future.result()
            count += 1
    capacity = count / (time.monotonic() - start_s)
    before = coordinator.statistics()
    rate = options.factor * capacity
    table = _table(
        f"{rate:.0f} requests a second, {options.factor:g} times what it can do, {options.minutes:g} minutes",
        "minutes",
        "server, MiB",
        "its processes, MiB",
        "waiting",
        "answered",
    )
    drawn, killed = random.Random(options.seed), 0
    with _client(server, options, "load", str(rate), str(60 * options.minutes)) as client:
        begin_s = time.monotonic()
        every_s = options.kill_every or 120 * options.minutes
        steps = max(4, min(30, round(options.minutes)))
        for step in range(steps + 1):
            until_s = begin_s + 60 * options.minutes * step / steps
            while (next_s := begin_s + every_s * (killed + 1)) < until_s:
                time.sleep(max(0.0, next_s - time.monotonic()))
                killed += 1
                if pids := list(coordinator.pids.values()):
                    os.kill(drawn.choice(pids), signal.SIGKILL)
            time.sleep(max(0.0, until_s - time.monotonic()))
            others = sum(map(resident_bytes, {*descendants(os.getpid())} - {client.pid}))
            now = coordinator.statistics()
            table.add_row(
                f"{(time.monotonic() - begin_s) / 60:.1f}",
                f"{resident_bytes(os.getpid()) / _MIB:.1f}",
                f"{others / _MIB:.1f}",
                str(now.waiting),
                f"{_answered(now) - _answered(before):,}",
            )
        out, _ = client.communicate(timeout=120)
    found = json.loads(out)
    after = coordinator.statistics()
    said = ", ".join(f"{code}: {number:,}" for code, number in sorted(found["codes"].items()))
    failed = after.total(Fate.FAILED) - before.total(Fate.FAILED)
    table.caption = (
        f"by code {said} (0: no answer; -1: not sent, as all connections were busy)\n"
        f"{_answered(after) - _answered(before):,} answered by units, {failed} failed, {killed} kills\n"
        f"answers: p50 {found['p50_ms']:,.0f} ms, p99 {found['p99_ms']:,.0f} ms"
    )
    return table


def _answered(counts: Statistics) -> int:
    return counts.total(Fate.ANSWERED) + counts.total(Fate.LATE)


def _kills(server: gapless.running.Server, options: argparse.Namespace) -> Table:
    """Kill workers, and take units away, while requests are served; look at every answer."""
    coordinator, drawn = server.coordinator, random.Random(options.seed)
    model = coordinator.registered[options.model].held.model
    samples = [model.sample_inputs(seed) for seed in range(4)]
    right = [model.reference(sample) for sample in samples]
    counts: Counter[str] = Counter()
    pending: list[tuple[int, Future[gapless.coordination.Served]]] = []
    names = coordinator.platform.unit_names
    orders = ["killed", "taken away"] * options.kills
    drawn.shuffle(orders)
    while orders:
        while coordinator.statistics().waiting < options.queue // 2:
            pending.append((len(pending) % 4, coordinator.submit(options.model, samples[len(pending) % 4])))
        time.sleep(drawn.uniform(0.05, 0.3))
        unit = drawn.choice(names)
        if orders[-1] == "killed":
            if (pid := coordinator.pids.get(unit)) is None:
                continue  # it is between two workers
            os.kill(pid, signal.SIGKILL)
        else:
            coordinator.withdraw(unit)
            time.sleep(drawn.uniform(0.0, 0.2))
            coordinator.restore(unit)
        counts[orders.pop()] += 1
        _wait_until(lambda: any(each.available for each in coordinator.statistics().units))
    seen: Counter[int] = Counter()
    for sample, future in pending:
        served = future.result(timeout=300)
        seen[served.number] += 1
        good = all(np.allclose(served.outputs[k], v, rtol=1e-3, atol=1e-4) for k, v in right[sample].items())
        counts["right" if good else "wrong"] += 1
    counts["requests"] = len(pending)
    counts["answered twice"] = sum(number > 1 for number in seen.values())
    counts["lost"] = len(pending) - len(seen)
    table = _table("workers killed and units taken away under load", "what", "count")
    for what in ("killed", "taken away", "requests", "right", "wrong", "lost", "answered twice"):
        table.add_row(what, str(counts[what]))
    return table


def _beside_json(units: gapless.Platform, seconds: float) -> Table:
    """Watch the latency of a small model while other clients send JSON: images, and 60 MB at once."""
    models = [f"{__file__}:{name}" for name in ("SMALL", "IMAGE", "LARGE")]
    table = _table(
        f"a small model, asked for {seconds:g} s", "beside", "calls", "p50, ms", "p99, ms", "most, ms"
    )
    table.add_column("what the others got")
    for beside, model, count in _BESIDE:
        with gapless.serve(models, platform=units, port=0) as server:
            others = [_json_client(server, model, seconds) for _ in range(count)]
            client = _json_client(server, "watch", seconds)
            for each in (*others, client):
                assert each.stdout is not None
                each.stdout.readline()  # what they will send is ready
            for each in (client, *others):
                assert each.stdin is not None
                each.stdin.write("go\n")
                each.stdin.flush()
            out, *said = (each.communicate(timeout=600)[0].strip() for each in (client, *others))
        known = sorted(json.loads(out))
        row = [f"{percentile(known, share) or 0:,.1f}" for share in (500, 990, 1000)]
        table.add_row(beside, str(len(known)), *row, "; ".join(said))
    return table


def _json_client(server: gapless.running.Server, what: str, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.serving", "--model", "small", "--client"]
    command += [server.url.rpartition(":")[2], "json", what, str(seconds)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _be_json_client(port: int, what: str, seconds: float, orders: IO[str]) -> str:
    """Ask the small model, or send JSON to another one, for some seconds; return what there is to say."""
    body = b"" if what == "watch" else _json_body(what)
    print("ready", flush=True)
    orders.readline()
    begin_s = time.monotonic()
    if what == "watch":
        caller, calls_ms = _Caller(port, "small"), list[float]()
        while time.monotonic() < begin_s + seconds:
            start_s = time.monotonic()
            assert caller.call() == 200
            calls_ms.append(1000 * (time.monotonic() - start_s))
            time.sleep(0.005)
        return json.dumps(calls_ms)
    codes, times_s = Counter[int](), list[float]()
    while time.monotonic() < begin_s + seconds:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        start_s = time.monotonic()
        try:
            connection.request("POST", f"/v2/models/{what or 'small'}/infer", body)
            codes[connection.getresponse().status] += 1
        except OSError:  # the server hangs up on what it does not want
            codes[0] += 1
        times_s.append(time.monotonic() - start_s)
        connection.close()
        if what != "image":
            break
    said = ", ".join(f"{code or 'hung up'}: {count}" for code, count in sorted(codes.items()))
    return f"{said}, {1000 * sorted(times_s)[len(times_s) // 2]:,.0f} ms"


def _json_body(what: str) -> bytes:
    if not what:
        return b'{"inputs": [' + b"{}," * 20_000_000 + b"{}]}"
    shape = {"image": (1, 3, 224, 224), "large": (1, 3, 1024, 1024), "small": (1, 3, 1024, 1024)}[what]
    data = np.random.default_rng(0).random(shape, np.float32).ravel().tolist()
    return json.dumps({"inputs": [{"name": "x", "shape": shape, "datatype": "FP32", "data": data}]}).encode()


def _wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.01)


def _client(
    server: gapless.running.Server, options: argparse.Namespace, *words: str
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.serving", "--model", options.model, "--client"]
    command += [server.url.rpartition(":")[2], *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _talk(client: subprocess.Popen[str]) -> Callable[[str], str]:
    def ask(word: str) -> str:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(f"{word}\n")
        client.stdin.flush()
        return client.stdout.readline()

    return ask


class _Caller:
    """A client of its own process: one connection that stays open."""

    def __init__(self, port: int, model: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
        self._path = f"/v2/models/{model}/infer"
        self._connection.request("GET", f"/v2/models/{model}")
        tensors = json.loads(self._connection.getresponse().read())["inputs"]
        arrays = [np.full(tensor["shape"], 0.5, np.float32) for tensor in tensors]
        given = [
            {**tensor, "parameters": {"binary_data_size": array.nbytes}}
            for tensor, array in zip(tensors, arrays, strict=True)
        ]
        head = json.dumps({"inputs": given, "parameters": {"binary_data_output": True}}).encode()
        self._body = head + b"".join(array.tobytes() for array in arrays)
        self._headers = {"Inference-Header-Content-Length": str(len(head))}

    def call(self) -> int:
        """Return the code of an answer; 0: there was none."""
        try:
            self._connection.request("POST", self._path, self._body, self._headers)
            reply = self._connection.getresponse()
            reply.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0
        return reply.status


def _be_client(port: int, model: str, words: Sequence[str], orders: IO[str]) -> None:
    if words[0] == "json":
        print(_be_json_client(port, words[1], float(words[2]), orders))
        return
    if words[0] == "one":
        caller = _Caller(port, model)
        for _ in orders:
            start_ns = time.perf_counter_ns()
            assert caller.call() == 200
            print((time.perf_counter_ns() - start_ns) / 1000, flush=True)
        return
    rate, seconds = float(words[1]), float(words[2])
    begin_s = time.monotonic()
    with ThreadPoolExecutor(_LANES) as pool:
        lanes = pool.map(
            lambda lane: list(_lane(_Caller(port, model), lane, rate, seconds, begin_s=begin_s)),
            range(_LANES),
        )
        calls = list(chain.from_iterable(lanes))
    codes = Counter(code for code, _ in calls)
    taken = sorted(took_ms for code, took_ms in calls if code == 200)
    p50_ms, p99_ms = percentile(taken, 500), percentile(taken, 990)
    print(json.dumps({"codes": codes, "p50_ms": p50_ms or 0.0, "p99_ms": p99_ms or 0.0}))


def _lane(
    caller: _Caller, lane: int, rate: float, seconds: float, *, begin_s: float
) -> Iterator[tuple[int, float]]:
    """Yield the code of each call and how long it took, milliseconds; -1: it was not made."""
    for number in range(lane, int(rate * seconds), _LANES):
        at_s = begin_s + number / rate
        if at_s < time.monotonic() - 1:
            yield -1, 0.0  # the lane is behind: others have sent meanwhile
            continue
        time.sleep(max(0.0, at_s - time.monotonic()))
        start_s = time.monotonic()
        yield caller.call(), 1000 * (time.monotonic() - start_s)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    return table


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--policy", default="lst")
    parser.add_argument("--queue", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=0, help="of direct and served calls in turns")
    parser.add_argument("--minutes", type=float, default=0.0, help="of overload")
    parser.add_argument("--factor", type=float, default=1.5, help="load, in times of what it can do")
    parser.add_argument("--kill-every", type=float, default=0.0, help="seconds, of a worker under overload")
    parser.add_argument("--kills", type=int, default=0, help="of workers; a unit is taken away as often")
    parser.add_argument(
        "--json-seconds", type=float, default=0.0, help="of a small model beside clients that send JSON"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--client", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        _be_client(int(options.client[0]), options.model, options.client[1:], sys.stdin)
        sys.exit()
    if not (options.rounds or options.minutes or options.kills):
        options.rounds = 200
    return options


if __name__ == "__main__":
    main()
