"""The small AlexNets: four kernels against a window at a time, shapes against the shipped tables."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gapless import Chunk, Plan, open_model, open_pipeline
from gapless.api.problems import load_problem
from gapless.executor.callable_layers import CallableModel
from gapless.executor.machine.cores import usable_cores
from gapless.executor.model import tolerance
from gapless.formulations.costs import CostTable, NetworkCosts
from gapless.formulations.errors import InvalidInputError, InvalidModelError
from gapless.formulations.hardware import Platform, ProcessingUnit, UnitKind
from gapless.formulations.problem import Problem
from gapless.profiler.applications.alexnet import dense_alexnet, max_pool, sparse_alexnet
from gapless.profiler.applications.convolutions import (
    GatheredRows,
    MatrixProduct,
    ShiftedSum,
    SparseProduct,
    SparseRows,
    pruned,
)
from tests.numbers import relative_error

Array = NDArray[Any]


def naive(weights: Array, biases: Array, images: Array) -> Array:
    """Convolve and rectify, one window at a time."""
    count, _, height, width = images.shape
    edged = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    found = np.empty((count, len(weights), height, width))
    for image, y, x in product(range(count), range(height), range(width)):
        window = edged[image, :, y : y + 3, x : x + 3]
        found[image, :, y, x] = (weights * window).sum(axis=(1, 2, 3)) + biases
    return np.maximum(found, 0)


def unpruned(rows: SparseRows, shape: tuple[int, ...]) -> Array:
    """Return a matrix with zeros for what is not in its sparse rows."""
    matrix = np.zeros(rows.shape, dtype=np.float32)
    for row in range(len(matrix)):
        inside = slice(rows.starts[row], rows.starts[row + 1])
        matrix[row, rows.columns[inside]] = rows.values[inside]
    return matrix.reshape(shape)


@settings(max_examples=30)
@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 5),
    density=st.floats(0.01, 1),
    seed=st.integers(0, 1000),
)
def test_convolutions_are_right(sizes: tuple[int, ...], density: float, seed: int) -> None:
    filters, channels, count, height, width = sizes
    random = np.random.default_rng(seed)
    weights = random.normal(size=(filters, channels, 3, 3)).astype(np.float32)
    biases = random.normal(size=filters).astype(np.float32)
    images = random.normal(size=(count, channels, height, width)).astype(np.float32)
    rows = pruned(weights, density)
    left = unpruned(rows, weights.shape)
    for kernel, used in (
        (MatrixProduct(weights=weights, biases=biases), weights),
        (ShiftedSum(weights=weights, biases=biases), weights),
        (SparseProduct(rows=rows, biases=biases), left),
        (GatheredRows(rows=rows, biases=biases), left),
    ):
        found = kernel(images)
        assert found.dtype.name == "float32"
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, naive(used, biases, images), atol=1e-4, rtol=1e-4)


@settings(max_examples=30)
@given(filters=st.integers(1, 6), channels=st.integers(1, 6), density=st.floats(0.001, 1))
def test_pruning_keeps_the_largest_of_each_filter(filters: int, channels: int, density: float) -> None:
    weights = np.random.default_rng(0).normal(size=(filters, channels, 3, 3))
    left = unpruned(pruned(weights, density), (filters, -1))
    kept = np.count_nonzero(left, axis=1)
    assert (kept == np.ceil(density * 9 * channels)).all()
    for filtered, before in zip(left, weights.reshape(filters, -1), strict=True):
        np.testing.assert_allclose(filtered[filtered != 0], before[filtered != 0], rtol=1e-6)
        dropped = np.abs(before[filtered == 0])
        assert dropped.max(initial=0) <= np.abs(before[filtered != 0]).min()


@pytest.mark.parametrize("density", [0, -0.5, 1.01, float("nan")])
def test_impossible_densities_are_refused(density: float) -> None:
    with pytest.raises(InvalidInputError, match="above 0 and at most 1"):
        sparse_alexnet(1, density=density)


def test_no_images_are_refused() -> None:
    with pytest.raises(InvalidModelError, match="sizes must be at least 1"):
        dense_alexnet(0)


def test_pooling_takes_the_largest_of_four() -> None:
    images = np.random.default_rng(0).normal(size=(2, 3, 4, 6))
    found = max_pool(images)
    assert found.shape == (2, 3, 2, 3)
    for y, x in product(range(2), range(3)):
        window = images[:, :, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        np.testing.assert_array_equal(found[:, :, y, x], window.max(axis=(2, 3)))


def outputs_of(model: CallableModel, kind: str, images: Array) -> list[Array]:
    """Run all layers by their functions for a kind of unit, and return what each of them gave."""
    found = [images]
    for layer in model.functions():
        key = layer.variant_for(kind)
        assert key is not None
        found.append(layer.variants[key](found[-1]))
    return found


@pytest.mark.parametrize("build", [dense_alexnet, sparse_alexnet])
def test_both_kinds_of_kernels_classify_alike(build: Any) -> None:
    images = np.random.default_rng(1).random((3, 3, 32, 32), dtype=np.float32)
    cpu, gpu = (outputs_of(build(3), kind, images) for kind in ("cpu", "gpu"))
    for one, other in zip(cpu, gpu, strict=True):
        assert relative_error(other, one) < 1e-5
    assert cpu[-1].shape == (3, 10)
    np.testing.assert_allclose(cpu[-1].sum(axis=1), 1, rtol=1e-5)
    assert cpu[-1].max() < 0.999  # images still count
    assert np.ptp(cpu[-1], axis=0).max() > 1e-4
    again, other = outputs_of(build(3), "cpu", images)[-1], outputs_of(build(3, seed=1), "cpu", images)[-1]
    np.testing.assert_array_equal(again, cpu[-1])
    assert (other != cpu[-1]).any()


def test_layers_and_tensors_are_those_of_the_shipped_network() -> None:
    network = open_model("cifar-alexnet-dense").network
    shipped = load_problem("pixel7a/alexnet-dense").network
    assert network.layer_names == shipped.layer_names
    assert network.boundary_bytes == shipped.boundary_bytes


@pytest.mark.slow
def test_workers_open_an_application_by_its_module() -> None:
    model = open_model("cifar-alexnet-sparse")
    cores = usable_cores()
    units = (
        ProcessingUnit(name="cpu", kind=UnitKind.CPU, cores=(cores[0],), threads=1),
        ProcessingUnit(name="gpu", kind=UnitKind.GPU, cores=(cores[-1],), threads=1),
    )
    name = model.network.name
    costs = NetworkCosts(network=name, layer_us=((1, 1),) * 9)
    problem = Problem(
        platform=Platform(name="two", units=units),
        networks=(model.network,),
        costs=CostTable(units=("cpu", "gpu"), networks=(costs,)),
    )
    chunks = (
        Chunk(network=name, start=0, stop=4, unit="gpu"),
        Chunk(network=name, start=4, stop=9, unit="cpu"),
    )
    batches = [model.sample_inputs(seed) for seed in range(3)]
    with open_pipeline(problem, Plan(chunks=chunks)) as pipeline:  # finds the model by its locator
        for batch, outputs in zip(batches, pipeline.map(batches), strict=True):
            right = model.reference(batch)
            assert relative_error(outputs["fc"], right["fc"]) <= tolerance("high")
