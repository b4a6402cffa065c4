"""How large reports are, how long they take to write, and how long a browser takes to show them.

    python -m benchmarks.report                            # half a minute; "open" needs chromium

Plans on eight units, with a predicted and a measured (simulated) trace of 1, 20, 100 and 300 requests.
"open" is the time from starting headless Chromium until the script of the page says that it is ready and the
document is printed; an empty page stands beside it, because most of that is the start of the browser.
Medians and extremes of rounds in which all pages take turns.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from rich.console import Console

import gapless
from benchmarks.instances import random_problem
from gapless.answers.words import seconds, size
from gapless.executor.simulated import SimulatedRunner
from gapless.formulations.chunking.operation import deploy
from gapless.view.layout import plain_table

REQUESTS = (1, 20, 100, 300)
LAYERS, UNITS = 40, 8
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EMPTY = "<!doctype html><title>empty</title><body data-ready=yes></body>"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--dump-dom")


def write(requests: int, folder: Path) -> tuple[Path, float]:
    """Write a report of so many requests through eight chunks; return it, and the seconds that took."""
    problem = random_problem(LAYERS, UNITS, seed=1).with_limits(min_units=UNITS)
    plan = gapless.plan(problem).plan
    assert plan is not None
    measured = SimulatedRunner(problem).trace(deploy(plan), requests=requests)
    started = time.perf_counter()
    shown = gapless.reports.subject(problem, plan, measured=measured, title=f"{requests} requests")
    path = gapless.write_report(folder / f"{requests}.html", shown)
    return path, time.perf_counter() - started


def opened(browser: str, page: Path) -> float:
    """Return the seconds that a browser takes for a page.

    Raises
    ------
    RuntimeError
        The script of the page did not come to its end.
    """
    started = time.perf_counter()
    found = subprocess.run([browser, *FLAGS, page.as_uri()], capture_output=True, text=True, check=True)
    spent = time.perf_counter() - started
    if "data-ready" not in found.stdout:
        raise RuntimeError(f"{page} did not become ready")
    return spent


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args(arguments)
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    numbers = ("requests", "size", "written in", "open", "least", "most")
    table = plain_table(*numbers, numbers=numbers)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.html").write_text(EMPTY)
        written = {requests: write(requests, folder) for requests in REQUESTS}
        pages = {"empty page": folder / "empty.html"}
        pages |= {str(requests): path for requests, (path, _) in written.items()}
        times: dict[str, list[float]] = {label: [] for label in pages}
        for _ in range(asked.rounds if browser else 0):
            for label, page in pages.items():
                times[label].append(opened(str(browser), page))
        for label, page in pages.items():
            spent = written[int(label)][1] if label.isdecimal() else None
            row = [seconds(value) for value in _spread(times[label])]
            table.add_row(label, size(page.stat().st_size), "-" if spent is None else seconds(spent), *row)
    console = Console()
    console.print(
        f"{LAYERS} layers on {UNITS} units, predicted and measured trace; browser: {browser or 'none'}"
    )
    console.print(table)


def _spread(samples: Sequence[float]) -> tuple[float, ...]:
    return (median(samples), min(samples), max(samples)) if samples else ()


if __name__ == "__main__":
    main()
