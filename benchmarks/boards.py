"""What it costs to tune over ssh: `python -m benchmarks.boards` (about five minutes).

Runs the same `gapless tune` here and with `--on`, in turns, and prints both times; then cuts the connection
in the middle of a run, resumes it, and counts what was measured before and after. Before that: what one
command costs besides its work, and the bytes that are copied the first time and the second.

Without `--on BOARD` the board is this machine, behind an ssh server of its own on the loopback address: what
differs is then what ssh, copying and bringing back cost. Options: `--on BOARD`, `--model squeezenet`,
`--units core0,core1`, `--budget 10`, `--repeats 3`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path

from gapless.boards.running import run_there
from gapless.boards.ssh import Address
from gapless.executor.machine.state import fingerprint
from gapless.profiler.zoo.catalog import zoo_path
from tests.processes import descendants
from tests.sshd import serving, why_not

_LOOK_S = 0.2
_MIB = 2**20


def gapless(words: Sequence[str], *, fails: bool = False) -> float:
    """Run a command; return its seconds."""
    began = time.monotonic()
    run = subprocess.run(
        [sys.executable, "-m", "gapless", *words], capture_output=True, text=True, check=False
    )
    if bool(run.returncode) is not fails:
        raise SystemExit(f"gapless {' '.join(words)} ends with exit code {run.returncode}: {run.stderr}")
    return time.monotonic() - began


def recorded(store: Path) -> list[datetime]:
    """Return when each measurement in a store was recorded: of layers, and of candidates."""
    with closing(sqlite3.connect(store.absolute().as_uri() + "?mode=ro", uri=True)) as connection:
        rows = connection.execute(
            "SELECT created FROM ledger UNION ALL SELECT created FROM trials"
        ).fetchall()
    return [datetime.fromisoformat(created) for (created,) in rows]


def cut(words: Sequence[str], out: Path, after_s: float) -> datetime:
    """Begin a command, and kill its ssh some seconds after its run began there. Return when that was."""
    with subprocess.Popen(
        [sys.executable, "-m", "gapless", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None and not (out / "run.json").is_file():
            time.sleep(_LOOK_S)
        time.sleep(after_s)
        for pid in descendants(process.pid):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "ssh":
                os.kill(pid, signal.SIGKILL)
        when = datetime.now().astimezone()
        said = process.communicate()[1].strip().splitlines()
    print(f"  cut after {after_s:.0f} s, exit code {process.returncode}: {said[-1]}")
    return when


def median_s(work: Callable[[], object], repeats: int) -> float:
    """Return the median seconds of some work."""
    taken = []
    for _ in range(repeats):
        began = time.monotonic()
        work()
        taken.append(time.monotonic() - began)
    return statistics.median(taken)


def costs_of_a_command(address: Address, model: str) -> None:
    """Print what a command costs that does next to nothing, and what is copied."""
    here = median_s(lambda: gapless(["tools", "version"]), 5)
    there = median_s(lambda: run_there(address, "tools version", ()), 5)
    print(f"`gapless tools version`: {here:.2f} s here, {there:.2f} s there (medians of 5)")
    for when in ("first", "again"):
        ran = run_there(address, "tools inspect", (), [str(zoo_path(model))])
        print(f"  {model}.onnx, {when}: {ran.copied_bytes / _MIB:.2f} MiB copied")


def against_each_other(words: Sequence[str], on: Sequence[str], folder: Path, repeats: int) -> float:
    """Print how long the same command takes here and there, in turns; return the seconds there."""
    taken: dict[str, list[float]] = {"here": [], "there": []}
    for number in range(repeats):
        for name, more in (("here", ()), ("there", on)):
            taken[name].append(gapless([*words, *more, "--out", str(folder / f"{name}{number}")]))
    for name, each in taken.items():
        listed = ", ".join(f"{seconds:.1f}" for seconds in each)
        print(f"  {name:5}: {statistics.median(each):6.1f} s (of {listed})")
    differences = [there - here for here, there in zip(taken["here"], taken["there"], strict=True)]
    print(f"  more there: {statistics.median(differences):+.1f} s (median of the pairs)")
    size = sum(path.stat().st_size for path in (folder / "there0").iterdir())
    print(f"  brought back: {size / _MIB:.2f} MiB in {len(list((folder / 'there0').iterdir()))} files")
    return statistics.median(taken["there"])


def cut_and_resumed(words: Sequence[str], on: Sequence[str], folder: Path, after_s: float) -> None:
    """Print what a connection costs that is lost after some seconds."""
    whole = recorded(folder / "there0" / "store.sqlite")
    out = folder / "cut"
    command = [*words, *on, "--out", str(out)]
    when = cut(command, out, after_s)
    seconds = gapless([*command, "--resume"])
    found = recorded(out / "store.sqlite")
    before = sum(each <= when for each in found)
    print(
        f"  resumed in {seconds:.1f} s: {before} measurements from before the cut, {len(found) - before} new"
    )
    print(f"  a run that is not cut: {len(whole)} measurements")


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--on")
    parser.add_argument("--model", default="squeezenet")
    parser.add_argument("--units", default="core0,core1")
    parser.add_argument("--budget", default="10")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gapless-boards-")))
        if asked.on is None:
            if reason := why_not():
                raise SystemExit(reason)
            server = stack.enter_context(serving(folder))
            os.environ.update(server.variables)
        address = Address.of(asked.on or "board")
        print(f"from {fingerprint()}\nto {address}\n")
        costs_of_a_command(address, asked.model)
        words = ["tune", asked.model, "--units", asked.units, "--top", "3", "--budget", f"{asked.budget}s"]
        on = ["--on", str(address)]
        print(f"\ngapless {' '.join(words)}")
        seconds = against_each_other(words, on, folder, asked.repeats)
        cut_and_resumed(words, on, folder, after_s=seconds / 2)


if __name__ == "__main__":
    main()
