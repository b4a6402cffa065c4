"""Numbers of the built-in networks: they mean something, and engines agree on them."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cache, lru_cache
from math import erf
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from spox import Var

from gapless.executor.engines.mnn_engine import MnnEngine
from gapless.executor.engines.ort_session import reference_outputs
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.model import TensorSpec, allowed_of, references
from gapless.formulations.hardware import Precision, ProcessingUnit, UnitKind
from gapless.profiler.zoo import efficientnet, faces, transformers, yolo
from gapless.profiler.zoo.blocks import Activation, Blocks, Outputs
from gapless.profiler.zoo.catalog import build, zoo_entry
from tests.numbers import relative_error

Array = NDArray[Any]

SMALL = ("googlenet", "mobilenetv1", "mobilenetv2", "mobilenetv3-large", "squeezenet")
UNIT = ProcessingUnit(name="cpu", kind=UnitKind.CPU, threads=1)
IMAGE = (TensorSpec(name="image", shape=(1, 3, 224, 224)),)
TOKENS = tuple(
    TensorSpec(name=name, shape=(1, 16), dtype="int64") for name in ("input_ids", "token_type_ids")
)

small = cache(build)


@lru_cache(maxsize=2)
def opened(data: bytes) -> OnnxModel:
    """Return a network: each is simplified once, which takes longer than to run it."""
    with NamedTemporaryFile(suffix=".onnx", delete=False) as file:
        atexit.register(os.unlink, file.name)  # what it computes is compared with its file
        file.write(data)
    return load_onnx(file.name, name="network")


def image(seed: int) -> dict[str, Array]:
    return {"image": np.random.default_rng(seed).random((1, 3, 224, 224), dtype=np.float32)}


def mnn_outputs(data: bytes, folder: Path, unit: ProcessingUnit = UNIT) -> tuple[OnnxModel, dict[str, Array]]:
    """Return a whole network, and what MNN makes of its first sample inputs."""
    model = opened(data)
    inputs = model.sample_inputs(1)
    engine = MnnEngine()
    (artifact,) = engine.prepare(model.pieces(0, len(model.network.layers)), folder=folder)
    found = [spec.empty() for spec in artifact.outputs]
    with closing(engine.open(artifact, unit)) as session:
        session.copy_in([inputs[spec.name] for spec in artifact.inputs])
        session.run()
        session.copy_out(found)
    return model, {spec.name: array for spec, array in zip(artifact.outputs, found, strict=True)}


def mnn_error(data: bytes, folder: Path) -> float:
    """Return how far MNN is from ONNX Runtime, for a whole network, on its sample inputs."""
    model, found = mnn_outputs(data, folder)
    right = model.reference(model.sample_inputs(1))
    assert set(found) == set(right)
    return max(relative_error(array, right[name]) for name, array in found.items())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "mobilenetv2", "mobilenetv3-large", "googlenet", "two-tower"])
def test_mnn_and_onnx_runtime_agree(name: str, tmp_path: Path) -> None:
    assert mnn_error(small(name), tmp_path) < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squeezenet", "two-tower"])
@pytest.mark.parametrize("precision", [Precision.HIGH, Precision.NORMAL])
def test_no_block_is_seen_that_an_engine_may_be_wrong_about(
    name: str, precision: Precision, tmp_path: Path
) -> None:
    """Scales of positions, runs and turns give no false alarm on floats."""
    unit = replace(UNIT, engine=replace(UNIT.engine, precision=precision))
    model, found = mnn_outputs(small(name), tmp_path, unit)
    allowed, right = allowed_of(model.network, [precision]), references(model, (1, 2, 3))
    for output, array in found.items():
        difference = right[output].compare(array, 0, allowed)
        assert difference.agrees, difference.said_of(output)


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_numbers_are_finite_and_depend_on_the_image(name: str) -> None:
    one, two = (reference_outputs(small(name), image(seed))["logits"] for seed in (1, 2))
    assert np.isfinite(one).all()
    assert 0.02 < one.std() < 10
    assert relative_error(two, one) > 0.05
    np.testing.assert_array_equal(one, reference_outputs(small(name), image(1))["logits"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mobilenetv2", "squeezenet"])
def test_activations_stay_of_order_one_through_the_whole_depth(name: str) -> None:
    model = onnx.load_from_string(small(name))
    inferred = onnx.shape_inference.infer_shapes(model)
    model.graph.output.extend(inferred.graph.value_info)
    for tensor, values in reference_outputs(model.SerializeToString(), image(3)).items():
        if len(values.shape) == 4 and values.shape[2] > 1:
            assert 0.1 < values.std() < 3, tensor
            assert np.abs(values).max() < 30, tensor


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arcface-mobilenet", "retinaface"])
def test_faces_that_differ_give_other_numbers(name: str) -> None:
    size = zoo_entry(name).inputs[0].shape
    images = [np.random.default_rng(seed).random(size, dtype=np.float32) for seed in (1, 2)]
    first, second = (reference_outputs(build(name), {"image": pixels}) for pixels in images)
    for output, values in first.items():
        assert np.isfinite(values).all()
        assert 0.02 < values.std() < 10, output
        assert relative_error(second[output], values) > 0.05, output


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two-tower", "lstm-attention"])
def test_every_branch_changes_what_it_should(name: str) -> None:
    random = np.random.default_rng(7)
    first, second = (
        {
            spec.name: random.random(spec.shape, np.float32)
            if spec.dtype == "float32"
            else random.integers(0, 2, spec.shape)
            for spec in zoo_entry(name).inputs
        }
        for _ in range(2)
    )
    data = build(name)
    right = reference_outputs(data, first)
    for source, outputs in BRANCHES[name].items():
        changed = reference_outputs(data, {**first, source: second[source]})
        for output, values in right.items():
            if output in outputs:
                assert relative_error(changed[output], values) > 0.05, (source, output)
            else:
                np.testing.assert_array_equal(changed[output], values)


BRANCHES = {
    "two-tower": {
        "image": {"image_embedding", "similarity"},
        "input_ids": {"text_embedding", "similarity"},
    },
    "lstm-attention": {"input_ids": {"encoded"}},
}
"""Inputs, and the outputs that depend on them."""


@pytest.mark.slow
def test_lstm_and_attention_both_reach_the_output() -> None:
    model = onnx.load_from_string(build("lstm-attention"))
    inputs = {
        spec.name: np.random.default_rng(8).integers(0, 2, spec.shape)
        for spec in zoo_entry("lstm-attention").inputs
    }
    right = reference_outputs(model.SerializeToString(), inputs)["encoded"]
    for name in ("lstm1.input", "lstm4.state", "attention.block1.expand.weight"):
        other = onnx.ModelProto()
        other.CopyFrom(model)
        (weight,) = (tensor for tensor in other.graph.initializer if tensor.name == name)
        weight.CopyFrom(onnx.numpy_helper.from_array(-onnx.numpy_helper.to_array(weight), name))
        found = reference_outputs(other.SerializeToString(), inputs)["encoded"]
        assert relative_error(found, right) > 0.01, name


@pytest.mark.slow
def test_engines_agree_on_a_thin_fsrnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faces, "WIDTH", 16)
    monkeypatch.setattr(faces, "PRIOR", 16)
    assert mnn_error(small_images(faces.fsrnet), tmp_path) < 5e-4


@pytest.mark.slow
def test_engines_agree_on_a_detector_with_one_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficientnet, "CELLS", 1)
    assert mnn_error(small_images(efficientnet.efficientdet_lite0), tmp_path) < 5e-4


def small_images(builder: Callable[[Blocks, Var], Outputs]) -> bytes:
    net = Blocks("small", (TensorSpec(name="image", shape=(1, 3, 32, 32)),))
    return net.serialise(builder(net, net.inputs["image"]))


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_small_errors_stay_small(name: str) -> None:
    exact = image(4)["image"]
    noise = np.random.default_rng(5).normal(0, 1e-4, exact.shape).astype(np.float32)
    right, found = (
        reference_outputs(small(name), {"image": pixels})["logits"] for pixels in (exact, exact + noise)
    )
    assert relative_error(found, right) < 50 * 1e-4


@pytest.fixture
def few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the transformers small: one block, few words."""
    base = replace(transformers.BASE, depth=1)
    for name, value in (("BASE", base), ("VOCABULARY", 40), ("POSITIONS", 20)):
        monkeypatch.setattr(transformers, name, value)


