"""A sweep of 1,000 plans of the shipped tables: speed-up over workers, overhead a task, killed workers.

    python -m benchmarks.sweep              # a few minutes
    python -m benchmarks.sweep --ray 1 2    # also over Ray clusters of 1 and 2 local nodes, with a core each
    python -m benchmarks.sweep --kill-all 20    # only: the whole sweep is killed 20 times, and resumed

Every round solves all tasks in this process, without keeping anything; then as a sweep over 1, 2, ...
workers; then over all of them while one is killed by SIGKILL now and then. Ways take turns, so that a machine
whose speed drifts slows all alike; the numbers are medians. Every way has to give the same values.
The time of Ray begins when its nodes have started. A sweep that is killed as a whole is resumed until it
ends; what was answered before a kill has to be there after it, with the time at which it was kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import secrets
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from gapless.executor.cluster.nodes import LocalCluster, parse_local_nodes
from gapless.files.run_document import SWEEP_STORE_FILE
from gapless.sweeps.answers import answer
from gapless.sweeps.run import SweepResult, sweep
from gapless.sweeps.spec import LimitSet, Sweep, SweepPlatform
from gapless.sweeps.tasks import tasks_of

_LEAST_PERIOD_US = 100_000

_KILLS = 20
"""Workers that are killed: few enough that none of 1,000 tasks loses all its attempts by chance."""

Values = list[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One pass over all tasks: seconds, values, and how many tasks were tried again after how many kills."""

    seconds: float
    values: Values
    again: int = 0
    kills: int = 0
    failed: int = 0


def main() -> None:
    """Run the benchmark and print its table."""
    options = _arguments()
    asked = thousand(options.backends.split(","))
    if options.kill_all:
        _killed_as_a_whole(asked, options.kill_all)
        return
    console = Console(width=118)
    count = len(tasks_of(asked))
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, load "
        f"{os.getloadavg()[0]:.1f}, Python {platform.python_version()}; {count} plans of the shipped tables "
        f"by {options.backends}, {options.rounds} rounds"
    )
    ways = dict(_ways(asked, options))
    passes: dict[str, list[Timed]] = {name: [] for name in ways}
    for _ in range(options.rounds):
        for name, way in ways.items():
            passes[name].append(way())
    console.print(_table(passes, count))


def thousand(backends: Sequence[str]) -> Sweep:
    """Return a sweep of 1,008 different plans a backend: each shipped model and board, objectives, limits."""
    periods = tuple(LimitSet(max_period_us=_LEAST_PERIOD_US + number) for number in range(6))
    return Sweep(
        models=("octree", "alexnet-sparse", "alexnet-dense"),
        platforms=(
            "pixel7a",
            "jetson-orin-nano",
            "jetson-orin-nano-lp",
            SweepPlatform(name="oneplus11", units="1..4"),
        ),
        objectives=("period", "latency", "period,gapness", "paper", "bubbles", "idle"),
        limits=(LimitSet(), LimitSet(max_gapness_us=10_000), *periods),
        backends=tuple(backends),
    )


def _ways(asked: Sweep, options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Timed]]]:
    cores = len(os.sched_getaffinity(0))
    yield "in one process, nothing kept", lambda: _alone(asked)
    for jobs in dict.fromkeys([1, 2, cores]):
        yield f"sweep, {jobs} workers", partial(_swept, asked, jobs=jobs)
    yield f"sweep, {cores} workers, some killed", partial(_killed, asked, cores, options.kill_every)
    for nodes in options.ray:
        yield f"sweep over Ray, {nodes} nodes", partial(_over_ray, asked, nodes)


def _alone(asked: Sweep) -> Timed:
    tasks = tasks_of(asked)
    started = time.perf_counter()
    values: Values = [answer(task).value for task in tasks]
    return Timed(seconds=time.perf_counter() - started, values=values)


def _swept(
    asked: Sweep, *, jobs: int | None = None, address: str | None = None, kills: Sequence[int] = ()
) -> Timed:
    with TemporaryDirectory() as folder:
        started = time.perf_counter()
        found = sweep(asked, out=Path(folder) / "out", jobs=jobs, address=address)
        seconds = time.perf_counter() - started
    return _timed(found, seconds, len(kills))


def _killed(asked: Sweep, jobs: int, every_s: float) -> Timed:
    with _killer(every_s) as kills:
        return _swept(asked, jobs=jobs, kills=kills)


