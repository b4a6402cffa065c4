"""An octree in plain Python, point by point: slow, and nothing like the kernels that it checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

LEVELS, BITS = 10, 30
NONE = -1

Cell = tuple[int, int]
"""Level, and how many cells of that level come before it (its code without the bits behind)."""


def code_of(point: Sequence[float]) -> int:
    """Return the code of a point, from the halves of the cube that it lies in."""
    low, size, code = [0.0, 0.0, 0.0], 1.0, 0
    for _ in range(LEVELS):
        size /= 2
        for axis in range(3):
            upper = float(point[axis]) >= low[axis] + size
            low[axis] += size * upper
            code = 2 * code + upper
    return code


def bits_of(code: int) -> str:
    return format(code, f"0{BITS}b")


def common(codes: Sequence[int]) -> int:
    """Return how many bits codes have in common."""
    first, last = bits_of(codes[0]), bits_of(codes[-1])
    return next((i for i in range(BITS) if first[i] != last[i]), BITS)


class RadixTree:
    """The binary trie over some codes, without nodes of one child, numbered as Karras does."""

    def __init__(self, codes: Sequence[int], size: int) -> None:
        self.codes = codes
        self.left, self.right, self.parent = [NONE] * size, [NONE] * size, [NONE] * size
        self.prefix = [0] * size
        if len(codes) > 1:
            self._build(0, 0, len(codes))

    def _build(self, node: int, begin: int, end: int) -> None:
        bit = common(self.codes[begin:end])
        middle = next(i for i in range(begin, end) if bits_of(self.codes[i])[bit] == "1")
        self.prefix[node] = bit
        for side, child, low, high in (
            (self.left, middle - 1, begin, middle),
            (self.right, middle, middle, end),
        ):
            if high - low == 1:
                side[node] = -2 - low
            else:
                side[node] = child
                self.parent[child] = node
                self._build(child, low, high)

    def edges(self) -> list[int]:
        """Return how many levels of cells are around each node but not around its parent."""
        found = [0] * len(self.prefix)
        for node in range(max(1, len(self.codes) - 1)):
            above = -1 if self.parent[node] == NONE else self.prefix[self.parent[node]]
            found[node] = sum(above < 3 * level <= self.prefix[node] for level in range(LEVELS))
        return found


def octree_of(codes: Iterable[int]) -> dict[Cell, dict[int, Cell | int]]:
    """Return {cell: {octant: a cell or the number of a code}} from the distinct codes in order."""
    tree: dict[Cell, dict[int, Cell | int]] = {}

    def add(level: int, inside: list[tuple[int, int]]) -> None:
        cell = (level, inside[0][1] >> (BITS - 3 * level))
        tree[cell] = {}
        octants: dict[int, list[tuple[int, int]]] = {}
        for number, code in inside:
            octants.setdefault((code >> (BITS - 3 * level - 3)) % 8, []).append((number, code))
        for octant, members in octants.items():
            if len(members) == 1:
                tree[cell][octant] = members[0][0]
            else:
                tree[cell][octant] = (level + 1, members[0][1] >> (BITS - 3 * level - 3))
                add(level + 1, members)

    add(0, list(enumerate(codes)))
    return tree


def unfolded(outputs: Mapping[str, Any]) -> dict[Cell, dict[int, Cell | int]]:
    """Return what the application gives in the form of `octree_of`; each node must be reached once."""
    corner, level, children = (outputs[name] for name in ("corner", "level", "children"))
    tree: dict[Cell, dict[int, Cell | int]] = {}

    def cell_of(node: int) -> Cell:
        return int(level[node]), int(corner[node]) >> (BITS - 3 * int(level[node]))

    def walk(node: int) -> None:
        cell = cell_of(node)
        assert cell not in tree, f"node {node} is reached twice"
        tree[cell] = {}
        for octant, child in enumerate(children[node].tolist()):
            if child >= 0:
                tree[cell][octant] = cell_of(child)
                walk(child)
            elif child != NONE:
                tree[cell][octant] = -2 - child

    walk(0)
    return tree


def check_outputs(points: np.ndarray[Any, Any], outputs: Mapping[str, Any]) -> None:
    """Require that what the application gives for some points is the octree of the naive way."""
    codes = sorted({code_of(point) for point in points.tolist()})
    right = octree_of(codes)
    (nodes,), (count,) = outputs["nodes"].tolist(), outputs["count"].tolist()
    assert (nodes, count) == (len(right), len(codes))
    assert outputs["unique"][:count].tolist() == codes
    assert unfolded(outputs) == right
    assert (outputs["children"][nodes:] == NONE).all()
    assert (outputs["corner"][nodes:] == 2**32 - 1).all()
    assert (outputs["level"][nodes:] == 0).all()
