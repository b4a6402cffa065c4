"""Tiles of a part of a network: what they need, what they cost, and what is computed twice.

A tile of some nodes is an interval of positions of each of their sinks along one axis. What it needs of every
other node follows backward: Eq. 2 and 3 of PICO with intervals, several readers (their hull) and borders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from .spatial import Axis, Interval, SpatialNetwork


def needs(
    network: SpatialNetwork, members: Collection[int], tiles: Mapping[int, Interval], axis: Axis
) -> dict[int, Interval]:
    """Return which positions of each node a tile computes or reads.

    Parameters
    ----------
    network
        The network.
    members
        Indices of the nodes that are computed.
    tiles
        For each sink of the members the positions [start, stop) that are asked for; empty: none.
    axis
        Along which side.

    Returns
    -------
    dict
        By node: for members what is computed, for nodes outside what is read. Nodes of which nothing is
        needed are left out. A member that does not split along the axis is computed whole.
    """
    inside = set(members)
    found = {index: tile for index, tile in tiles.items() if tile[0] < tile[1]}
    for index in sorted(inside, reverse=True):
        if index not in found:
            continue
        node = network.nodes[index]
        if not node.splits[axis]:
            found[index] = (0, node.size[axis])
        start, stop = found[index]
        for source, windows in zip(node.sources, node.windows, strict=True):
            size, window = network.nodes[source].size[axis], windows[axis]
            whole = (0, size)
            read = whole if window is None else (window.first(start, size), window.last(stop, size))
            before = found.get(source, read)
            found[source] = (min(before[0], read[0]), max(before[1], read[1]))
    return found


def obstacles(network: SpatialNetwork, members: Collection[int], axis: Axis) -> Iterator[str]:
    """Yield why some nodes cannot be computed in tiles along an axis; nothing: they can."""
    side = axis.name.lower()
    for index in sorted(members):
        node = network.nodes[index]
        if not node.splits[axis]:
            yield f"operator {node.name!r} ({node.op_type}) cannot be computed in parts of its {side}"
    for index in network.sinks(members):
        node = network.nodes[index]
        if node.splits[axis] and node.size[axis] == 1:
            yield f"the result of operator {node.name!r} ({node.op_type}) has no {side} to divide"


def reference_rows(network: SpatialNetwork, members: Collection[int], axis: Axis) -> int:
    """Return in how many positions the results of some nodes can be divided: those of the smallest sink."""
    return min(network.nodes[index].size[axis] for index in network.sinks(members))


def tile_of(
    network: SpatialNetwork, members: Collection[int], rows: Interval, axis: Axis
) -> dict[int, Interval]:
    """Return which positions of each sink belong to some reference rows (see `reference_rows`).

    Intervals of reference rows that lie side by side give tiles that lie side by side, in every sink.
    """
    total = reference_rows(network, members, axis)
    sides = ((index, network.nodes[index].size[axis]) for index in network.sinks(members))
    return {index: (rows[0] * side // total, rows[1] * side // total) for index, side in sides}


def even_rows(total: int, count: int) -> tuple[Interval, ...]:
    """Return intervals that divide some rows evenly; fewer than asked for where there are fewer rows."""
    parts = min(count, total)
    return tuple(pairwise(total * part // parts for part in range(parts + 1)))


def flops_of(
    network: SpatialNetwork, members: Iterable[int], needed: Mapping[int, Interval], axis: Axis
) -> int:
    """Return the floating-point operations of a tile: Eq. 6 of PICO, halo included.

    `needed`: what `needs` returned.
    """
    return sum(_share(network.nodes[index].flops, network, index, needed, axis) for index in members)


def bytes_of(
    network: SpatialNetwork, nodes: Iterable[int], needed: Mapping[int, Interval], axis: Axis
) -> int:
    """Return the bytes of the needed positions of the results of some nodes."""
    return sum(_share(network.nodes[index].bytes, network, index, needed, axis) for index in nodes)


def sources_of(network: SpatialNetwork, members: Collection[int]) -> tuple[int, ...]:
    """Return the nodes outside whose results some nodes read, in order."""
    inside = set(members)
    return tuple(sorted({s for index in inside for s in network.nodes[index].sources} - inside))


def redundancy(
    network: SpatialNetwork, members: Collection[int], parts: Iterable[Interval], axis: Axis
) -> float:
    """Return the share of operations that parts of the reference rows compute more than the whole does.

    0.25: five operations are done where four would do.
    """
    whole = sum(network.nodes[index].flops for index in members)
    done = sum(
        flops_of(network, members, needs(network, members, tile_of(network, members, part, axis), axis), axis)
        for part in parts
    )
    return done / whole - 1 if whole else 0.0


def _share(
    amount: int, network: SpatialNetwork, index: int, needed: Mapping[int, Interval], axis: Axis
) -> int:
    start, stop = needed.get(index, (0, 0))
    return -(-amount * (stop - start) // network.nodes[index].size[axis])


def halos(network: SpatialNetwork, members: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return how many rows and columns more each node computes for a neighbour's tile, inside a map.

    Backward through the members alone: 0 where no other member reads a result. What is read whole counts as
    a halo of its whole size: each tile computes all of it.
    """
    found: dict[int, tuple[int, int]] = dict.fromkeys(members, (0, 0))
    for index in sorted(found, reverse=True):
        node = network.nodes[index]
        for source, windows in zip(node.sources, node.windows, strict=True):
            if source in found:
                size = network.nodes[source].size
                rows, columns = (
                    whole if window is None else window.halo(beyond)
                    for window, beyond, whole in zip(windows, found[index], size, strict=True)
                )
                found[source] = (max(found[source][0], rows), max(found[source][1], columns))
    return found


def extra_flops(network: SpatialNetwork, members: Collection[int]) -> int:
    """Return what some nodes compute more when their results are computed as parts of larger maps.

    The cost C of a piece (PICO 4.3): the operations of all members with their halos, less those without.
    Operations for a position count as whole numbers, rounded up. What cannot be divided costs nothing: it is
    never computed in parts, in whatever piece it is.
    """
    total = 0
    for index, (rows, columns) in halos(network, members).items():
        height, width = network.nodes[index].size
        if network.nodes[index].is_whole:
            continue
        share = -(-network.nodes[index].flops // (height * width))
        total += share * ((height + rows) * (width + columns) - height * width)
    return total
