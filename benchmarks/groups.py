"""Whether two cores that share every chunk beat two threads, and two replicas.

    python -m benchmarks.groups
    python -m benchmarks.groups --models resnet18 --engine onnxruntime

A network is cut into 1, 2, 4 or 8 chunks of about equal work (`--counts`); both cores compute each of them
together, half of its rows each. What cannot be divided at the end (a classifier) runs on the first core. All
of that, one session with two threads, and two replicas with a core each are checked against the uncut model,
and measured in turns. A period is the time from one result to the next; the spread is that of the rounds.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from statistics import median

from rich.console import Console
from rich.table import Table

from gapless.api.models import open_model
from gapless.executor.engines.registry import get_engine
from gapless.executor.graph.tiling import Tiler
from gapless.executor.model import Model
from gapless.executor.pipeline.runner import PipelineRunner
from gapless.executor.runner import Budget
from gapless.formulations.deployment import Deployment, replicas
from gapless.formulations.errors import InvalidPlanError
from gapless.formulations.hardware import Platform, ProcessingUnit
from gapless.formulations.plan import Chunk
from gapless.formulations.spatial import Axis
from gapless.formulations.streams import Stream, Tile
from gapless.formulations.tiles import even_rows

MODELS = ("resnet18", "yolov2", "vgg16")
UNITS = ("first", "second")


def here() -> Platform:
    """Return the first and the last core, alone and together.

    Raises
    ------
    SystemExit
        There is only one core.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("two cores are needed")
    pair = cores[0], cores[-1]
    one = [ProcessingUnit(name=n, cores=(c,), threads=1) for n, c in zip(UNITS, pair, strict=True)]
    return Platform(name="here", units=(*one, ProcessingUnit(name="both", cores=pair, threads=2)))


def in_groups(model: Model, count: int) -> Deployment:
    """Return a network of which both cores compute each of a given number of chunks together."""
    network, tiler = model.network, Tiler(model)
    chunks: list[Chunk] = []
    tiles: list[Tile | None] = []
    end = _divisible(model, tiler)
    for start, stop in pairwise([0, *_cuts(model, end, count), end]):
        for unit, (first, last) in zip(UNITS, even_rows(tiler.rows(start, stop, Axis.ROWS), 2), strict=True):
            chunks.append(Chunk(network=network.name, start=start, stop=stop, unit=unit))
            tiles.append(Tile(axis=Axis.ROWS, start=first, stop=last))
    if end < len(network.layers):
        chunks.append(Chunk(network=network.name, start=end, stop=len(network.layers), unit=UNITS[0]))
        tiles.append(None)
    return Deployment(streams=(Stream(name=network.name, chunks=tuple(chunks), tiles=tuple(tiles)),))


def candidates(model: Model, counts: Sequence[int]) -> Mapping[str, Deployment]:
    """Return what is compared, by name."""
    name, count = model.network.name, len(model.network.layers)
    whole = Chunk(network=name, start=0, stop=count, unit="both")
    found = {
        "two threads": Deployment(streams=(Stream(name=name, chunks=(whole,)),)),
        "two replicas": replicas(name, count, UNITS),
    }
    for number in counts:
        groups = in_groups(model, number)
        if groups not in found.values():
            found[f"{number} group{'s' if number > 1 else ''} of two"] = groups
    return found


def _divisible(model: Model, tiler: Tiler) -> int:
    """Return the last cut before which every layer can be computed in parts of its rows."""
    end = 0
    for start, stop in pairwise([0, *model.network.legal_cuts, len(model.network.layers)]):
        try:
            tiler.rows(start, stop, Axis.ROWS)
        except InvalidPlanError:
            break
        end = stop
    return end


def _cuts(model: Model, end: int, count: int) -> list[int]:
    """Return legal cuts that divide the work of the first layers about evenly."""
    work = list(accumulate((layer.flops or 0 for layer in model.network.layers[:end]), initial=0))
    legal = [cut for cut in model.network.legal_cuts if cut < end]
    wanted = [work[-1] * part / count for part in range(1, count)]
    return sorted({min(legal, key=lambda cut: abs(work[cut] - aim)) for aim in wanted})


def compare(name: str, engine: str, options: argparse.Namespace) -> Table:
    """Measure one network, and return its table."""
    model = open_model(name)
    found = candidates(model, options.counts)
    budget = Budget(seconds=options.seconds, warm_up_requests=2)
    periods: dict[str, list[float]] = {label: [] for label in found}
    errors = {}
    # Few are open at once: a session of yolov2 takes almost 1 GB.
    runner = PipelineRunner({name: model}, here(), get_engine(engine), max_open=options.max_open)
    with runner, Console(stderr=True).status("") as status:
        for label, deployment in found.items():
            status.update(f"{name}, {label}: outputs")
            errors[label] = runner.verify(deployment).worst_error
        for number in range(options.rounds):
            for label, deployment in found.items():
                status.update(f"{name}, {label}: round {number + 1} of {options.rounds}")
                periods[label].append(runner.measure(deployment, budget).period_us / 1000)
    base = median(periods["two threads"])
    table = Table(title=f"{name}, {engine}: period, ms", title_justify="left")
    for column in ("what runs", "median", "least", "most", "to two threads", "worst error"):
        table.add_column(column, justify="left" if column == "what runs" else "right")
    for label, own in periods.items():
        row = (f"{median(own):.2f}", f"{min(own):.2f}", f"{max(own):.2f}", f"{median(own) / base:.2f}")
        table.add_row(label, *row, f"{errors[label]:.1e}")
    return table


def main() -> None:
    """Compare, network by network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--engine", default="mnn")
    parser.add_argument("--counts", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2, 4, 8])
    parser.add_argument("--max-open", type=int, default=2, help="pipelines that are open at once")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each measurement")
    options = parser.parse_args()
    console = Console(width=118)
    console.print(
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, Python "
        f"{platform.python_version()}, load {os.getloadavg()[0]:.1f}; {options.rounds} rounds of "
        f"{options.seconds:g} s in turns"
    )
    for name in options.models:
        console.print(compare(name, options.engine, options))


if __name__ == "__main__":
    main()
