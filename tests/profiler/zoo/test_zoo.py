"""Built-in networks: size, work and operators as in the literature; built once and kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import onnx
import pytest

from benchmarks.network_counts import count, shapes_of
from gapless.executor.engines.cache import Cache
from gapless.formulations.errors import InvalidModelError
from gapless.profiler.zoo import catalog
from gapless.profiler.zoo.catalog import build, names_in_parts, outline, zoo_entry, zoo_names, zoo_path

SMALL = ("mobilenetv2", "squeezenet")


def encoder(depth: int) -> dict[str, int]:
    """Return the operators of a given number of encoder blocks."""
    return {
        "MatMul": depth * 8,
        "LayerNormalization": 2 * depth + 1,
        "Softmax": depth,
        "Erf": depth,
        "Transpose": depth * 4,
    }


WORDS = {"Gather": 3, "Slice": 1, "Gemm": 1, "Tanh": 1}
PATCHES = {"Conv": 1, "Concat": 1, "Gather": 1, "Gemm": 1}
OPERATORS = {
    "alexnet": {"Conv": 5, "Gemm": 3, "MaxPool": 3, "Relu": 7, "Flatten": 1},
    "arcface-mobilenet": {"Conv": 50, "BatchNormalization": 50, "PRelu": 33, "Add": 12},
    "arcface-resnet50": {"Conv": 53, "BatchNormalization": 79, "PRelu": 25, "Add": 24, "Gemm": 1},
    "bert": {**encoder(12), **WORDS},
    "bert-large": {**encoder(24), **WORDS},
    "bert-small": {**encoder(4), **WORDS},
    "deit-small": {**encoder(12), **PATCHES, "Transpose": 12 * 4 + 1},
    "deit-tiny": {**encoder(12), **PATCHES, "Transpose": 12 * 4 + 1},
    "efficientdet-lite0": {"Conv": 182, "BatchNormalization": 108, "Resize": 12, "MaxPool": 14, "Concat": 2},
    "efficientnet-lite1": {"Conv": 64, "BatchNormalization": 64, "Clip": 43, "Add": 14, "Gemm": 1},
    "efficientnet-lite2": {"Conv": 64, "BatchNormalization": 64, "Clip": 43, "Add": 14, "Gemm": 1},
    "efficientnet-lite3": {"Conv": 73, "BatchNormalization": 73, "Clip": 49, "Add": 17, "Gemm": 1},
    "fsrnet": {"Conv": 93, "ConvTranspose": 1, "Resize": 6, "MaxPool": 6, "BatchNormalization": 91},
    "googlenet": {"Conv": 57, "BatchNormalization": 57, "Concat": 9, "MaxPool": 13},
    "inceptionv3": {"Conv": 94, "BatchNormalization": 94, "Concat": 11, "MaxPool": 4, "AveragePool": 9},
    "inceptionv4": {"Conv": 149, "BatchNormalization": 149, "Concat": 19, "MaxPool": 4, "AveragePool": 14},
    "lstm-attention": {
        **encoder(4),
        "MatMul": 33,
        "Gather": 2,
        "LSTM": 4,
        "Transpose": 20,
        "LayerNormalization": 10,
    },
    "mobilenetv1": {"Conv": 27, "BatchNormalization": 27, "Relu": 27, "Gemm": 1},
    "mobilenetv2": {"Conv": 52, "BatchNormalization": 52, "Clip": 35, "Add": 10, "Gemm": 1},
    "mobilenetv3-large": {"Conv": 62, "BatchNormalization": 46, "HardSwish": 21, "HardSigmoid": 8, "Add": 10},
    "nasnet-large": {"Conv": 488, "AveragePool": 70, "MaxPool": 8, "Concat": 26, "Add": 110, "Gemm": 1},
    "nasnet-single": {"Conv": 158, "AveragePool": 25, "MaxPool": 8, "Concat": 11, "Add": 35, "Gemm": 1},
    "resnet18": {"Conv": 20, "BatchNormalization": 20, "Relu": 17, "Add": 8},
    "resnet34": {"Conv": 36, "BatchNormalization": 36, "Relu": 33, "Add": 16},
    "resnet50": {"Conv": 53, "BatchNormalization": 53, "Relu": 49, "Add": 16},
    "retinaface": {"Conv": 56, "BatchNormalization": 47, "LeakyRelu": 38, "Resize": 2, "Softmax": 1},
    "squeezenet": {"Conv": 26, "Relu": 26, "Concat": 8, "MaxPool": 3, "GlobalAveragePool": 1},
    "two-tower": {**encoder(4), "Conv": 52, "Clip": 35, "Gather": 3, "Gemm": 3, "ReduceL2": 2},
    "vgg16": {"Conv": 13, "Gemm": 3, "MaxPool": 5, "Relu": 15},
    "vit": {**encoder(12), **PATCHES, "Transpose": 12 * 4 + 1},
    "vit-huge": {**encoder(32), **PATCHES, "Transpose": 32 * 4 + 1},
    "vit-large": {**encoder(24), **PATCHES, "Transpose": 24 * 4 + 1},
    "yolov2": {"Conv": 23, "BatchNormalization": 22, "LeakyRelu": 22, "MaxPool": 5, "SpaceToDepth": 1},
    "yolov4": {
        "Conv": 110,
        "BatchNormalization": 107,
        "Softplus": 72,
        "LeakyRelu": 35,
        "Resize": 2,
        "Add": 23,
    },
}
"""Counts by hand, from the tables of the papers."""

OUTPUTS = {
    "arcface-mobilenet": {"embedding": (1, 128)},
    "arcface-resnet50": {"embedding": (1, 512)},
    "bert": {"last_hidden_state": (1, 128, 768), "pooler_output": (1, 768)},
    "bert-large": {"last_hidden_state": (1, 512, 1024), "pooler_output": (1, 1024)},
    "bert-small": {"last_hidden_state": (1, 128, 512), "pooler_output": (1, 512)},
    "efficientdet-lite0": {"classes": (1, 19_206, 90), "boxes": (1, 19_206, 4)},
    "fsrnet": {"face": (1, 3, 128, 128)},
    "lstm-attention": {"encoded": (1, 128, 256)},
    "two-tower": {"image_embedding": (1, 256), "text_embedding": (1, 256), "similarity": (1, 1)},
    "retinaface": {"scores": (1, 16_800, 2), "boxes": (1, 16_800, 4), "landmarks": (1, 16_800, 10)},
    "yolov2": {"boxes": (1, 425, 13, 13)},
    "yolov4": {"fine": (1, 255, 52, 52), "middle": (1, 255, 26, 26), "coarse": (1, 255, 13, 13)},
}
"""Of the networks that do not end in 1000 classes."""


@dataclass
class Outlined:
    name: str
    data: bytes

    @cached_property
    def model(self) -> onnx.ModelProto:
        return onnx.load_from_string(self.data)

    @cached_property
    def graph(self) -> onnx.GraphProto:
        return onnx.shape_inference.infer_shapes(self.model).graph


@pytest.fixture(scope="module", params=(*zoo_names(), *names_in_parts()))
def outlined(request: pytest.FixtureRequest) -> Outlined:
    return Outlined(request.param, outline(request.param))


@pytest.mark.slow
def test_size_and_work_are_those_of_the_literature(outlined: Outlined) -> None:
    entry = zoo_entry(outlined.name)
    counts = count(outlined.data, entry.inputs)
    assert counts.parameters == pytest.approx(entry.parameters, rel=0.01)
    assert counts.macs == pytest.approx(entry.macs, rel=0.02)
    assert (counts.convolutions, counts.products) == (entry.convolutions, entry.products)
    if entry.parameters % 1000:  # printed to the last digit
        assert counts.parameters == entry.parameters


@pytest.mark.slow
def test_operators_are_those_of_the_paper(outlined: Outlined) -> None:
    counts = Counter(node.op_type for node in outlined.graph.node)
    assert OPERATORS[outlined.name].items() <= counts.items()
    assert not {"Identity", "Constant"} & set(counts)
    names = [node.name for node in outlined.graph.node]
    assert len(set(names)) == len(names)
    assert [[name] for name in names] == [list(node.output) for node in outlined.graph.node]


@pytest.mark.slow
def test_files_are_valid_and_say_what_the_entry_says(outlined: Outlined) -> None:
    onnx.checker.check_model(outlined.model, full_check=True)
    shapes = shapes_of(outlined.graph)
    inputs = zoo_entry(outlined.name).inputs
    given = [value.name for value in outlined.graph.input][: len(inputs)]
    assert [(name, shapes[name]) for name in given] == [(spec.name, spec.shape) for spec in inputs]
    made = {value.name: shapes[value.name] for value in outlined.graph.output}
    assert made == OUTPUTS.get(outlined.name, {"logits": (1, 1000)})


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_network_is_its_outline_with_weights(name: str) -> None:
    bare, whole = (onnx.load_from_string(make(name)).graph for make in (outline, build))
    assert whole.node == bare.node
    assert [value.name for value in whole.input] == [spec.name for spec in zoo_entry(name).inputs]
    weights = {value.name for value in bare.input} | {tensor.name for tensor in bare.initializer}
    assert {value.name for value in whole.input} | {t.name for t in whole.initializer} == weights
    wanted = shapes_of(bare)
    assert all(tuple(tensor.dims) == wanted[tensor.name] for tensor in whole.initializer)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_two_builds_give_the_same_bytes(name: str) -> None:
    assert build(name) == build(name)


@pytest.mark.slow
def test_networks_have_weights_of_their_own() -> None:
    first, second = [
        onnx.numpy_helper.to_array(tensor)
        for name in ("mobilenetv1", "mobilenetv2")
        for tensor in onnx.load_from_string(build(name)).graph.initializer
        if tensor.name == "stem.weight"
    ]
    assert first.shape == second.shape
    assert (first != second).any()


def test_a_file_is_built_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "default_cache", lambda: Cache(tmp_path))
    path = zoo_path("squeezenet")
    assert path.suffix == ".onnx"
    assert path.read_bytes() == build("squeezenet")
    monkeypatch.setattr(catalog, "build", lambda name: pytest.fail("built twice"))
    assert zoo_path("squeezenet") == path


def test_new_code_makes_a_new_file(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {catalog.digest_of(name) for name in zoo_names()}
    assert len(keys) == len(zoo_names())
    monkeypatch.setattr(Path, "read_bytes", lambda path: b"other code")
    assert catalog.digest_of("alexnet") not in keys


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("mobilnet_v2", "did you mean mobilenetv2"),
        ("ResNet50", "did you mean resnet50"),
        ("x" * 300, "`gapless list networks` lists them"),
    ],
)
def test_unknown_names_are_refused_with_near_ones(name: str, hint: str) -> None:
    with pytest.raises(InvalidModelError, match=hint) as caught:
        zoo_path(name)
    assert len(str(caught.value)) < 400


def test_a_missing_builder_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ModuleNotFoundError("No module named 'spox'", name="spox")

    monkeypatch.setattr(catalog, "_builders", missing)
    with pytest.raises(InvalidModelError, match=r"spox is not installed.*gapless\[zoo\]"):
        build("squeezenet")