@pytest.mark.slow
@pytest.mark.usefixtures("few_words")
def test_bert_computes_what_the_paper_says(tmp_path: Path) -> None:
    net = Blocks("bert-of-one-block", TOKENS)
    data = net.serialise(transformers.bert(net, *net.inputs.values(), size=transformers.BASE))
    random = np.random.default_rng(6)
    inputs = {"input_ids": random.integers(0, 40, (1, 16)), "token_type_ids": random.integers(0, 2, (1, 16))}
    weights = {
        tensor.name: onnx.numpy_helper.to_array(tensor).astype(np.float64)
        for tensor in onnx.load_from_string(data).graph.initializer
    }
    hidden = bert_by_hand(weights, inputs)
    pooled = np.tanh(hidden[0] @ weights["pooler.weight"].T + weights["pooler.bias"])
    found = reference_outputs(data, inputs)
    np.testing.assert_allclose(found["last_hidden_state"][0], hidden, atol=1e-4)
    np.testing.assert_allclose(found["pooler_output"][0], pooled, atol=1e-4)
    assert 0.5 < hidden.std() < 2
    assert mnn_error(data, tmp_path) < 5e-4


def bert_by_hand(weights: Mapping[str, Array], inputs: Mapping[str, Array]) -> Array:
    """Return what one block makes of a text: Devlin et al. 2018, Vaswani et al. 2017."""

    def dense(x: Array, name: str) -> Array:
        return x @ weights[f"block1.{name}.weight"] + weights[f"block1.{name}.bias"]

    def norm(x: Array, name: str) -> Array:
        scaled = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        normed: Array = scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return normed

    x = weights["embed.word.weight"][inputs["input_ids"][0]]
    x = x + weights["embed.segment.weight"][inputs["token_type_ids"][0]]
    x = norm(x + weights["embed.position.weight"][:16], "embed.norm")
    mixed = []
    for head in range(12):
        query, key, value = (
            dense(x, f"attention.{part}")[:, 64 * head : 64 * (head + 1)]
            for part in ("query", "key", "value")
        )
        shares = np.exp(query @ key.T / 8)
        mixed.append(shares / shares.sum(-1, keepdims=True) @ value)
    x = norm(x + dense(np.hstack(mixed), "attention.output"), "block1.norm1")
    y = dense(x, "expand")
    gelu = y * (1 + np.vectorize(erf)(y / np.sqrt(2))) / 2
    return norm(x + dense(gelu, "project"), "block1.norm2")


