"""PICO's figures and tables recomputed, beside what the paper prints: `python -m benchmarks.pico`.

    python -m benchmarks.pico                                  # everything, some minutes
    python -m benchmarks.pico --figures 12,13 --tables 4,5
    python -m benchmarks.pico --figures 5,12,13 --tables none --pictures docs/images

Its devices were not there: costs are *estimated* from operations and bytes (`testbed.py`), so that ratios and
shares can be compared, and the paper's numbers stand beside ours, marked as such ("here / paper"). Where our
copy of the paper has a figure without its numbers, what its text says about it is checked. Messages between
groups take time or not ("charged"); the paper's Eq. 11 leaves them out. The table `unlike` is ours: devices
ever more unlike, which the authors name as their limit (8).
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

from rich.console import Console

import gapless

from ..arguments import chosen, folder, positive
from ..printing import WIDTH, Part, show
from . import layers, planning, schemes, speedup
from .testbed import OPERATIONS, PaperDevices

FIGURES: dict[str, Callable[[PaperDevices, float], Iterator[Part]]] = {
    "2": lambda bed, _: layers.figure_2(bed),
    "5": lambda bed, _: layers.figure_5(bed),
    "12": lambda bed, _: speedup.figure_12(bed),
    "13": lambda bed, _: schemes.figure_13(bed),
    "14": lambda bed, _: schemes.figure_14(bed),
    "15": lambda bed, _: schemes.figure_15(bed),
    "16": lambda bed, _: schemes.figure_16(bed),
    "17": planning.figure_17,
    "18": lambda bed, _: planning.figure_18(bed),
}
TABLES: dict[str, Callable[[PaperDevices, float], Iterator[Part]]] = {
    "4": planning.table_4,
    "5": lambda bed, _: schemes.table_5(bed),
    "6": planning.table_6,
    "7": lambda bed, _: planning.table_7(bed),
    "unlike": lambda bed, _: planning.unlike(bed),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked for; 130: interrupted, what was done until then is printed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.pico", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--figures", type=chosen(tuple(FIGURES)), help="numbers, or none; otherwise all")
    parser.add_argument(
        "--tables", type=chosen(tuple(TABLES)), help="numbers, unlike, or none; otherwise all"
    )
    parser.add_argument("--seconds", type=positive, default=60.0, help="for each long search; 60")
    parser.add_argument("--operations", type=positive, default=OPERATIONS, help="a cycle and core; 1")
    parser.add_argument(
        "--pictures", type=folder, metavar="FOLDER", help="also draw figures 5, 12 and 13 there"
    )
    asked = parser.parse_args(arguments)
    some = asked.figures is not None or asked.tables is not None
    figures = asked.figures if some else list(FIGURES)
    tables = asked.tables if some else list(TABLES)
    parts = [(f"figure {n}", FIGURES[n]) for n in figures or ()] + [
        (f"table {n}", TABLES[n]) for n in tables or ()
    ]
    bed, console = PaperDevices(operations=asked.operations), Console(width=WIDTH, highlight=False)
    machine, cores = platform.processor() or platform.machine(), len(os.sched_getaffinity(0))
    console.print(
        f"{date.today()}, {machine}, {cores} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, gapless {gapless.__version__}; devices estimated: {bed.operations:g} "
        "operation(s) a cycle, 50 Mbit/s; what is not the paper's is computed here",
        soft_wrap=True,
    )
    try:
        for place, (name, run) in enumerate(parts, 1):
            with Console(stderr=True).status(f"{name} ({place} of {len(parts)})"):
                for part in run(bed, asked.seconds):
                    show(console, part)
        _draw(bed, figures or (), asked.pictures)
    except KeyboardInterrupt:
        print("interrupted: what is above is complete", file=sys.stderr)
        return 130
    return 0


def _draw(bed: PaperDevices, figures: Sequence[str], target: Path | None) -> None:
    """Draw those of the figures that can be drawn."""
    if target is not None:
        from .pictures import PICTURES, save  # noqa: PLC0415 -- matplotlib is an extra

        for number in (number for number in figures if number in PICTURES):
            print(f"drawn: {save(bed, number, target)}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
