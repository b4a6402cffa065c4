"""A spatial network with its glue contracted: what pieces are searched on.

An operator that computes each position from the same position of one result (an activation, a batch
normalisation) belongs to the piece of that result. So does an operator without weights, or the first one with
weights, behind one that cannot be computed in parts: cuts between them would be of no use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...formulations.spatial import SAME, SpatialNetwork, SpatialNode, Windows

Reading = tuple[int, Windows]
"""A vertex, and what it reads."""

Factors = tuple[int, int, int]
"""A halo: that of its reader times the first, plus the second, divided by the third, rounded up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contraction:
    """Vertices in topological order, and who reads whom."""

    network: SpatialNetwork
    members: tuple[tuple[int, ...], ...]  # nodes of each vertex
    sources: tuple[tuple[int, ...], ...]  # by vertex the vertices that it reads
    readers: tuple[tuple[Reading, ...], ...]
    """By vertex who reads it, and how; a vertex stands there once for each way."""
    size: tuple[tuple[int, int], ...]  # rows and columns of each vertex
    share: tuple[int, ...]
    """Operations of each vertex for one position, rounded up for each node; none where it is not divided."""

    def labels(self, of_vertices: Sequence[int]) -> tuple[int, ...]:
        """Return a label for each node from those of the vertices; -1 for inputs."""
        found = [-1] * len(self.network.nodes)
        for members, label in zip(self.members, of_vertices, strict=True):
            for index in members:
                found[index] = label
        return tuple(found)

    def factors(self, vertex: int, windows: Windows) -> tuple[Factors, Factors]:
        """Return how halos follow along an edge (`Window.halo`), for rows and for columns.

        What is read whole has a halo of its whole size.
        """
        rows, columns = (
            (0, whole, 1)
            if window is None
            else (window.stride, max(0, window.extent - window.stride), window.up)
            for window, whole in zip(windows, self.size[vertex], strict=True)
        )
        return rows, columns

    def halo(self, vertex: int, windows: Windows, beyond: tuple[int, int]) -> tuple[int, int]:
        """Return the halo of a vertex that a reader with a halo of its own asks for."""
        rows, columns = (
            -(-(more * stride + slack) // up)
            for (stride, slack, up), more in zip(self.factors(vertex, windows), beyond, strict=True)
        )
        return rows, columns

    def extra(self, vertex: int, halo: tuple[int, int]) -> int:
        """Return what a vertex computes more with a halo."""
        height, width = self.size[vertex]
        return self.share[vertex] * ((height + halo[0]) * (width + halo[1]) - height * width)

    def distances(self, start: int) -> dict[int, int]:
        """Return by how much the label of each vertex can exceed that of another one.

        Along an edge a label grows by one at most, against it not at all: 0-1 breadth-first search
        (formulations, section 13). Vertices that are not connected are left out.
        """
        found = {start: 0}
        layer, distance = [start], 0
        while layer:
            ahead = list[int]()
            while layer:
                vertex = layer.pop()
                ahead += [reader for reader, _ in self.readers[vertex] if reader not in found]
                for source in self.sources[vertex]:
                    if source not in found:
                        found[source] = distance
                        layer.append(source)
            distance += 1
            layer = [vertex for vertex in dict.fromkeys(ahead) if vertex not in found]
            found |= dict.fromkeys(layer, distance)
        return found

    def finest(self) -> tuple[int, ...]:
        """Return labels of the most pieces, whatever they cost."""
        found: dict[int, int] = {}
        starts = (vertex for vertex, sources in enumerate(self.sources) if not sources)
        for distances in sorted(map(self.distances, starts), key=lambda one: -max(one.values())):
            if not distances.keys() & found.keys():  # another part that is not connected with those before
                behind = max(found.values(), default=-1) + 1
                found |= {vertex: behind + distance for vertex, distance in distances.items()}
        return tuple(found[vertex] for vertex in range(len(self.members)))

    def highest(self) -> list[int]:
        """Return the largest label that each vertex can have in a chain that begins with 0."""
        count = len(self.members)
        starts = [self.distances(vertex) for vertex, sources in enumerate(self.sources) if not sources]
        return [max(far.get(vertex, count - 1) for far in starts) for vertex in range(count)]

    def costs(self, labels: Sequence[int]) -> list[int]:
        """Return what each piece of a chain costs."""
        halos: dict[int, tuple[int, int]] = {}
        found = [0] * (max(labels) + 1)
        for vertex in reversed(range(len(labels))):
            asked = [
                self.halo(vertex, windows, halos[reader])
                for reader, windows in self.readers[vertex]
                if labels[reader] == labels[vertex]
            ]
            halos[vertex] = (max((a[0] for a in asked), default=0), max((a[1] for a in asked), default=0))
            found[labels[vertex]] += self.extra(vertex, halos[vertex])
        return found

    def blocks(self) -> tuple[int, ...]:
        """Return labels that cut only behind vertices through which everything passes."""
        found, label, reach = [], 0, 0
        for vertex, readers in enumerate(self.readers):
            found.append(label)
            if reach <= vertex:
                label += 1
            reach = max(reach, max((reader for reader, _ in readers), default=vertex))
        return tuple(found)


def contract(network: SpatialNetwork) -> Contraction:
    """Return a network with its glue contracted."""
    home: dict[int, int] = {}
    members: list[list[int]] = []
    for index in network.operators:
        node = network.nodes[index]
        homes = {home[source] for source in node.sources if source in home}
        if len(homes) == 1 and len(homes | {-1 for s in node.sources if s not in home}) == 1:
            (place,) = homes
            if _is_glue(network, members[place], node):
                members[place].append(index)
                home[index] = place
                continue
        home[index] = len(members)
        members.append([index])
    readers: list[dict[Reading, None]] = [{} for _ in members]
    for source, reader, windows in network.edges():
        if home[source] != home[reader]:
            readers[home[source]][home[reader], windows] = None
    sources: list[set[int]] = [set() for _ in members]
    for vertex, reading in enumerate(readers):
        for reader, _ in reading:
            sources[reader].add(vertex)
    roots = [network.nodes[group[0]] for group in members]
    return Contraction(
        network=network,
        members=tuple(map(tuple, members)),
        sources=tuple(tuple(sorted(found)) for found in sources),
        readers=tuple(map(tuple, readers)),
        size=tuple(root.size for root in roots),
        share=tuple(_share(network.nodes[index] for index in group) for group in members),
    )


def _share(nodes: Iterable[SpatialNode]) -> int:
    return sum(-(-node.flops // (node.size[0] * node.size[1])) for node in nodes if not node.is_whole)


def _is_glue(network: SpatialNetwork, members: Sequence[int], node: SpatialNode) -> bool:
    """Say whether a node that reads results of one vertex only belongs to it."""
    first = network.nodes[members[0]]
    if node.is_whole and first.is_whole:
        return not (node.weight_bytes and any(network.nodes[index].weight_bytes for index in members))
    same = node.size == first.size and all(windows == (SAME, SAME) for windows in node.windows)
    return same and all(node.splits) and not node.is_layer
