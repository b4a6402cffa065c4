from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from benchmarks.foreign import quantised
from benchmarks.foreign.checks import sliced
from gapless.executor.graph.grouping import CHANNELS_LAST
from gapless.executor.graph.onnx_model import OnnxModel, load_onnx
from gapless.executor.model import QUANTISED_ERROR, allowed_error, is_quantised

pytestmark = pytest.mark.slow


def load_saved(proto: ModelProto, folder: Path) -> OnnxModel:
    path = folder / "model.onnx"
    onnx.save(proto, path)
    return load_onnx(path)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> OnnxModel:
    return load_saved(quantised.trained_with_pairs(), tmp_path_factory.mktemp("int8"))


def test_each_convolution_is_a_layer(pairs: OnnxModel) -> None:
    layers = pairs.network.layers
    assert sum("Conv" in layer.op_types for layer in layers) == 7
    assert len(layers) == 8


def test_bytes_cross_every_cut_with_the_channels_last(pairs: OnnxModel) -> None:
    for cut in pairs.network.legal_cuts:
        (piece,) = pairs.pieces(cut, len(pairs.network.layers))
        assert {spec.dtype for spec in piece.inputs} == {"int8"}
        assert all(CHANNELS_LAST in spec.name for spec in piece.inputs)
        assert {spec.shape[1:3] for spec in piece.inputs} == {(32, 32)}


def test_pieces_compute_what_the_file_does(pairs: OnnxModel) -> None:
    found = sliced(pairs)
    assert found.worst <= found.allowed == QUANTISED_ERROR


def test_operators_on_integers_are_cut_alike(tmp_path: Path) -> None:
    found = load_saved(quantised.static_with_operators(), tmp_path)
    assert is_quantised(found.network)
    assert sliced(found).worst <= allowed_error(found.network, ["high"])
