"""Where the time of a request of 600 kB goes in `gapless serve`, from the client's first byte to its answer.

    python -m benchmarks.serving_parts --calls 500

One client, a process of its own, asks one thing after the other. Times are taken by the monotonic clock,
which processes share, where the request passes: the parts together are what the client waits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.coordination.coordinator import Coordinator
from gapless.executor.coordination.loop import Loop
from gapless.executor.coordination.requests import Served
from gapless.formulations.coordination.record import percentile
from gapless.serving.app import App
from gapless.serving.service import Service

from .serving_overhead import SHAPE, Caller, network, request

_WARM = 50

PARTS = (
    "bytes come, the head is read",
    "the rest of the body comes",
    "the request is read and checked",
    "inputs go into shared memory",
    "the coordinator decides, and the worker hears",
    "inputs go into the engine",
    "the engine runs",
    "outputs go into shared memory",
    "the coordinator hears",
    "outputs are copied, and the server hears",
    "the answer is made",
    "the answer goes out",
    "the client has it",
)


class Marks:
    """When a request passes the places that are watched."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self._now: dict[str, int] = {}
        self._watch_later(App, "__call__", "called", "written")
        self._watch_later(App, "_read", "", "read")
        self._watch(Coordinator, "submit", "submit", "submitted")
        self._watch(Loop, "_done", "heard", "")
        self._watch_later(App, "_infer", "", "made")
        self._watch_later(Service, "_run", "", "served")

    def _watch(self, owner: type, name: str, before: str, after: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def watched(*words: Any, **options: Any) -> Any:
            self._now[before] = monotonic_ns()
            found = function(*words, **options)
            self._now[after] = monotonic_ns()
            return found

        setattr(owner, name, watched)

    def _watch_later(self, owner: type, name: str, before: str, after: str) -> None:
        function: Callable[..., Awaitable[Any]] = getattr(owner, name)

        async def watched(*words: Any, **options: Any) -> Any:
            self._now[before] = monotonic_ns()
            found = await function(*words, **options)
            self._now[after] = monotonic_ns()
            if isinstance(found, Served):
                self._now |= dict(zip(("start", "in", "ran", "out"), found.chunks[0].times_ns, strict=True))
            if after == "written" and "made" in self._now:
                self._keep()
            return found

        setattr(owner, name, watched)

    def _keep(self) -> None:
        names = (
            "called",
            "read",
            "submit",
            "submitted",
            "start",
            "in",
            "ran",
            "out",
            "heard",
            "served",
            "made",
        )
        self.calls.append([self._now[name] for name in (*names, "written")])
        self._now.clear()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--layers", type=int, default=1, help="of the network: 100 take some milliseconds")
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        _be_client(options.client, options.calls)
        return
    marks = Marks()
    with tempfile.TemporaryDirectory() as folder:
        model = network(Path(folder), options.layers)
        units = gapless.this_device(units=options.units.split(","))
        with gapless.serve([f"mean={model}"], platform=units, port=0) as server:
            words = ["--client", server.url.rpartition(":")[2], "--calls", str(options.calls)]
            client = subprocess.run(
                [sys.executable, "-m", "benchmarks.serving_parts", *words],
                capture_output=True,
                check=True,
                text=True,
            )
    ends = [tuple(map(int, line.split())) for line in client.stdout.splitlines()]
    calls = [[begin, *marked, end] for (begin, end), marked in zip(ends, marks.calls, strict=True)][_WARM:]
    table = Table(title=f"{options.calls} calls, load {os.getloadavg()[0]:.1f}", title_justify="left")
    for column in ("part", "p10, us", "p50", "p99"):
        table.add_column(column, justify="left" if column == "part" else "right")
    for number, part in enumerate((*PARTS, "all of it")):
        spans = [
            (call[-1] - call[0]) if part == "all of it" else call[number + 1] - call[number] for call in calls
        ]
        known = sorted(span / 1000 for span in spans)
        table.add_row(part, *(f"{percentile(known, share) or 0:,.0f}" for share in (100, 500, 990)))
    Console(width=118).print(table)


def _be_client(port: int, calls: int) -> None:
    caller = Caller(port)
    whole = request(np.random.default_rng(0).random(SHAPE, np.float32), "mean", f"127.0.0.1:{port}")
    for _ in range(calls + _WARM):
        begin_ns = monotonic_ns()
        caller.call(whole)
        print(begin_ns, monotonic_ns())


if __name__ == "__main__":
    main()
