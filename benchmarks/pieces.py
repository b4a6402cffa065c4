"""Pieces of networks by all methods, beside table 4 of the paper (PICO 6.2.3).

    python -m benchmarks.pieces [--time-limit 60] [--networks squeezenet,resnet34] [--methods exact,beam]

The column "paper" is as printed there (Intel Core i9-10940X); all others are measured here. NASNetL of the
paper is NASNet-A-Large, `nasnet-large` here; its last row, cut in eight parts by hand, has no counterpart.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from functools import cache

from rich.console import Console
from rich.table import Table

from gapless.executor.graph.geometry import spatial_network
from gapless.executor.graph.operators import operator_cost
from gapless.formulations.errors import GaplessError
from gapless.formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window
from gapless.profiler.zoo.tables import grouped
from gapless.solvers.pieces.finding import PieceMethod, find_pieces

from .printing import WIDTH, show, titled

PRINTED = {
    "vgg16": "n 19, w 1: 19 pieces in 0.10 s",
    "squeezenet": "n 30, w 2: 29 pieces in 0.14 s",
    "resnet34": "n 38, w 2: 21 pieces in 0.28 s",
    "mobilenetv3-large": "n 96, w 3: 31 pieces in 0.79 s",
    "inceptionv3": "n 99, w 4: 38 pieces in 3.01 s",
    "nasnet-large": "n 570, w 8: none in 5 h",
}
"""Table 4 of the paper."""

NETWORKS = (*PRINTED, "yolov2", "nasnet-single", "width-4", "width-6", "width-8")
METHODS = ("exact", "cpsat", "paper", "beam", "blocks", "layers")
WINDOWS = ((SAME, SAME), (Window(extent=3, before=1),) * 2, (Window(extent=7, before=3), SAME))


def main() -> None:
    """Find pieces of all networks by all methods."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each search")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--repeat", type=int, default=3, help="the fastest of a given number of runs counts")
    asked = parser.parse_args()
    names, methods = asked.networks.split(","), asked.methods.split(",")
    show(Console(width=WIDTH), pieces_table(names, methods, asked.time_limit, asked.repeat))


def pieces_table(names: Sequence[str], methods: Sequence[str], limit_s: float, repeat: int = 3) -> Table:
    """Return what methods find for networks; the fastest of `repeat` runs counts."""
    numbers = ("layers", "width", "pieces", "largest extra MFLOP", "at least", "sum", "seconds")
    table = titled(
        "pieces of networks (Table 4)", "network", *numbers[:2], "paper", "method", *numbers[2:], "proven"
    )
    for name in names:
        network = network_of(name)
        layers = sum(node.is_layer for node in network.nodes)
        head = [name, str(layers), str(width(network)), PRINTED.get(name, "-")]
        for method in methods:
            table.add_row(*head, method, *measured(network, method, limit_s, repeat))
            head = [""] * 4
    return table


def measured(network: SpatialNetwork, method: str, limit_s: float, repeat: int) -> Iterator[str]:
    """Yield what a method finds in how long."""
    runs = []
    for _ in range(repeat):
        try:
            runs.append(find_pieces(network, method=PieceMethod(method), time_limit_s=limit_s))
        except GaplessError as error:
            yield from ("-", "-", "-", "-", f"> {limit_s:g}", str(error)[:30])
            return
        if runs[-1].seconds > 1.0:
            break
    found = min(runs, key=lambda one: one.seconds)
    yield str(found.count)
    yield f"{found.largest / 1e6:,.3f}"
    yield f"{found.bound / 1e6:,.3f}"
    yield f"{sum(found.costs) / 1e6:,.3f}"
    yield f"{found.seconds:.4f}"
    yield "yes" if found.proven else "largest" if found.bound == found.largest else "no"


@cache
def network_of(name: str) -> SpatialNetwork:
    """Return a built-in network, or a random one of some width."""
    if name.startswith("width-"):
        return random_network(int(name.removeprefix("width-")))
    graph, _ = grouped(name)
    return spatial_network(graph, [operator_cost(graph, one) for one in graph.operators], name=name)


def random_network(width: int, *, depth: int = 8, seed: int = 1) -> SpatialNetwork:
    """Return columns of convolutions between two; each reads its own column, and one of the last rows."""
    draw = random.Random(seed)
    nodes = [SpatialNode(name="image", op_type="Input", size=(32, 32))]

    def add(sources: set[int]) -> int:
        ordered = tuple(sorted(sources))
        nodes.append(
            SpatialNode(
                name=f"conv{len(nodes)}",
                op_type="Conv",
                sources=ordered,
                windows=tuple(draw.choice(WINDOWS) for _ in ordered),
                size=(32, 32),
                flops=32 * 32 * draw.randint(100, 10_000),
            )
        )
        return len(nodes) - 1

    tops = [add({0})] * width
    for _ in range(depth):
        first = max(1, len(nodes) - 3 * width)
        tops = [add({top, draw.randrange(first, len(nodes))}) for top in tops]
    last = add(set(tops))
    return SpatialNetwork(name=f"width-{width}", nodes=tuple(nodes), outputs=(last,))


def width(network: SpatialNetwork) -> int:
    """Return the most convolutions and poolings of which none is reached from another (PICO, definition 6).

    Dilworth: as many as chains are needed to cover them, found by matching each with one that comes after it.
    """
    reached: list[set[int]] = [set() for _ in network.nodes]
    for index in reversed(range(len(network.nodes))):
        for reader in network.readers[index]:
            reached[index] |= reached[reader] | {reader}
    layers = [index for index, node in enumerate(network.nodes) if node.is_layer]
    behind = {index: [one for one in layers if one in reached[index]] for index in layers}
    before: dict[int, int] = {}
    return len(layers) - sum(_matched(index, behind, before, set()) for index in layers)


def _matched(index: int, behind: dict[int, list[int]], before: dict[int, int], seen: set[int]) -> bool:
    for other in behind[index]:
        if other not in seen:
            seen.add(other)
            if other not in before or _matched(before[other], behind, before, seen):
                before[other] = index
                return True
    return False


if __name__ == "__main__":
    main()
