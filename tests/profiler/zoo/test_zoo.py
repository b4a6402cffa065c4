"""Built-in networks: size and work as in the literature, numbers that mean something."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from gapless.executor.engines.cache import Cache
from gapless.executor.engines.ort_session import run_once
from gapless.executor.model import relative_error
from gapless.formulations.errors import InvalidModelError
from gapless.profiler.zoo import catalog
from gapless.profiler.zoo.catalog import build, zoo_entry, zoo_names, zoo_path

SMALL = ("mobilenetv1", "mobilenetv2", "squeezenet", "googlenet")
OPERATORS = {
    "alexnet": {"Conv": 5, "Gemm": 3, "MaxPool": 3, "Relu": 7, "Flatten": 1},
    "googlenet": {"Conv": 57, "BatchNormalization": 57, "Concat": 9, "MaxPool": 13},
    "mobilenetv1": {"Conv": 27, "BatchNormalization": 27, "Relu": 27, "Gemm": 1},
    "mobilenetv2": {"Conv": 52, "BatchNormalization": 52, "Clip": 35, "Add": 10, "Gemm": 1},
    "resnet18": {"Conv": 20, "BatchNormalization": 20, "Relu": 17, "Add": 8},
    "resnet50": {"Conv": 53, "BatchNormalization": 53, "Relu": 49, "Add": 16},
    "squeezenet": {"Conv": 26, "Relu": 26, "Concat": 8, "MaxPool": 3, "GlobalAveragePool": 1},
}
"""Counts by hand, from the tables of the papers."""


@dataclass
class Built:
    name: str
    model: onnx.ModelProto

    @cached_property
    def graph(self) -> onnx.GraphProto:
        return onnx.shape_inference.infer_shapes(self.model).graph


@pytest.fixture(scope="module", params=zoo_names())
def built(request: pytest.FixtureRequest) -> Built:
    return Built(request.param, onnx.load_from_string(build(request.param)))


def shapes_of(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    found = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        found[value.name] = tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
    return found


def parameters_of(graph: onnx.GraphProto) -> int:
    """Count weights and biases, without what a normalisation has counted and clips compare with."""
    shapes = shapes_of(graph)
    trained = {
        name
        for node in graph.node
        if node.op_type in ("Conv", "Gemm", "BatchNormalization")
        for name in node.input[1:3]
    }
    return sum(prod(shapes[name]) for name in trained)


def macs_of(graph: onnx.GraphProto) -> int:
    """Count multiplications with addition: one for each output value and each weight of its filter."""
    shapes = shapes_of(graph)
    return sum(
        prod(shapes[node.output[0]]) * prod(shapes[node.input[1]][1:])
        for node in graph.node
        if node.op_type in ("Conv", "Gemm")
    )


def image(seed: int) -> dict[str, NDArray[np.float32]]:
    pixels = np.random.default_rng(seed).random((1, 3, 224, 224), dtype=np.float32)
    return {"image": pixels}


def test_size_and_work_are_those_of_the_literature(built: Built) -> None:
    entry, found = zoo_entry(built.name), parameters_of(built.graph)
    assert found == pytest.approx(entry.parameters, rel=0.01)
    assert macs_of(built.graph) == pytest.approx(entry.macs, rel=0.02)
    if "torchvision" in entry.source:
        assert found == entry.parameters


def test_operators_are_those_of_the_paper(built: Built) -> None:
    counts = Counter(node.op_type for node in built.graph.node)
    assert OPERATORS[built.name].items() <= counts.items()
    assert not {"Identity", "Constant"} & set(counts)
    names = [node.name for node in built.graph.node]
    assert len(set(names)) == len(names)
    assert [[name] for name in names] == [list(node.output) for node in built.graph.node]


def test_files_are_valid_and_say_what_the_entry_says(built: Built) -> None:
    onnx.checker.check_model(built.model, full_check=True)
    (given,), (made,) = built.graph.input, built.graph.output
    shapes = shapes_of(built.graph)
    (spec,) = zoo_entry(built.name).inputs
    assert (given.name, shapes[given.name]) == (spec.name, spec.shape)
    assert (made.name, shapes[made.name]) == ("logits", (1, 1000))


@pytest.mark.parametrize("name", SMALL)
def test_numbers_are_finite_and_depend_on_the_image(name: str) -> None:
    data = build(name)
    one, two = (run_once(data, image(seed))["logits"] for seed in (1, 2))
    assert np.isfinite(one).all()
    assert 0.02 < one.std() < 10
    assert relative_error(two, one) > 0.05
    np.testing.assert_array_equal(one, run_once(data, image(1))["logits"])


@pytest.mark.parametrize("name", ["mobilenetv2", "squeezenet"])
def test_activations_stay_of_order_one_through_the_whole_depth(name: str) -> None:
    model = onnx.load_from_string(build(name))
    inferred = onnx.shape_inference.infer_shapes(model)
    model.graph.output.extend(inferred.graph.value_info)
    for tensor, values in run_once(model.SerializeToString(), image(3)).items():
        if len(values.shape) == 4 and values.shape[2] > 1:
            assert 0.1 < values.std() < 3, tensor
            assert np.abs(values).max() < 30, tensor


@pytest.mark.parametrize("name", SMALL)
def test_small_errors_stay_small(name: str) -> None:
    data, exact = build(name), image(4)["image"]
    noise = np.random.default_rng(5).normal(0, 1e-4, exact.shape).astype(np.float32)
    right, found = (run_once(data, {"image": pixels})["logits"] for pixels in (exact, exact + noise))
    assert relative_error(found, right) < 50 * 1e-4


@pytest.mark.parametrize("name", SMALL)
def test_two_builds_give_the_same_bytes(name: str) -> None:
    assert build(name) == build(name)


def test_networks_have_weights_of_their_own() -> None:
    first, second = [
        onnx.numpy_helper.to_array(tensor)
        for name in ("mobilenetv1", "mobilenetv2")
        for tensor in onnx.load_from_string(build(name)).graph.initializer
        if tensor.name == "stem.weight"
    ]
    assert first.shape == second.shape
    assert not np.array_equal(first, second)


def test_a_file_is_built_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "default_cache", lambda: Cache(tmp_path))
    path = zoo_path("squeezenet")
    assert path.suffix == ".onnx"
    assert path.read_bytes() == build("squeezenet")
    monkeypatch.setattr(catalog, "build", lambda name: pytest.fail("built twice"))
    assert zoo_path("squeezenet") == path


def test_new_code_makes_a_new_file(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {catalog._key(zoo_entry(name)) for name in zoo_names()}
    assert len(keys) == len(zoo_names())
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other code")
    assert catalog._key(zoo_entry("alexnet")) not in keys


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mobilnet_v2", "did you mean mobilenetv2"),
        ("ResNet50", "did you mean resnet50"),
        ("x" * 300, "choose"),
    ],
)
def test_unknown_names_are_refused_with_near_ones(name: str, hint: str) -> None:
    with pytest.raises(InvalidModelError, match=hint) as caught:
        zoo_path(name)
    assert len(str(caught.value)) < 300


def test_a_missing_builder_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, package: str) -> None:
        raise ModuleNotFoundError("No module named 'spox'", name="spox")

    monkeypatch.setattr(catalog, "import_module", missing)
    with pytest.raises(InvalidModelError, match=r"spox is not installed.*gapless\[zoo\]"):
        build("squeezenet")
