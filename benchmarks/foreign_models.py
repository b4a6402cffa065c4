"""ONNX files of other exporters and packages: which open, slice right, and tune with which engines.

    python -m benchmarks.foreign_models                           # the table of all files: some minutes
    python -m benchmarks.foreign_models bert int8-qdq --engine onnxruntime
    python -m benchmarks.foreign_models --engine none             # open and slice only
    python -m benchmarks.foreign_models --parts int8,opening      # what cutting costs int8; opening again

All files are made by script, from seeds, or lie in installed packages. "Slices" says how many single cuts
were tried besides all cuts at once, and the largest error against the uncut file in ONNX Runtime.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import chosen, positive
from benchmarks.foreign.catalog import ForeignFile, files
from benchmarks.foreign.checks import opened, shortened, sliced, tuned
from benchmarks.foreign.int8 import costs_of_cutting
from benchmarks.foreign.vision import many_operators
from benchmarks.printing import show, titled

WIDTH = 260
PARTS = ("files", "int8", "opening")
ENGINES = ("mnn", "onnxruntime")


def main() -> int:
    """Print what is asked for; return 1 where a file does not open, or gives wrong numbers."""
    known = {file.name: file for file in files()}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", metavar="FILE", help=f"among {', '.join(known)}; otherwise all")
    parser.add_argument(
        "--engine", action="append", help="an engine, or several that compete, as of `tune`; or none"
    )
    parser.add_argument("--units", default="core0,core1", help="units that are tuned on")
    parser.add_argument("--budget", type=positive, default=2.0, help="seconds of racing a file and engine")
    parser.add_argument("--parts", type=chosen(PARTS), default=["files"], help="among " + ", ".join(PARTS))
    parser.add_argument("--rounds", type=int, default=30, help="of the comparison of int8")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in known]:
        parser.error(f"there is no file {', '.join(unknown)}")
    engines = [name for name in asked.engine or ENGINES if name != "none"]
    console, wrong = Console(width=WIDTH), list[str]()
    with tempfile.TemporaryDirectory(prefix="gapless-") as folder:
        os.environ["GAPLESS_CACHE"] = str(Path(folder, "cache"))
        if "files" in asked.parts:
            some = [known[name] for name in asked.names or known]
            table, wrong = _table(some, Path(folder), engines, asked.units.split(","), asked.budget)
            show(console, table)
            console.print(f"{len(some)} files, {len(some) - len(wrong)} as they should be")
        if "opening" in asked.parts:
            show(console, _opening(Path(folder)))
        if "int8" in asked.parts:
            show(console, costs_of_cutting(Path(folder), rounds=asked.rounds))
    if wrong:
        console.print(f"not as it should be: {', '.join(wrong)}")
    return int(bool(wrong))


def _table(
    some: list[ForeignFile], folder: Path, engines: list[str], units: list[str], budget_s: float
) -> tuple[Table, list[str]]:
    """Return the table of files, and which of them do not open, or slice wrong."""
    table = titled(
        "Files of other exporters", "file", "opset", "operators", "layers", "opens", "slices", *engines
    )
    wrong = []
    for file in some:
        print(file.name, file=sys.stderr, flush=True)
        path = file.write(folder)
        found = opened(path, file)
        if found.model is None:
            wrong += [] if file.refused else [file.name]
            table.add_row(file.name, "", "", "", f"refused: {shortened(found.refusal)}")
            continue
        pieces = sliced(found.model)
        wrong += [] if pieces.worst <= pieces.allowed and not file.refused else [file.name]
        versions = {entry.domain: entry.version for entry in found.model.graph.header.opset_import}
        table.add_row(
            file.name,
            str(versions.get("", "")),
            str(len(found.model.graph.operators)),
            str(len(found.model.network.layers)),
            f"{found.seconds:.1f} s",
            f"{pieces.cuts} cuts, {pieces.worst:.0e}",
            *(tuned(found.model, engine, units=units, budget_s=budget_s) for engine in engines),
        )
    return table, wrong


def _opening(folder: Path) -> Table:
    """Return how long a graph of 900 operators takes to open, the first time and again."""
    file = ForeignFile(name="again", build=many_operators, shapes={"input": (1, 3, 32, 32)})
    path = file.write(folder)
    table = titled("Opening a graph of 900 operators", "time", "seconds, with the start of the process")
    for number in range(1, 4):
        started = time.perf_counter()
        opened(path, file)
        table.add_row(str(number), f"{time.perf_counter() - started:.2f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
