"""What pieces cost: the least period with cuts anywhere in the graph beside that given the pieces.

    python -m benchmarks.over_graph
    python -m benchmarks.over_graph --models squeezenet,resnet18 --clusters pico-testbed

PICO fixes the pieces of a network first, by their halos alone. Where the graph has few down-sets all chains
of them are compared (`gapless plan --groups all --over-graph`). With transfers between groups charged, and
without (`interstage`), as the paper counts; computing and messages add up (Eq. 11). Costs are estimates.
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

import gapless
from gapless.formulations.errors import InvalidInputError

MODELS = ("vgg16", "yolov2", "resnet18", "resnet34", "squeezenet", "mobilenetv2")
CLUSTERS = ("pico-testbed", "raspberry-pis")
COLUMNS = ("sets", "pieces", "charged", "given pieces, ms", "over the graph, ms", "loss", "time, s")


def row(name: str, cluster: str, *, interstage: bool, most_sets: int) -> tuple[str, ...]:
    """Return what one network over one cluster loses by its pieces."""
    model = gapless.open_model(name, granularity="piece")
    problem = gapless.clusters.group_problem(model, cluster, interstage=interstage, overlap=False)
    pieces, charged = str(len(problem.network.layers)), "yes" if interstage else "no"
    started = time.perf_counter()
    try:
        found = gapless.graphs.chunks_over_graph(problem, model, most_sets=most_sets).data.over_graph
    except InvalidInputError as error:
        return "-", pieces, charged, str(error).partition(":")[0], "-", "-", "-"
    return (
        str(found.sets),
        pieces,
        charged,
        f"{found.given_pieces_us / 1000:,.1f}",
        f"{found.period_us / 1000:,.1f}",
        f"{100 * (found.given_pieces_us / found.period_us - 1):.1f} %",
        f"{time.perf_counter() - started:.1f}",
    )


def main() -> None:
    """Print one table for each cluster."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--clusters", type=lambda text: text.split(","), default=list(CLUSTERS))
    parser.add_argument("--most-sets", type=int, default=400)
    options = parser.parse_args()
    console = Console(width=118)
    for cluster in options.clusters:
        table = Table(title=f"{cluster} (estimated costs)", title_justify="left")
        table.add_column("network")
        for column in COLUMNS:
            table.add_column(column, justify="right")
        with console.status("") as status:
            for name in options.models:
                for interstage in (True, False):
                    status.update(f"{cluster}: {name}")
                    table.add_row(
                        name, *row(name, cluster, interstage=interstage, most_sets=options.most_sets)
                    )
        console.print(table)


if __name__ == "__main__":
    main()
