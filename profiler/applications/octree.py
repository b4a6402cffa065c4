"""An octree from a cloud of points, in seven layers: a pipeline that is no neural network.

The layers are those of BetterTogether (IISWC 2025, section IV-A), which follows Karras 2012 ("Maximizing
parallelism in the construction of BVHs, octrees, and k-d trees"):

=============  ===========================================================================================
morton         Each point becomes the code of its smallest cell: 30 bits, ten an axis, x first.
sort           The codes in order.
unique         Each code once. There are `count`; behind them is padding.
radix-tree     The binary radix tree over the codes, count - 1 nodes. Node 0 is the root; a node that splits
               the codes behind code g has the children g and g + 1, each a node, or the code of that number.
               `prefix` says how many bits the codes of a node have in common.
edge-count     How many octree nodes lie between a radix node and its parent (at the root: above it, too).
prefix-sum     Where the octree nodes of each radix node begin, and how many there are.
octree         Children, corner and level of each octree node.
=============  ===========================================================================================

A node of the octree is a cell that holds two different codes or more; the root is always one. Each octant of
a node is empty, or a node, or, with a single code in it, a leaf. The outputs:

children
    int32 (most nodes, 8): -1 for an empty octant, the number of a node, or -2 - i for the leaf of code i.
    Octant 4 x + 2 y + z lies in the upper half of the axes whose bit is set.
corner, level
    uint32 and uint8: the first code of the cell, and the number of times that the unit cube was halved.
nodes
    int32 (1,): how many nodes there are. Node 0 is the root.
unique, count
    uint32 (points,) and int32 (1,): the codes that leaves refer to, and how many there are.

Every shape depends on the number of points alone. Padding is -1, the code 2**32 - 1, and 0 in numbers that
are not negative.

Each layer has a kernel for a CPU (`octree_cpu`) and, where another algorithm suits it, one for a GPU
(`octree_gpu`), with equal results. Both are numpy and **run on a core**: a unit of kind "gpu" here is a core
that runs the data-parallel algorithm. For OpenCL devices there is `octree_opencl` (`--engine opencl`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...executor.callable_layers import ANY_UNIT, CallableLayer, CallableModel
from ...executor.model import TensorSpec
from ...executor.opencl_functions import OPENCL
from ...formulations.hardware import UnitKind
from . import octree_cpu, octree_gpu, octree_opencl
from .octree_cells import count_edges

if TYPE_CHECKING:
    from .octree_cells import Array

POINTS = 640 * 480
"""Points of one depth image of that size; so many the published programs of BetterTogether take, too."""

_TREE = ("left", "right", "parent", "prefix")
_OUTPUTS = ("children", "corner", "level")


def octree(points: int = POINTS) -> CallableModel:
    """Return the pipeline for clouds of a given number of points, float32 (points, 3) in the unit cube.

    Points outside count as at its border.
    """
    return CallableModel(
        name="octree",
        inputs=(TensorSpec(name="points", shape=(points, 3)),),
        layers=(
            _layer("morton", "encode", inputs=("points",), outputs=("codes",)),
            _layer("sort", "sort", inputs=("codes",), outputs=("ordered",)),
            _layer("unique", "drop_duplicates", inputs=("ordered",), outputs=("unique", "count")),
            _layer("radix-tree", "build_radix_tree", inputs=("unique", "count"), outputs=_TREE),
            CallableLayer(
                name="edge-count",
                variants={ANY_UNIT: count_edges, OPENCL: octree_opencl.count_edges},
                inputs=("prefix", "parent"),
                outputs=("edges",),
            ),
            _layer("prefix-sum", "sum_before", inputs=("edges",), outputs=("offsets", "nodes")),
            _layer(
                "octree",
                "build_octree",
                inputs=("unique", "count", *_TREE, "edges", "offsets", "nodes"),
                outputs=_OUTPUTS,
            ),
        ),
        outputs=(*_OUTPUTS, "nodes", "unique", "count"),
        sample=lambda seed: {"points": scan(points, seed)},
    )


def scan(points: int, seed: int) -> Array:
    """Return a cloud like that of a depth camera in a room: a floor, a wall, some balls, a little noise."""
    random = np.random.default_rng(seed)
    surface = random.integers(0, 8, points)
    cloud = random.random((points, 3))
    cloud[surface == 0, 2] = 0.05
    cloud[surface == 1, 1] = 0.95
    centres, radii = random.uniform(0.2, 0.8, (8, 3)), random.uniform(0.05, 0.2, 8)
    directions = random.normal(size=(points, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ball = surface > 1
    cloud[ball] = (centres[surface] + radii[surface, None] * directions)[ball]
    cloud += random.normal(0, 0.001, cloud.shape)
    return cloud.clip(0, np.nextafter(1, 0, dtype=np.float32)).astype(np.float32)


def _layer(name: str, function: str, *, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> CallableLayer:
    """Return a layer with a kernel of the same name for each kind of unit."""
    variants = {
        UnitKind.CPU: getattr(octree_cpu, function),
        ANY_UNIT: getattr(octree_gpu, function),
        OPENCL: getattr(octree_opencl, function),
    }
    return CallableLayer(name=name, variants=variants, inputs=inputs, outputs=outputs)


OCTREE = octree()
