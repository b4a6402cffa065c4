"""Predicted against measured, by numbers that were worked out by hand."""

from __future__ import annotations

import pytest

from gapless.executor.tuning.result import PredictionQuality, quality


def of(predicted: list[float], measured: list[float]) -> PredictionQuality:
    return quality(predicted, measured, table="t", scope="s")


def test_a_perfect_prediction() -> None:
    found = of([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert found.pearson == pytest.approx(1)
    assert found.spearman == pytest.approx(1)
    assert found.mape_percent == 0
    assert found.regret_percent == ((1, 0.0), (3, 0.0), (5, 0.0))


def test_numbers_by_hand() -> None:
    found = of([1, 2, 3, 4], [2, 1, 4, 3])
    assert found.pearson == pytest.approx(0.6)
    assert found.spearman == pytest.approx(0.6)
    assert found.mape_percent == pytest.approx(100 * (1 / 2 + 1 + 1 / 4 + 1 / 3) / 4)
    assert found.regret_percent == ((1, 100.0), (3, 0.0))


def test_ties_share_the_mean_of_their_ranks() -> None:
    found = of([1, 2, 2, 3], [10, 20, 30, 40])
    assert found.spearman == pytest.approx(0.9486833)  # ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4


def test_what_cannot_be_said_is_none() -> None:
    assert of([], []).mape_percent is None
    assert of([], []).regret_percent == ()
    assert of([1, 2], [1, 2]).pearson is None
    assert of([1, 1, 1], [1, 2, 3]).pearson is None
    assert of([1, 2, 3], [2, 2, 2]).spearman is None
