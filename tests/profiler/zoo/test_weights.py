"""Random weights: what they give has mean 0 and variance 1, whatever they are applied to."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from gapless.profiler.zoo import weights
from gapless.profiler.zoo.weights import After, around, filters, lookup_table, matrix

Values = NDArray[np.float64]

ACTIVATIONS: dict[str, Callable[[Values], Values]] = {
    "LINEAR": lambda x: x,
    "RECTIFIED": lambda x: np.maximum(x, 0),
    "RECTIFIED_DEEP": lambda x: np.maximum(x, 0),
    "LEAKY": lambda x: np.where(x > 0, x, 0.1 * x),
    "MISH": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "PRELU": lambda x: np.where(x > 0, x, 0.25 * x),
    "GELU": lambda x: x * (1 + np.array([erf(value / sqrt(2)) for value in x])) / 2,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_sums_after_activations_have_variance_one(name: str) -> None:
    after: After = getattr(weights, name)
    x = np.linspace(-12, 12, 24_001)
    density = np.exp(-(x**2) / 2) / np.exp(-(x**2) / 2).sum()
    mean, square = ((ACTIVATIONS[name](x) ** power * density).sum() for power in (1, 2))
    kept = (square - mean**2) + ((1 - after.centred) * mean) ** 2
    assert after.gain * kept == pytest.approx(1, rel=0.002)


def test_drawn_filters_do_so_too() -> None:
    random = np.random.RandomState(1)
    x = np.maximum(random.standard_normal((2000, 400)), 0)
    rows = filters((300, 400), weights.RECTIFIED).draw(random)
    columns = matrix(400, 300, weights.RECTIFIED).draw(random)
    assert rows.dtype == columns.dtype == np.float32
    assert (x @ rows.T).var() == pytest.approx(1, rel=0.05)
    assert (x @ columns).var() == pytest.approx(1, rel=0.05)
    halved = filters((300, 400), weights.RECTIFIED.times(0.5)).draw(random)
    assert (x @ halved.T).var() == pytest.approx(0.25, rel=0.05)


def test_filters_on_images_have_no_mean() -> None:
    drawn = filters((16, 3, 7, 7), weights.IMAGE).draw(np.random.RandomState(2))
    np.testing.assert_allclose(drawn.mean(axis=(1, 2, 3)), 0, atol=1e-6)


def test_tables_and_channels() -> None:
    random = np.random.RandomState(3)
    assert lookup_table((50, 80), variance=2.0).draw(random).var() == pytest.approx(2, rel=0.1)
    near = around(1.0, 1000).draw(random)
    assert 0.9 <= near.min() < near.max() <= 1.1
