"""How faithfully a quota of processor time emulates a slower core, for several periods.

    python -m benchmarks.quotas              # about two minutes; needs the permission to make control groups
    python -m benchmarks.quotas --core 3 --permille 250

One worker process, pinned to one core, repeats work of 1, 5 and 20 ms: without a quota, then with one.
"share" is the processor time that it got, of what was asked. "speed" is its mean speed, of what was asked:
1.00 is faithful. "spread" is the standard deviation of single runs over their mean. "rested" is the speed of
the runs when the worker sleeps before each one for as long as a core so slow would need for the work.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from contextlib import closing
from statistics import fmean, pstdev
from typing import Any

from rich.console import Console
from rich.table import Table

from gapless.executor.machine.cores import usable_cores
from gapless.executor.machine.quota import MIN_QUOTA_US, CpuQuota, find_cpu_groups, kernel_tick_us
from gapless.executor.machine.state import fingerprint
from gapless.executor.workers import Link, Message, Worker
from gapless.formulations.hardware import ProcessingUnit, UnitKind

PERIODS_US = (2_000, 4_000, 5_000, 8_000, 10_000, 20_000, 50_000, 100_000)
WORK_MS = (1, 5, 20)
SECONDS = 0.8


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description="How faithful quotas of processor time are.")
    parser.add_argument("--core", type=int, default=usable_cores()[-1])
    parser.add_argument("--permille", type=int, nargs="+", default=[250, 500, 900])
    options = parser.parse_args()
    console = Console(width=118)
    console.print(f"{fingerprint()}; tick {kernel_tick_us()} us; worker on core {options.core}")
    unit = ProcessingUnit(name="worker", kind=UnitKind.CPU, cores=(options.core,), threads=1)
    table = Table("permille", "period", "share", *(f"{ms} ms: speed, spread, rested" for ms in WORK_MS))
    for permille in options.permille:
        for period_us in PERIODS_US:
            if period_us * permille >= MIN_QUOTA_US * 1000:
                table.add_row(*_row(unit, permille, period_us))
    console.print(table)


def work(link: Link, settings: Mapping[str, Any]) -> None:
    """Be the worker: repeat a product of matrices as often as is asked."""
    import numpy as np  # noqa: PLC0415 - in the worker, after it is pinned

    matrix = np.ones((96, 96), np.float32)

    def repeat(times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            matrix @ matrix
        return time.perf_counter() - start

    repeat(1000)
    link.send({"kind": "ready"})
    while (message := link.receive()) is not None:
        start, start_cpu = time.perf_counter(), time.process_time()
        runs: list[float] = []
        while (elapsed := time.perf_counter() - start) < SECONDS:
            if message["rest_s"]:
                time.sleep(message["rest_s"])
            runs.append(repeat(message["times"]))
        share = (time.process_time() - start_cpu) / elapsed
        link.send({"kind": "done", "runs": runs, "share": share})


def _row(unit: ProcessingUnit, permille: int, period_us: int) -> list[str]:
    """Return one row of the table: a worker without, then with a quota."""
    quota = CpuQuota(find_cpu_groups(), quota_us=period_us * permille // 1000, period_us=period_us)
    with closing(quota), Worker(unit, "benchmarks.quotas:work", {}) as worker:
        worker.expect("ready")
        times_per_ms = 100 / fmean(_ask(worker, times=100)["runs"]) / 1000
        quota.add(worker.pid)
        share = _ask(worker, times=100)["share"] * 1000 / permille
        cells = [_cell(worker, permille, ms, times_per_ms) for ms in WORK_MS]
    return [str(permille), f"{period_us / 1000:g} ms", f"{share:.2f}", *cells]


def _cell(worker: Worker, permille: int, work_ms: int, times_per_ms: float) -> str:
    times = max(1, round(work_ms * times_per_ms))
    asked_s = times / times_per_ms / permille
    busy = _ask(worker, times=times)["runs"]
    rested = _ask(worker, times=times, rest_s=asked_s)["runs"]
    spread = pstdev(busy) / fmean(busy)
    return f"{asked_s / fmean(busy):.2f}, {spread:.2f}, {asked_s / fmean(rested):.2f}"


def _ask(worker: Worker, *, times: int, rest_s: float = 0.0) -> Message:
    worker.send({"kind": "work", "times": times, "rest_s": rest_s})
    return worker.expect("done")


if __name__ == "__main__":
    main()
