"""The same model served by this machine and by nodes of a Ray cluster on it: requests a second, p50, p99.

    python -m benchmarks.serving_cluster --rounds 5 --seconds 3

Four servers are open at once, on the same cores, and take turns: the units core0, core0 and core1, and the
local nodes a, a and b, which are pinned to these cores. A client, a process of its own, asks for squeezenet,
and for a mean, which takes next to no time (both 600 kB in, binary), from one connection (latency) and from
several (throughput).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

import gapless
from gapless.executor.cluster.actors import local_cluster
from gapless.formulations.coordination.record import percentile

from .serving_overhead import SHAPE, Caller, network, request

INPUTS = {"squeezenet": "image", "mean": "x"}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    parser.add_argument("--connections", type=int, default=4, help="of the client, for throughput")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        be_client(options.client, options.model, options.connections, options.seconds)
        return
    first, second = (gapless.this_device(units=units) for units in (["core0"], ["core0", "core1"]))
    took: dict[tuple[str, str, int], list[list[float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, local_cluster("a=core0,b=core1") as cluster:
        models = ["squeezenet", f"mean={network(Path(folder), 1)}"]
        with (
            gapless.serve(models, platform=first, port=0) as one_unit,
            gapless.serve(models, cluster=cluster, devices=["a"], port=0) as one_node,
            gapless.serve(models, platform=second, port=0) as two_units,
            gapless.serve(models, cluster=cluster, port=0) as two_nodes,
        ):
            servers = {
                "core0": one_unit,
                "node a": one_node,
                "core0, core1": two_units,
                "nodes a, b": two_nodes,
            }
            for _ in range(options.rounds):
                for model in INPUTS:
                    for connections in (1, options.connections):
                        for name, server in servers.items():
                            port = int(server.url.rpartition(":")[2])
                            found = asked(port, model, connections, options.seconds)
                            took[model, name, connections].append(found)
    table = Table(
        title=f"{options.rounds} rounds of {options.seconds:g} s, load {os.getloadavg()[0]:.1f}",
        title_justify="left",
    )
    for column in ("model", "served by", "connections", "requests/s", "p50, ms", "p99, ms"):
        table.add_column(column, justify="left" if column in {"model", "served by"} else "right")
    for (model, name, connections), rounds in took.items():
        rate = median(len(found) for found in rounds) / options.seconds
        shares = [median(percentile(sorted(found), at) or 0.0 for found in rounds) for at in (500, 990)]
        table.add_row(
            model, name, str(connections), f"{rate:.1f}", *(f"{share / 1000:.2f}" for share in shares)
        )
    Console(width=100).print(table)


def asked(port: int, model: str, connections: int, seconds: float) -> list[float]:
    """Return how long each call of a client took, microseconds."""
    words = ["--client", port, "--model", model, "--connections", connections, "--seconds", seconds]
    program = [sys.executable, "-m", "benchmarks.serving_cluster", *map(str, words)]
    found: list[float] = json.loads(
        subprocess.run(program, capture_output=True, check=True, text=True).stdout
    )
    return found


def be_client(port: int, model: str, connections: int, seconds: float) -> None:
    """Ask one thing after the other from each connection, and print what the calls took."""
    array = np.random.default_rng(0).uniform(size=SHAPE).astype(np.float32)
    whole = request(array, model, f"127.0.0.1:{port}", INPUTS[model])

    def calls(until_s: float) -> list[float]:
        caller, took_us = Caller(port), list[float]()
        while time.monotonic() < until_s:
            took_us.append(caller.call(whole)[0])
        caller.close()
        return took_us

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(calls, [time.monotonic() + 0.3] * connections))
        found = list(pool.map(calls, [time.monotonic() + seconds] * connections))
    print(json.dumps([us for one in found for us in one]))


if __name__ == "__main__":
    main()
