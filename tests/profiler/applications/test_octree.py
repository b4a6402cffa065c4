"""The octree application against an octree in plain Python, layer by layer, for both sets of kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gapless import Chunk, Plan, open_pipeline
from gapless.executor.callable_layers import CallableModel
from gapless.executor.callables import LayerCall, load_callable
from gapless.executor.machine.cores import usable_cores
from gapless.executor.model import TensorSpec
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidModelError
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.problem import Problem
from gapless.profiler.applications.octree import POINTS, octree, scan
from gapless.profiler.applications.octree_cells import most_nodes

from .naive_octree import RadixTree, check_outputs, code_of

Cloud = NDArray[np.float32]

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "pointcloud.py"
KINDS = ("cpu", "gpu")
LAST = np.nextafter(np.float32(1), np.float32(0))
"""The largest coordinate inside the cube."""


def tensors_of(model: CallableModel, kind: str, inputs: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Run all layers by their functions for a kind of unit, and return all tensors."""
    tensors = dict(inputs)
    for index, layer in enumerate(model.functions()):
        key = layer.variant_for(kind)
        assert key is not None
        function, names = layer.variants[key], model.inputs_of(index)
        found = function(*(tensors[name] for name in names))
        found = found if isinstance(found, tuple) else (found,)
        outputs = tuple(
            TensorSpec(name=name, shape=array.shape, dtype=array.dtype.name)
            for name, array in zip(layer.output_names, found, strict=True)
        )
        LayerCall(layer=layer.name, function=function, inputs=names, outputs=outputs).run(tensors)
    return tensors


def check_layers(cloud: Cloud) -> None:
    """Require that all layers give what the naive way gives, with both sets of kernels."""
    size = len(cloud)
    codes = [code_of(point) for point in cloud.tolist()]
    distinct = sorted(set(codes))
    tree = RadixTree(distinct, size)
    edges = tree.edges()
    for kind in KINDS:
        found = tensors_of(octree(size), kind, {"points": cloud})
        assert found["codes"].tolist() == codes
        assert found["ordered"].tolist() == sorted(codes)
        assert found["unique"].tolist() == distinct + [2**32 - 1] * (size - len(distinct))
        assert found["count"].tolist() == [len(distinct)]
        for name in ("left", "right", "parent", "prefix"):
            assert found[name].tolist() == getattr(tree, name), name
        assert found["edges"].tolist() == edges
        assert found["offsets"].tolist() == [sum(edges[:node]) for node in range(size)]
        assert found["nodes"].tolist() == [sum(edges)]
        check_outputs(cloud, found)


def cloud_of(*points: tuple[float, float, float]) -> Cloud:
    return np.array(points, dtype=np.float32)