@pytest.mark.slow
@pytest.mark.usefixtures("few_words")
def test_vit_depends_on_every_patch_and_engines_agree(tmp_path: Path) -> None:
    net = Blocks("smallest-vit", IMAGE)
    data = net.serialise(transformers.vit(net, *net.inputs.values(), size=transformers.TINY))
    pixels = image(7)["image"]
    right = reference_outputs(data, {"image": pixels})["logits"]
    assert 0.1 < right.std() < 10
    for row, column in ((0, 0), (0, 13), (13, 0), (13, 13)):
        other = pixels.copy()
        other[..., 16 * row, 16 * column] += 1
        assert relative_error(reference_outputs(data, {"image": other})["logits"], right) > 1e-4
    assert mnn_error(data, tmp_path) < 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("build_part", [yolo.yolo_v2, yolo.yolo_v4], ids=lambda build: build.__name__)
def test_engines_agree_on_thin_yolo(
    build_part: Callable[[Blocks, Var], Outputs], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Blocks.conv_bn

    def thin(self: Blocks, x: Var, name: str, channels: int, *shape: Any, **more: Any) -> Var:
        return whole(self, x, name, max(4, channels // 16), *shape, **more)

    monkeypatch.setattr(Blocks, "conv_bn", thin)
    shallow = tuple((channels, part, 1) for channels, part, _ in yolo.CSP_DARKNET53)
    monkeypatch.setattr(yolo, "CSP_DARKNET53", shallow)
    net = Blocks("thin", (TensorSpec(name="image", shape=(1, 3, 64, 64)),))
    data = net.serialise(build_part(net, net.inputs["image"]))
    assert mnn_error(data, tmp_path) < 5e-4


def test_inner_values_of_activations() -> None:
    formulas = {
        "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
        "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
        "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "relu6": lambda x: np.clip(x, 0, 6),
    }
    x = np.linspace(-8, 8, 64, dtype=np.float32).reshape(1, 1, 8, 8)
    kinds: tuple[Activation, ...] = ("leaky", "mish", "hard_swish", "relu6")
    net = Blocks("activations", (TensorSpec(name="x", shape=x.shape),))
    outputs: dict[str, Var] = {kind: net.activation(net.inputs["x"], "x", kind) for kind in kinds}
    for kind, values in reference_outputs(net.serialise(outputs), {"x": x}).items():
        np.testing.assert_allclose(values, formulas[kind](x.astype(np.float64)), atol=1e-5)
