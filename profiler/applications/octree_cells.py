"""What both sets of octree kernels share: codes, padding, capacities, and who owns a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

LEVELS = 10
"""Levels of cells below the root: ten bits an axis."""

CODE_BITS = 3 * LEVELS

CELLS = 1 << LEVELS
"""Smallest cells along an axis."""

NO_CODE = 0xFFFF_FFFF
"""Padding of codes; greater than all of them, so it sorts last."""

NONE = -1
"""No node: an empty octant, the parent of the root, padding."""

FIRST_LEAF = -2
"""Code i is written `FIRST_LEAF - i` where a child is a single code and no node."""


def most_nodes(points: int) -> int:
    """Return how many nodes an octree of a given number of points can have.

    A node below the root holds two codes or more, so a level has no more nodes than cells, and no more than
    half as many as there are points.
    """
    return 1 + sum(min(1 << 3 * level, points // 2) for level in range(1, LEVELS))


def grid(points: Array) -> Array:
    """Return the smallest cell of each point, uint32 (points, 3); what lies outside goes to the border."""
    scaled = np.fmin(np.fmax(points * np.float32(CELLS), 0), CELLS - 1)  # fmax: not a number becomes 0
    return scaled.astype(np.uint32)


def bit_lengths(numbers: Array) -> Array:
    """Return how many bits each number needs; 0 for 0."""
    return np.frexp(numbers.astype(np.float64))[1]


def padded(values: Array, size: int, filling: int) -> Array:
    """Return values with padding behind them."""
    full = np.full(size, filling, dtype=values.dtype)
    full[: len(values)] = values
    return full


def count_edges(prefix: Array, parent: Array) -> Array:
    """Count the octree nodes on the edge from the parent of each radix node to the node (Karras, section 4).

    The node of a prefix of p bits lies in the octree nodes of the levels 0 to p // 3; those that its parent
    does not lie in are its own. The root has no parent: all of them are its own, level 0 included.
    """
    deepest = (prefix // 3).astype(np.int32)
    edges = np.where(parent == NONE, 0, deepest - deepest[parent])  # padding has no parent either
    edges[0] = deepest[0] + 1
    return edges


def owners(edges: Array, parent: Array) -> Array:
    """Return which radix node owns the deepest octree node around each radix node: itself, or an ancestor.

    Prefixes grow by a bit at least from parent to child, and a level has three bits: the second ancestor
    owns a node if neither the radix node nor its parent does.
    """
    found = np.arange(len(edges))
    for _ in range(2):
        found = np.where(edges[found] > 0, found, np.maximum(parent[found], 0))
    return found


def hang_leaves(
    children: Array, codes: Array, radix: tuple[Array, Array], deepest: Array, level: Array
) -> None:
    """Write each code into the octree node that is around its parent in the radix tree.

    `radix`: left and right children of the radix nodes; both may be leaves. `deepest`: octree node around
    each radix node.
    """
    above = np.zeros(len(codes), dtype=np.int64)  # a single code has no radix node: it hangs at the root
    for side in radix:
        nodes = np.flatnonzero(side <= FIRST_LEAF)
        above[FIRST_LEAF - side[nodes]] = deepest[nodes]
    octants = octants_of(codes, level[above] + 1)
    children[above, octants] = FIRST_LEAF - np.arange(len(codes), dtype=np.int32)


def octants_of(codes: Array, level: Array) -> Array:
    """Return in which octant of the cell above it the cell of each code at a level lies."""
    return (codes >> (CODE_BITS - 3 * level.astype(np.uint32))) & 7


def corners(codes: Array, level: Array) -> Array:
    """Return the first code of the cell of each code at a level."""
    shift = CODE_BITS - 3 * level.astype(np.uint32)
    return (codes >> shift) << shift
