"""BetterTogether's figures and tables recomputed, beside what the paper prints.

    python -m benchmarks.bettertogether                # Fig. 5, Tables IV and V, section V-D; seconds
    python -m benchmarks.bettertogether FILE ...       # and Figs. 6 and 7 from files of executed plans
    python -m benchmarks.bettertogether --record DIR   # executes three applications here first; minutes
    python -m benchmarks.bettertogether FILE --points  # all points of Fig. 6, too

A file is what `gapless tune` and `python -m benchmarks.prediction --record` write, or of the form in which
the authors' own runs are shared. `--record` takes what `benchmarks.prediction` takes for its runs: two cores
of this machine, `--visits` of `--seconds` for each of all plans of two chunks, in turns.

Planned is with the authors' tables of four devices, which are shipped; no device of theirs was here. A
number of the paper stands behind a stroke: "here / paper".
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rich.console import Console

import gapless
from gapless.formulations.errors import GaplessError
from gapless.profiler.prediction.published import load_executions

from ..prediction import record
from ..printing import WIDTH, show
from . import planned
from .executed import correlations

APPLICATIONS = "cifar-alexnet-dense,cifar-alexnet-sparse,octree"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print everything that the files allow; 2: bad input."""
    options = _parser().parse_args(arguments)
    console = Console(width=WIDTH, highlight=False)
    console.print(
        f"{date.today()}, load {os.getloadavg()[0]:.1f}, gapless {gapless.__version__}; what is not the "
        "paper's is computed here",
        soft_wrap=True,
    )
    for part in (planned.table_4, planned.figure_5, planned.table_5, planned.section_5d):
        for one in part():
            show(console, one)
    try:
        files = [*options.files, *(record(console, options) if options.record else ())]
        cells = [load_executions(file) for file in files]
    except GaplessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if not cells:
        console.print("Figs. 6 and 7: no executed plans were given; --record DIR executes some here")
        return 0
    for one in correlations(cells, pictured=options.points):
        show(console, one)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bettertogether", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="files of executed plans")
    parser.add_argument("--points", action="store_true", help="all points of Fig. 6")
    parser.add_argument(
        "--record", type=Path, metavar="DIR", help="execute applications here; files go there"
    )
    parser.add_argument("--networks", default=APPLICATIONS, help=f"which; {APPLICATIONS}")
    parser.add_argument("--visits", type=int, default=5, help="of each plan; 5")
    parser.add_argument("--seconds", type=float, default=0.5, help="of a visit; 0.5")
    parser.add_argument("--units", default=None, help="of this machine; the first two cores")
    parser.add_argument("--emulate", action="append", help="e.g. core1=50%%: a core made slow")
    parser.set_defaults(engine="callable", top=20, random=0, seed=0)
    return parser


if __name__ == "__main__":
    sys.exit(main())