@pytest.mark.parametrize(
    "cloud",
    [
        cloud_of((0.3, 0.6, 0.9)),
        cloud_of((0, 0, 0), (LAST, LAST, LAST)),
        cloud_of((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        cloud_of((0.1, 0.1, 0.1), (0.1, 0.1, 0.1 + 1 / 1024), (0.9, 0.1, 0.1)),
        cloud_of(*[(LAST, 0, LAST)] * 9, *[(0, LAST, 0)] * 9),
        cloud_of(*((x / 1024, y / 1024, z / 1024) for x in range(4) for y in range(4) for z in range(4))),
        scan(300, 5),
        np.random.default_rng(1).random((300, 3), dtype=np.float32),
        np.random.default_rng(2).integers(0, 3, (300, 3)).astype(np.float32) / 3,
        np.random.default_rng(3).normal(0.5, 0.002, (300, 3)).astype(np.float32),
    ],
    ids=["one", "corners", "equal", "near", "few", "block", "scan", "random", "grid", "cluster"],
)
def test_every_layer_is_right(cloud: Cloud) -> None:
    check_layers(cloud)


def clouds() -> st.SearchStrategy[Cloud]:
    """Return clouds whose points often share cells, borders and levels."""
    anywhere = st.floats(0, float(LAST), width=32)
    near = st.integers(0, 1023).map(lambda cell: cell / 1024)
    low = st.integers(0, 7).map(lambda cell: cell / 1024)
    coordinate = st.one_of(anywhere, near, low, st.sampled_from([0.0, 0.5, float(LAST)]))
    points = st.lists(st.tuples(coordinate, coordinate, coordinate), min_size=1, max_size=40)
    return points.map(lambda values: cloud_of(*values))


@pytest.mark.slow
@settings(max_examples=150)
@given(cloud=clouds())
def test_every_layer_is_right_for_any_cloud(cloud: Cloud) -> None:
    check_layers(cloud)


@settings(max_examples=50)
@given(cloud=clouds(), random=st.randoms(use_true_random=False))
def test_the_order_of_points_changes_nothing(cloud: Cloud, random: Any) -> None:
    order = random.sample(range(len(cloud)), len(cloud))
    model = octree(len(cloud))
    one, other = (tensors_of(model, "cpu", {"points": points}) for points in (cloud, cloud[order]))
    assert all((one[name] == other[name]).all() for name in model.output_names)


def test_points_outside_count_as_at_the_border() -> None:
    inf, nan = np.inf, np.nan
    outside = cloud_of((-1, 2, 0.5), (inf, -inf, 0.5), (nan, 1, 0.5))
    border = cloud_of((0, LAST, 0.5), (LAST, 0, 0.5), (0, LAST, 0.5))
    for kind in KINDS:
        found, right = (tensors_of(octree(3), kind, {"points": cloud}) for cloud in (outside, border))
        assert found["codes"].tolist() == right["codes"].tolist()


def test_there_is_room_for_the_worst_cloud() -> None:
    """Pairs that part in the last bit only, spread over as many cells as there are."""
    pairs = 64
    cells = [(x / 4, y / 4, z / 4) for x in range(4) for y in range(4) for z in range(4)]
    cloud = cloud_of(*((x, y, z + step / 1024) for x, y, z in cells for step in range(2)))
    found = tensors_of(octree(2 * pairs), "gpu", {"points": cloud})
    assert found["nodes"].tolist() == [most_nodes(2 * pairs)]
    check_layers(cloud)


@pytest.mark.slow
def test_the_default_size_is_consistent() -> None:
    """Too large for the naive way, but both sets of kernels must agree, and all nodes and codes be there."""
    model = octree()
    cloud = {"points": scan(POINTS, 3)}
    found, other = (tensors_of(model, kind, cloud) for kind in KINDS)
    assert all((found[name] == other[name]).all() for name in found)
    (nodes,), (count,) = found["nodes"], found["count"]
    children = found["children"][:nodes]
    assert sorted(children[children >= 0]) == list(range(1, nodes))
    assert sorted(-2 - children[children < -1]) == list(range(count))
    assert ((children != -1).sum(axis=1) >= 1).all()
    parent, octant = np.nonzero(children >= 0)
    child = children[parent, octant]
    assert (found["level"][child] == found["level"][parent] + 1).all()
    shift = 30 - 3 * found["level"][child].astype(np.uint32)
    assert (found["corner"][child] == found["corner"][parent] | (octant.astype(np.uint32) << shift)).all()


def test_no_points_are_refused() -> None:
    with pytest.raises(InvalidModelError, match="sizes must be at least 1"):
        octree(0)


@pytest.mark.slow
def test_the_example_maps_heights() -> None:
    model = load_callable(f"{EXAMPLE}:HEIGHTS")
    assert model.network.layer_names[-2:] == ("octree", "heights")
    inputs = model.sample_inputs(1)
    heights = model.reference(inputs)["heights"]
    right = np.zeros_like(heights)
    for x, y, z in inputs["points"].tolist():
        square = int(x * 64), int(y * 64)
        right[square] = max(right[square], (int(z * 1024) + 1) / 1024)
    np.testing.assert_array_equal(heights, right)
    assert 0.3 < (heights > 0).mean() <= 1


SMALL = """
from gapless.profiler.applications.octree import octree
SMALL = octree(2_000)
"""


def test_a_core_and_an_emulated_gpu_build_it_together(tmp_path: Path) -> None:
    """Real worker processes, both sets of kernels; right outputs for each of many clouds."""
    (tmp_path / "small.py").write_text(SMALL)
    model = load_callable(f"{tmp_path}/small.py:SMALL")
    cores = usable_cores()
    units = (
        ProcessingUnit(name="cpu", kind=UnitKind.CPU, cores=(cores[0],), threads=1),
        ProcessingUnit(name="gpu", kind=UnitKind.GPU, cores=(cores[-1],), threads=1),
    )
    costs = NetworkCosts(network="octree", layer_us=((1, 1),) * 7)
    problem = Problem(
        platform=Platform(name="two", units=units),
        networks=(model.network,),
        costs=CostTable(units=("cpu", "gpu"), networks=(costs,)),
    )
    chunks = [Chunk(network="octree", start=0, stop=3, unit="cpu")]
    chunks += [Chunk(network="octree", start=3, stop=7, unit="gpu")]
    plan = Plan(chunks=tuple(chunks))
    clouds = [model.sample_inputs(seed) for seed in range(5)]
    with open_pipeline(problem, plan, model=model) as pipeline:
        for cloud, outputs in zip(clouds, pipeline.map(clouds), strict=True):
            check_outputs(cloud["points"], outputs)
