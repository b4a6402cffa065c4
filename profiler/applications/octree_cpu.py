"""Octree kernels in the manner of a CPU: tables, comparison sort, binary search, one list of all nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .octree_cells import (
    CELLS,
    CODE_BITS,
    FIRST_LEAF,
    LEVELS,
    NO_CODE,
    NONE,
    bit_lengths,
    corners,
    grid,
    hang_leaves,
    most_nodes,
    octants_of,
    owners,
    padded,
)

if TYPE_CHECKING:
    from .octree_cells import Array

_SPREAD = np.bitwise_or.reduce(
    [((np.arange(CELLS, dtype=np.uint32) >> bit) & 1) << (3 * bit) for bit in range(LEVELS)]
)
"""Ten bits, with two free places before each."""


def encode(points: Array) -> Array:
    """Return the Morton code of each point, by a table: bits x, y, z in turn, x first."""
    x, y, z = _SPREAD[grid(points)].T
    return np.asarray((x << 2) | (y << 1) | z)


def sort(codes: Array) -> Array:
    """Sort codes, by comparisons."""
    return np.sort(codes)


def drop_duplicates(ordered: Array) -> tuple[Array, Array]:
    """Return the distinct codes in order, padded, and how many there are."""
    found = ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
    return padded(found, len(ordered), NO_CODE), np.array([len(found)], dtype=np.int32)


def build_radix_tree(unique: Array, count: Array) -> tuple[Array, Array, Array, Array]:
    """Return left and right child, parent, and prefix of each node: see `octree`.

    Each gap between two neighbouring codes is where one node splits. Its prefix is what both have in common,
    and two binary searches find where the codes of that prefix begin and end.
    """
    size, codes = len(unique), unique[: int(count[0])]
    left, right, parent = (np.full(size, NONE, dtype=np.int32) for _ in range(3))
    prefix = np.zeros(size, dtype=np.uint8)
    gaps = np.arange(len(codes) - 1, dtype=np.int32)
    below = bit_lengths(codes[:-1] ^ codes[1:]).astype(np.uint32)  # bits behind the common prefix
    begin = (codes[:-1] >> below) << below
    first = np.searchsorted(codes, begin)
    last = np.searchsorted(codes, begin + (np.uint32(1) << below)) - 1
    # Of the gaps before and behind, that with the longer prefix is where the parent splits.
    outside = np.concatenate(([CODE_BITS + 1], below, [CODE_BITS + 1]))
    is_left = outside[last + 1] < outside[first]
    node = np.where(is_left, last, first)  # as Karras numbers them
    split = np.where(is_left, last, first - 1)
    left[node] = np.where(first == gaps, FIRST_LEAF - gaps, gaps)
    right[node] = np.where(last == gaps + 1, FIRST_LEAF - 1 - gaps, gaps + 1)
    inner = split >= 0
    parent[node[inner]] = node[split[inner]]
    prefix[node] = CODE_BITS - below
    return left, right, parent, prefix


def sum_before(edges: Array) -> tuple[Array, Array]:
    """Return the sum of what stands before each number, and the sum of all."""
    sums = np.cumsum(edges, dtype=np.int32)
    return sums - edges, sums[-1:]


def build_octree(  # noqa: PLR0917 - layers take their inputs by position
    unique: Array,
    count: Array,
    left: Array,
    right: Array,
    parent: Array,
    prefix: Array,
    edges: Array,
    offsets: Array,
    nodes: Array,
) -> tuple[Array, Array, Array]:
    """Return children, corner and level of each octree node: see `octree`.

    Goes through a list of all octree nodes.
    """
    capacity, total = most_nodes(len(unique)), int(nodes[0])
    radix = np.repeat(np.arange(len(edges)), edges)
    rank = np.arange(total) - offsets[radix]
    level = np.zeros(capacity, dtype=np.uint8)
    level[:total] = prefix[radix] // 3 - edges[radix] + 1 + rank
    corner = np.full(capacity, NO_CODE, dtype=np.uint32)
    corner[:total] = corners(unique[radix], level[:total])
    owner = owners(edges, parent)
    deepest = offsets[owner] + edges[owner] - 1
    above = np.where(rank > 0, np.arange(total) - 1, deepest[np.maximum(parent[radix], 0)])
    children = np.full((capacity, 8), NONE, dtype=np.int32)
    octants = octants_of(corner[1:total], level[1:total])
    children[above[1:], octants] = np.arange(1, total)
    hang_leaves(children, unique[: int(count[0])], (left, right), deepest, level)
    return children, corner, level
