"""The built-in networks: size and work beside the literature, and MNN's numbers beside ONNX Runtime's.

    python -m benchmarks.networks                      # all of them: some minutes, up to 8 GB of memory
    python -m benchmarks.networks squeezenet bert

Each network is built, opened, converted and run on two inputs, in a cache of its own that is removed
afterwards. "error" is the largest relative error of any output (`executor.comparing`);
"seconds" are those of building the file, and of the whole.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import closing
from time import perf_counter

from rich.console import Console
from rich.table import Table

from gapless.executor.comparing import Allowed
from gapless.executor.engines.mnn_engine import MnnEngine
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.machine.cores import usable_cores
from gapless.executor.model import references, tolerance
from gapless.formulations.hardware import ProcessingUnit, UnitKind
from gapless.profiler.zoo.catalog import outline, zoo_entry, zoo_names, zoo_path
from gapless.profiler.zoo.entries import ZooEntry

from .network_counts import count

COLUMNS = (
    *("network", "parameters", "differ", "MACs", "differ", "conv", "matmul", "operators"),
    *("layers", "cuts", "error", "build s", "total s"),
)
SEEDS = (1, 2)
MOST_PERCENT = 2.0


def main() -> int:
    """Check all networks, print a table, and return 1 when any number is off."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="names; without any, all networks")
    names = parser.parse_args().networks or zoo_names()
    table = Table(title="built-in networks; differences are from the literature", title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column == "network" else "right")
    wrong = []
    for name in names:
        print(name, file=sys.stderr, flush=True)
        cells, good = _row(zoo_entry(name))
        table.add_row(*cells)
        wrong += [] if good else [name]
    console = Console(width=150)
    console.print(table)
    for name in names:
        console.print(f"{name}: {zoo_entry(name).source}", style="dim")
    console.print(f"wrong: {', '.join(wrong)}" if wrong else "all within their limits")
    return int(bool(wrong))


def _row(entry: ZooEntry) -> tuple[list[str], bool]:
    """Return the cells of one network, and whether everything is as it should be."""
    counts = count(outline(entry.name), entry.inputs)
    sizes = [(counts.parameters, entry.parameters), (counts.macs, entry.macs)]
    percents = [100 * (found / printed - 1) for found, printed in sizes]
    kinds = (counts.convolutions, counts.products)
    start = perf_counter()
    with tempfile.TemporaryDirectory(prefix="gapless-") as folder:
        os.environ["GAPLESS_CACHE"] = folder
        path = zoo_path(entry.name)
        built = perf_counter() - start
        model = load_onnx(path, name=entry.name)
        error = _error(model)
    cells = [entry.name]
    for (found, _), percent in zip(sizes, percents, strict=True):
        cells += [f"{found / 1e6:,.2f} M", f"{percent:+.2f} %"]
    cells += [*map(str, kinds), str(counts.operators)]
    cells += [str(len(model.network.layers)), str(len(model.network.legal_cuts)), f"{error:.1e}"]
    cells += [f"{built:.1f}", f"{perf_counter() - start:.1f}"]
    near = max(map(abs, percents)) <= MOST_PERCENT and kinds == (entry.convolutions, entry.products)
    return cells, near and error <= tolerance("normal")


def _error(model: OnnxModel) -> float:
    """Return how far MNN is from ONNX Runtime at worst, the network being one piece."""
    engine = MnnEngine()
    unit = ProcessingUnit(name="cpu", kind=UnitKind.CPU, threads=len(usable_cores()))
    (artifact,) = engine.prepare(model.pieces(0, len(model.network.layers)))
    worst, right = 0.0, references(model, SEEDS)
    with closing(engine.open(artifact, unit)) as session:
        for sample, seed in enumerate(SEEDS):
            inputs = model.sample_inputs(seed)
            found = [spec.empty() for spec in artifact.outputs]
            session.copy_in([inputs[spec.name] for spec in artifact.inputs])
            session.run()
            session.copy_out(found)
            for spec, array in zip(artifact.outputs, found, strict=True):
                difference = right[spec.name].compare(array, sample, Allowed(tolerance("normal")))
                worst = max(worst, difference.error)
    return worst


if __name__ == "__main__":
    sys.exit(main())
