"""Band's figures and tables recomputed, beside what the paper prints: `python -m benchmarks.band`.

    python -m benchmarks.band                          # everything, some minutes
    python -m benchmarks.band --parts 6,14,table1
    python -m benchmarks.band --parts families --combinations 20
    python -m benchmarks.band --parts 14,18 --pictures docs/images

Its phones were not there: they are *estimated* from what the paper prints (Table 1, operators that units
lack), and requests are served in simulated time (`benchmarks.phone_platforms.band` says what rests on
what). The paper's numbers stand beside ours, marked as such ("here / paper"). For the paper's Band stands
`sel` where frames are to be short, and `lst`, its default, where requests have deadlines. The part `families`
is ours: plans that are made before against policies, on random workloads.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import date

from rich.console import Console

import gapless

from ..arguments import chosen, folder, positive
from ..printing import WIDTH, Part, show
from . import beyond, deadlines, estimates, families, frames, units
from .playing import Study

PARTS: dict[str, Callable[[Study], Iterator[Part]]] = {
    "4": frames.figure_4,
    "6": frames.figure_6,
    "7": units.figure_7,
    "14": frames.figure_14,
    "15": estimates.figure_15,
    "16": frames.figure_16,
    "17": frames.figure_17,
    "18": deadlines.figure_18,
    "19": units.figure_19,
    "table1": units.table_1,
    "table2": units.table_2,
    "sessions": beyond.sessions,
    "workers": beyond.workers,
    "crowds": beyond.crowds,
    "mapping": beyond.mapping,
    "support": beyond.support,
    "sweep": deadlines.sweep,
    "families": families.families,
}
"""Figures by number, tables, and what is ours."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is asked for; 130: interrupted, what was done until then is printed."""
    usual = {field.name: field.default for field in fields(Study)}
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.band", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--parts", type=chosen(tuple(PARTS)), help=f"some of {','.join(PARTS)}; otherwise all"
    )
    parser.add_argument(
        "--seconds", type=positive, default=usual["bound_s"], help="of CP-SAT for each bound; 5"
    )
    parser.add_argument(
        "--simulated", type=positive, default=usual["simulated_s"], help="seconds that each run simulates; 20"
    )
    parser.add_argument("--runs", type=positive, default=usual["runs"], help="runs of each; 5")
    parser.add_argument(
        "--combinations", type=positive, default=usual["combinations"], help="workloads of each phone; 100"
    )
    parser.add_argument("--pictures", type=folder, metavar="FOLDER", help="also draw the figures there")
    asked = parser.parse_args(arguments)
    study = Study(
        bound_s=asked.seconds,
        simulated_s=asked.simulated,
        runs=max(1, round(asked.runs)),
        combinations=max(1, round(asked.combinations)),
    )
    names = list(PARTS) if asked.parts is None else asked.parts
    console = Console(width=WIDTH, highlight=False)
    machine, cores = platform.processor() or platform.machine(), len(os.sched_getaffinity(0))
    console.print(
        f"{date.today()}, {machine}, {cores} cores, load {os.getloadavg()[0]:.1f}, Python "
        f"{platform.python_version()}, gapless {gapless.__version__}; simulated time on estimated phones, "
        f"{study.runs} runs of {study.simulated_s:g} s; what is not the paper's is computed here",
        soft_wrap=True,
    )
    try:
        for place, name in enumerate(names, 1):
            with Console(stderr=True).status(f"{name} ({place} of {len(names)})"):
                for part in PARTS[name](study):
                    show(console, part)
                if asked.pictures is not None:
                    from .pictures import PICTURES, save  # noqa: PLC0415 -- matplotlib is an extra

                    if name in PICTURES:
                        print(f"drawn: {save(study, name, asked.pictures)}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted: what is above is complete", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
