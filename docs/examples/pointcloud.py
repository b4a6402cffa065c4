"""An octree and a height map from a cloud of points: a pipeline that is no neural network.

    gapless tune docs/examples/pointcloud.py:HEIGHTS

takes the seven layers of the built-in application `octree` for clouds of another size, adds one of its own,
and finds the best way to share them out. `gapless tune octree` takes the application as it is.
"""

import numpy as np
from numpy.typing import NDArray

from gapless.profiler.applications.octree import octree
from gapless.running import CallableLayer, CallableModel

POINTS = 100_000
COLUMNS = 64
CELLS = 1024  # along an axis of the unit cube

Codes = NDArray[np.uint32]


def axis(codes: Codes, place: int) -> Codes:
    """Return the coordinate of each cell on an axis: every third bit of its code, from a place on."""
    bits = [((codes >> (3 * bit + place)) & 1) << bit for bit in range(10)]
    return np.asarray(sum(bits), dtype=np.uint32)


def height_map(unique: Codes, count: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return how high the highest point above each square of the ground is; 0 where there is none."""
    codes = unique[: count[0]]
    x, y, z = (axis(codes, place) for place in (2, 1, 0))
    heights = np.zeros((COLUMNS, COLUMNS), dtype=np.float32)
    squares = (x * COLUMNS // CELLS, y * COLUMNS // CELLS)
    np.maximum.at(heights, squares, ((z + 1) / CELLS).astype(np.float32))
    return heights


tree = octree(POINTS)

HEIGHTS = CallableModel(
    name="heights",
    inputs=tree.inputs,
    layers=(
        *tree.layers,
        CallableLayer(name="heights", variants={"*": height_map}, inputs=("unique", "count")),
    ),
    outputs=("heights", "children", "corner", "level", "nodes"),
    sample=tree.sample,  # the room of a depth camera; with frames of your own, a function that loads them
)
