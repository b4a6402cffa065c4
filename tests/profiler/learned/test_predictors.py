from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from gapless.executor.engines.ort_engine import OrtEngine
from gapless.formulations.availability import Availability
from gapless.formulations.errors import EngineUnavailableError, InvalidInputError
from gapless.profiler.learned.examples import dataset_of
from gapless.profiler.learned.measuring import YARDSTICKS
from gapless.profiler.learned.predictors import TRAINED, Nearest, PredictionMethod, Predictor
from gapless.profiler.learned.training import errors_of, folds, rows_of
from tests.profiler.learned.samples import device, random_features

MORE = (2.0, 1.0, 0.5, 1.0)
"""Factors by kind of layer that no regression on sums can express."""


@pytest.mark.parametrize("method", PredictionMethod)
def test_the_shipped_predictor_gives_times_that_scale_with_the_device(method: PredictionMethod) -> None:
    embedding = device({"core0": 1.0}).embedding("core0")
    slower = replace(
        embedding,
        weights=tuple(4 * weight for weight in embedding.weights),
        macs_weight=4 * embedding.macs_weight,
    )
    features, embeddings = random_features("new", 20, 77), [embedding, slower]
    fast, slow = Predictor().layer_us(features, embeddings, method)
    assert np.isfinite(fast).all()
    assert (fast >= 0).all()
    assert fast.sum() > 0
    assert slow.sum() / fast.sum() == pytest.approx(4.0, rel=0.05)


def test_the_default_is_what_the_card_says() -> None:
    described = device({"core0": 1.0})
    features, predictor = random_features("new", 9, 5), Predictor()
    embeddings = [described.embedding("core0")]
    chosen = predictor.layer_us(features, embeddings, predictor.card.default)
    assert (predictor.layer_us(features, embeddings) == chosen).all()


def test_what_is_shipped_is_small_and_judged_on_what_it_did_not_know() -> None:
    shipped = files("gapless.profiler.learned").joinpath("shipped")
    assert sum(len(shipped.joinpath(name).read_bytes()) for name in TRAINED.values()) < 1_000_000
    card = Predictor().card
    judged = {row.method: row.median for row in card.errors if row.what == "shards"}
    assert set(judged) == set(PredictionMethod)
    assert judged[card.default] == min(judged.values())


def test_nearest_finds_a_layer_that_was_measured(tmp_path: Path) -> None:
    described = device({"core0": 1.0}, more=MORE)
    data = dataset_of([described])
    Nearest.of(data).write(tmp_path / TRAINED[PredictionMethod.NEAREST])
    found = Nearest.read(tmp_path / TRAINED[PredictionMethod.NEAREST])
    (kind,) = data.types
    features, entry = data.networks["net3"], kind.times[3]
    ratios = found.log_ratios(features.inputs(), kind.embedding.vector()[None])[0]
    predicted = kind.embedding.linear_us(features) * np.exp(ratios)
    assert predicted == pytest.approx(np.array(entry.layer_us), rel=0.02)


def test_files_of_measured_layers_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "nearest.npz"
    path.write_bytes(b"nothing")
    with pytest.raises(InvalidInputError, match="holds no measured layers"):
        Nearest.read(path)


def test_folders_without_a_predictor_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"holds no predictor.*costs learn"):
        _ = Predictor(tmp_path).card


def test_without_onnx_runtime_it_says_what_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Availability(ok=False, reason="ONNX Runtime is not installed: pip install 'gapless[ort]'")
    monkeypatch.setattr(OrtEngine, "availability", lambda self: missing)
    described = device({"core0": 1.0})
    features, embeddings = random_features("new", 9, 5), [described.embedding("core0")]
    with pytest.raises(EngineUnavailableError, match=r"gapless\[ort\].*--model regression or flops"):
        Predictor().layer_us(features, embeddings, PredictionMethod.TREES)
    assert Predictor().layer_us(features, embeddings, PredictionMethod.FLOPS).sum() > 0


def test_no_sibling_of_a_held_out_network_is_learned_from() -> None:
    held = folds((*YARDSTICKS, "vit", "deit-small", "vgg16", "alexnet", "mine", "yours"), YARDSTICKS)
    assert not any(set(fold) & set(YARDSTICKS) for fold in held)
    assert any({"vit", "deit-small"} <= set(fold) for fold in held)
    assert sorted(name for fold in held for name in fold) == sorted(
        ["vit", "deit-small", "vgg16", "alexnet", "mine", "yours"]
    )


def test_errors_are_those_of_the_table_of_the_whole_network() -> None:
    data = dataset_of([device({"core0": 1.0})])
    exact = errors_of(data, lambda features, ones: np.stack([one.linear_us(features) for one in ones]))
    for row in rows_of("regression", "none", exact):
        assert row.median < 0.01
    double = errors_of(data, lambda features, ones: 2 * np.stack([one.linear_us(features) for one in ones]))
    layers, shards, networks = rows_of("double", "none", double)
    assert layers.median == pytest.approx(1.0, abs=0.02)
    assert (networks.count, networks.above_20) == (6, 1.0)
    assert shards.median < layers.median  # sessions cost what they cost