def _killed_as_a_whole(asked: Sweep, kills: int) -> None:
    """Kill a sweep with all that it runs again and again, resume it, and print what that has done to it."""
    count = len(tasks_of(asked))
    with TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        before: dict[str, str] = {}
        at_kills, lost = list[int](), 0
        while len(at_kills) < kills:
            aim = len(before) + max(1, (count - len(before)) // (3 * (kills + 1 - len(at_kills))))
            process = multiprocessing.get_context("fork").Process(target=_resumed, args=(asked, out))
            process.start()
            while process.is_alive() and len(_kept(out)) < aim:
                time.sleep(0.002)
            process.kill()
            process.join()
            found = _kept(out)
            lost += sum(found.get(key) != created for key, created in before.items())
            before = found
            at_kills.append(len(found))
        result = _resumed(asked, out)
        found, rows = _kept(out), [row.task for row in result.rows]
        lost += sum(found.get(key) != created for key, created in before.items())
        alike = [row.value for row in result.rows] == _alone(asked).values
    print(f"{count} plans; kills after {', '.join(map(str, at_kills))} answers")
    print(f"answers that were lost or found again: {lost}; resumed at the end: {result.resumed}")
    different, failed = len(set(rows)), len(result.failed)
    print(f"answers kept {len(found)}, rows {len(rows)}, different {different}, failed {failed}")
    print(f"values as in one process: {'all the same' if alike else 'DIFFERENT'}")


def _resumed(asked: Sweep, out: Path) -> SweepResult:
    return sweep(asked, out=out, resume=True, jobs=1)


def _kept(out: Path) -> dict[str, str]:
    """Return when each answer of a sweep was kept, by its key."""
    path = out / SWEEP_STORE_FILE
    if not path.exists():
        return {}
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as store:
            return dict(store.execute("SELECT key, created FROM ledger"))
    except sqlite3.Error:  # it is just being made
        return {}


def _over_ray(asked: Sweep, nodes: int) -> Timed:
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    os.environ.update(token)
    with closing(LocalCluster(token)) as cluster:
        for node in parse_local_nodes(str(nodes)):
            cluster.start(node)
        return _swept(asked, address=cluster.address)


def _timed(found: SweepResult, seconds: float, kills: int) -> Timed:
    return Timed(
        seconds=seconds,
        values=[row.value for row in found.rows],
        again=sum(row.attempts > 1 for row in found.rows),
        kills=kills,
        failed=len(found.failed),
    )


@contextmanager
def _killer(every_s: float) -> Iterator[list[int]]:
    """Kill one of the children of this process now and then; their numbers are added to the list."""
    kills: list[int] = []
    done = threading.Event()
    chosen = random.Random(0)

    def kill() -> None:
        while len(kills) < _KILLS and not done.wait(every_s):
            children = Path(f"/proc/{os.getpid()}/task/{main_thread}/children").read_text().split()
            if children:
                pid = int(chosen.choice(children))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills.append(pid)

    main_thread = threading.get_native_id()
    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield kills
    finally:
        done.set()
        thread.join()


def _table(passes: dict[str, list[Timed]], count: int) -> Table:
    first, *_ = passes.values()
    base, values = median(one.seconds for one in first), first[0].values
    table = Table(title=f"{count} plans; medians, least to most")
    for column in (
        "way",
        "seconds",
        "speed-up",
        "overhead a task",
        "killed",
        "tried again",
        "failed",
        "values",
    ):
        table.add_column(column, justify="left" if column in ("way", "values") else "right")
    one_worker = median(one.seconds for one in passes["sweep, 1 workers"])
    for name, own in passes.items():
        seconds = [one.seconds for one in own]
        overhead = 1000 * (median(seconds) - base) / count
        same = all(one.values == values for one in own)
        table.add_row(
            name,
            f"{median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})",
            f"{one_worker / median(seconds):.2f}",
            f"{overhead:+.2f} ms" if name == "sweep, 1 workers" else "",
            "/".join(str(one.kills) for one in own),
            "/".join(str(one.again) for one in own),
            str(max(one.failed for one in own)),
            f"all {count} the same" if same else "DIFFERENT",
        )
    return table


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backends", default="native")
    parser.add_argument("--kill-every", type=float, default=0.5, metavar="SECONDS")
    parser.add_argument("--kill-all", type=int, default=0, metavar="TIMES")
    parser.add_argument("--ray", type=int, nargs="*", default=[], metavar="NODES", help="also over Ray")
    return parser.parse_args()


if __name__ == "__main__":
    main()
