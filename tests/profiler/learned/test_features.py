from __future__ import annotations

from pathlib import Path

import pytest

import gapless
from gapless.formulations.errors import InvalidInputError
from gapless.formulations.network import Layer, Network
from gapless.profiler.learned.features import (
    KINDS,
    NUMBERS,
    TABLE_NUMBERS,
    TABLE_TYPES,
    NetworkFeatures,
    features_of,
    table_features,
    work_alone,
)
from tests.profiler.learned.samples import CHANNELS, branching_model, random_features


@pytest.fixture
def found(tmp_path: Path) -> dict[str, dict[str, int]]:
    """Return the numbers of each layer by the kind of its main operator."""
    model = gapless.open_model(branching_model(tmp_path / "m.onnx"), granularity="operator")
    features = features_of(model)
    return {
        KINDS[kind]: dict(zip(NUMBERS, row, strict=True))
        for kind, row in zip(features.kinds, features.numbers, strict=True)
    }


def test_work_is_counted_by_kind(found: dict[str, dict[str, int]]) -> None:
    stem = CHANNELS * 16 * 16 * 3 * 9
    assert found["convolution"]["convolution_macs"] == found["convolution"]["macs"] == stem
    assert found["depthwise"]["depthwise_macs"] == CHANNELS * 8 * 8 * 9
    assert found["depthwise"]["convolution_macs"] == 0
    assert found["linear"]["product_macs"] == CHANNELS * 64 * 10
    assert found["softmax"]["light_bytes"] == 2 * 4 * 10


def test_shapes_are_those_of_table_1(found: dict[str, dict[str, int]]) -> None:
    deep = found["depthwise"]
    sizes = [deep[name] for name in ("input_size", "input_channels", "output_size", "output_channels")]
    assert sizes == [256, CHANNELS, 64, CHANNELS]
    assert (deep["kernel_size"], deep["stride"], deep["groups"]) == (9, 4, CHANNELS)
    assert deep["parameters"] == CHANNELS * 9


def test_position_tells_branches_apart(found: dict[str, dict[str, int]]) -> None:
    assert (found["convolution"]["depth"], found["convolution"]["index"]) == (0, 0)
    assert {found["depthwise"]["depth"], found["max_pool"]["depth"]} == {1}
    assert found["softmax"]["index"] > found["softmax"]["parent_index"]


def test_table_1_sees_five_types_and_eleven_numbers(tmp_path: Path) -> None:
    features = features_of(gapless.open_model(branching_model(tmp_path / "m.onnx"), granularity="operator"))
    literal = features.inputs(extended=False)
    assert literal.shape[1] == len(TABLE_TYPES) + len(TABLE_NUMBERS) == 16
    typed = {KINDS[kind]: row[:5].sum() for kind, row in zip(features.kinds, literal, strict=True)}
    assert (typed["softmax"], typed["depthwise"]) == (0, 1)
    assert features.inputs().shape[1] > 3 * literal.shape[1]


@pytest.mark.slow
def test_tables_without_weights_have_features() -> None:
    network, features = table_features("vit-large")
    assert len(features.kinds) == len(network.layers)
    assert sum(features.macs) == pytest.approx(61_550_000_000, rel=0.02)


def test_of_plain_tables_only_work_is_known() -> None:
    network = Network(name="n", layers=(Layer(name="a", flops=200), Layer(name="b", flops=0)))
    assert work_alone(network).macs == (100, 0)
    with pytest.raises(InvalidInputError, match="'a' has is not known"):
        work_alone(Network(name="n", layers=(Layer(name="a"),)))


def test_models_that_are_no_onnx_files_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"is no ONNX model.*gapless profile"):
        features_of(gapless.open_model("cifar-alexnet-sparse"))


def test_features_of_another_version_are_refused() -> None:
    good = random_features("n", 3, 0)
    with pytest.raises(InvalidInputError, match="other features than this version's"):
        NetworkFeatures(network="n", kinds=good.kinds, counts=good.counts, numbers=((1, 2),) * 3)
