"""Small random networks, and all their chains of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from gapless.formulations.spatial import SAME, SpatialNetwork, SpatialNode, Window, Windows
from gapless.formulations.tiles import extra_flops

WINDOWS: tuple[Windows, ...] = (
    (SAME, SAME),
    (Window(extent=3, before=1), Window(extent=3, before=1)),
    (Window(extent=7, before=3), SAME),
    (SAME, Window(extent=7, before=3)),
    (Window(extent=2, stride=2), Window(extent=3, stride=2)),
    (Window(up=2), Window(up=2)),
    (Window(stride=3), Window(stride=3)),
)


def random_network(seed: int, *, most: int = 7) -> SpatialNetwork:
    """Return a network of up to so many operators, each of which reads one to three earlier ones."""
    random = Random(seed)
    nodes = [SpatialNode(name="image", op_type="Input", size=(16, 12))]
    for index in range(1, random.randint(2, most) + 1):
        sources = sorted(random.sample(range(index), min(index, random.choice((1, 1, 2, 3)))))
        whole = random.random() < 0.1
        windows = tuple((None, None) if whole else random.choice(WINDOWS) for _ in sources)
        nodes.append(
            SpatialNode(
                name=f"n{index}",
                op_type=random.choice(("Conv", "Conv", "MaxPool", "Add", "Relu")),
                sources=tuple(sources),
                windows=windows,
                size=(1, 1) if whole else (random.randint(2, 9), random.randint(2, 9)),
                flops=random.choice((0, 7, 100, 1000)) * random.randint(1, 9),
                weight_bytes=random.choice((0, 8)),
                splits=(not whole, not whole),
            )
        )
    read = {source for node in nodes for source in node.sources}
    ends = tuple(index for index in range(1, len(nodes)) if index not in read)
    return SpatialNetwork(name=f"random-{seed}", nodes=tuple(nodes), outputs=ends)


def chains(network: SpatialNetwork) -> Iterator[tuple[int, ...]]:
    """Yield all labellings of the nodes that are chains of pieces."""
    count = len(network.operators)
    edges: dict[int, list[int]] = {index: [] for index in network.operators}
    for source, reader, _ in network.edges():
        edges[reader].append(source)

    def extend(labels: dict[int, int]) -> Iterator[dict[int, int]]:
        if len(labels) == count:
            yield labels
            return
        index = network.operators[len(labels)]
        known = [labels[source] for source in edges[index]]
        low, high = (max(known), min(known) + 1) if known else (-count, count)
        for label in range(low, high + 1) if labels else (0,):
            yield from extend({**labels, index: label})

    for found in extend({}):
        used = set(found.values())
        if max(used) - min(used) + 1 == len(used):
            least = min(used)
            yield tuple(found[i] - least if i in found else -1 for i in range(len(network.nodes)))


def score(network: SpatialNetwork, labels: tuple[int, ...]) -> tuple[int, int, int]:
    """Return what is minimised: largest cost, number of pieces with minus sign, total cost."""
    groups = [
        [index for index, label in enumerate(labels) if label == piece] for piece in range(max(labels) + 1)
    ]
    costs = [extra_flops(network, group) for group in groups]
    return max(costs), -len(costs), sum(costs)
