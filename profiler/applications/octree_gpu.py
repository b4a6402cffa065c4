"""Octree kernels in the manner of a GPU: the same short steps for all entries at once, no branches.

They give what the kernels of `octree_cpu` give. In numpy they run on a core like those: they stand for the
*algorithms* that suit such a unit, so that a planner has something to weigh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .octree_cells import (
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
)

if TYPE_CHECKING:
    from .octree_cells import Array

_OUTSIDE = np.uint32(1 << 31)
"""How a code differs from one that is not there: in a bit before all others."""


def encode(points: Array) -> Array:
    """Return the Morton code of each point, by shifts and masks: bits x, y, z in turn, x first."""
    spread = grid(points)
    for shift, mask in ((16, 0x030000FF), (8, 0x0300F00F), (4, 0x030C30C3), (2, 0x09249249)):
        spread = (spread | (spread << np.uint32(shift))) & np.uint32(mask)
    x, y, z = spread.T
    return np.asarray((x << 2) | (y << 1) | z)


def sort(codes: Array) -> Array:
    """Sort codes, by a radix sort of one bit a pass (the split of Blelloch 1990)."""
    for bit in range(CODE_BITS):
        ones = (codes >> bit) & 1 > 0
        codes = np.concatenate((codes[~ones], codes[ones]))
    return codes


def drop_duplicates(ordered: Array) -> tuple[Array, Array]:
    """Return the distinct codes in order, padded, and how many there are: flag, scan, scatter."""
    new = np.ones(len(ordered), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    place = np.cumsum(new, dtype=np.int32)
    unique = np.full(len(ordered), NO_CODE, dtype=np.uint32)
    unique[place - 1] = ordered  # equal codes have equal places
    return unique, place[-1:]


def build_radix_tree(unique: Array, count: Array) -> tuple[Array, Array, Array, Array]:
    """Return left and right child, parent, and prefix of each node: see `octree`.

    Node i begins or ends with code i, and finds its other end and its split by itself (Karras, section 3).
    Prefixes are not counted but compared: that of two codes is longer than that of two others if the
    exclusive or of the former is less than the highest bit in that of the latter.
    """
    size, codes = len(unique), unique[: int(count[0])]
    left, right, parent = (np.full(size, NONE, dtype=np.int32) for _ in range(3))
    prefix = np.zeros(size, dtype=np.uint8)
    node = np.arange(len(codes) - 1, dtype=np.int32)
    ahead, behind = _differ(codes, node, node + 1), _differ(codes, node, node - 1)
    step = np.where(ahead < behind, 1, -1).astype(np.int32)
    length = _farthest(codes, step, _highest_bit(np.maximum(ahead, behind)))
    end = node + length * step
    differing = codes[node] ^ codes[end]
    split = node + _farthest(codes, step, _highest_bit(differing)) * step + np.minimum(step, 0)
    for side, border, child in (
        (left, np.minimum(node, end), split),
        (right, np.maximum(node, end), split + 1),
    ):
        inner = border != child
        side[node] = np.where(inner, child, FIRST_LEAF - child)
        parent[child[inner]] = node[inner]
    prefix[node] = CODE_BITS - bit_lengths(differing)
    return left, right, parent, prefix


def _farthest(codes: Array, step: Array, limit: Array) -> Array:
    """Return how far each node can go in its direction while codes differ by less than a limit."""
    lanes = np.arange(len(step), dtype=np.int32)
    most = np.ones(len(step), dtype=np.int32)
    while len(lanes):  # lanes that are done drop out
        probe = lanes + most[lanes] * step[lanes]
        lanes = lanes[_differ(codes, lanes, probe) < limit[lanes]]
        most[lanes] *= 2
    lanes = np.flatnonzero(most > 1).astype(np.int32)
    length, stride = np.zeros_like(most), most // 2
    while len(lanes):
        farther = length[lanes] + stride[lanes]
        fits = _differ(codes, lanes, lanes + farther * step[lanes]) < limit[lanes]
        length[lanes] = np.where(fits, farther, length[lanes])
        stride[lanes] //= 2
        lanes = lanes[stride[lanes] > 0]
    return length


def _differ(codes: Array, one: Array, other: Array) -> Array:
    """Return in which bits two codes differ, by their numbers."""
    inside = (other >= 0) & (other < len(codes))
    return np.where(inside, codes[one] ^ codes[np.where(inside, other, 0)], _OUTSIDE)


def _highest_bit(numbers: Array) -> Array:
    for shift in (1, 2, 4, 8, 16):
        numbers = numbers | (numbers >> shift)
    return np.asarray(numbers - (numbers >> 1))


def sum_before(edges: Array) -> tuple[Array, Array]:
    """Return the sum of what stands before each number, and the sum of all (Hillis and Steele 1986)."""
    sums, reach = edges.copy(), 1
    while reach < len(sums):
        sums[reach:] += sums[:-reach].copy()
        reach *= 2
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

    Each radix node writes the octree nodes that it owns, the n-th of all radix nodes together.
    """
    capacity = most_nodes(len(unique))
    children = np.full((capacity, 8), NONE, dtype=np.int32)
    corner = np.full(capacity, NO_CODE, dtype=np.uint32)
    level = np.zeros(capacity, dtype=np.uint8)
    owner = owners(edges, parent)
    deepest = offsets[owner] + edges[owner] - 1
    above = deepest[np.maximum(parent, 0)]
    for number in range(LEVELS):
        lanes = np.flatnonzero(edges > number)
        own = offsets[lanes] + number
        level[own] = prefix[lanes] // 3 - edges[lanes] + 1 + number
        corner[own] = corners(unique[lanes], level[own])
        inner = own > 0
        children[above[lanes[inner]], octants_of(corner[own], level[own])[inner]] = own[inner]
        above[lanes] = own
    hang_leaves(children, unique[: int(count[0])], (left, right), deepest, level)
    return children, corner, level
