"""Training; skipped where the extra "learn" is not installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gapless.formulations.errors import InvalidInputError
from gapless.profiler.learned import training
from gapless.profiler.learned.examples import dataset_of
from gapless.profiler.learned.predictors import CARD_FILE, TRAINED, PredictionMethod, Predictor, run_trained
from gapless.profiler.learned.training import errors_of, predict_by, rows_of, train, trained
from tests.profiler.learned.samples import device, random_features

torch = pytest.importorskip("torch", reason="training needs pip install 'gapless[learn]'")
pytest.importorskip("lightgbm", reason="training needs pip install 'gapless[learn]'")
pytest.importorskip("onnxscript", reason="training needs pip install 'gapless[learn]'")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MORE = (2.0, 1.0, 0.5, 1.0)


def test_what_a_regression_cannot_say_is_learned() -> None:
    learned = dataset_of([device({"core0": 1.0, "core1": 3.0}, networks=24, more=MORE)])
    judged = dataset_of([device({"core0": 1.0, "core1": 3.0}, networks=30, more=MORE)])
    new = judged.select(networks=set(judged.networks) - set(learned.networks))
    with trained(learned) as predictor:
        medians = {
            method: {
                row.what: row.median
                for row in rows_of(method, "", errors_of(new, predict_by(predictor, method)))
            }
            for method in PredictionMethod
        }
    for method in (PredictionMethod.TREES, PredictionMethod.TRANSFORMER):
        for what in ("layers", "shards"):
            assert medians[method][what] < 0.5 * medians[PredictionMethod.REGRESSION][what]


def test_written_models_say_what_the_trained_ones_say(tmp_path: Path) -> None:
    from gapless.profiler.learned.transformer import Training, train_transformer, write_transformer
    from gapless.profiler.learned.trees import train_trees, write_trees

    data = dataset_of([device({"core0": 1.0}, networks=10, more=MORE)])
    inputs = random_features("new", 17, 99).inputs()
    vectors = np.stack([data.types[0].embedding.vector() + shift for shift in (0.0, 0.3)])
    model = train_transformer(data, training=Training(epochs=2))
    write_transformer(model, tmp_path / "t.onnx")
    with torch.no_grad():
        right = model(torch.from_numpy(inputs)[None], torch.from_numpy(vectors)).numpy()
    assert run_trained(tmp_path / "t.onnx", inputs, vectors) == pytest.approx(right, abs=1e-4)
    booster = train_trees(data)
    write_trees(booster, tmp_path / "b.onnx", devices=vectors.shape[1])
    rows = np.vstack([np.hstack([inputs, np.tile(vector, (len(inputs), 1))]) for vector in vectors])
    right = np.asarray(booster.predict(rows)).reshape(2, -1)
    assert run_trained(tmp_path / "b.onnx", inputs, vectors) == pytest.approx(right, abs=1e-4)


def test_a_predictor_is_written_with_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "folds", lambda networks, yardsticks: [("net0",)])
    card = train([device({"core0": 1.0}, networks=5, more=MORE)], tmp_path)
    assert Predictor(tmp_path).card == card
    assert {row.count for row in card.errors if row.what == "networks"} == {1}
    assert {path.name for path in tmp_path.iterdir()} == {CARD_FILE, *TRAINED.values()}


def test_too_few_networks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="3 networks are too few"):
        train([device({"core0": 1.0}, networks=3)], tmp_path)
