"""Predicted against measured: how well a cost table predicts what plans really take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...formulations.validation import FileContent

FEWEST = 3
"""Fewest plans of which anything is said: of two, a correlation is always 1 or -1."""

TOPS = (1, 3, 5, 10)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionQuality(FileContent):
    """How the predictions of one cost table compare with what was measured."""

    table: str
    """Name of the cost table."""
    scope: str
    """Which plans: "all plans", or "plans of several chunks" (plans of one chunk are far slower and so
    inflate a correlation)."""
    plans: int
    """How many."""
    pearson: float | None
    spearman: float | None
    """Correlations; None for fewer than three plans, or where one side does not vary."""
    mape_percent: float | None
    """Mean of |predicted - measured| / measured, percent; None for fewer than three plans."""
    regret_percent: tuple[tuple[int, float], ...]
    """(k, by how much the best of the k plans with the least prediction is slower than the best of all,
    percent): what trusting the table without measuring more than k plans would have cost. Empty for fewer
    than three plans."""

    @property
    def absent(self) -> str:
        """Why some of it is not known, in words; empty where all of it is."""
        if self.plans < FEWEST:
            return f"{self.plans} measured: {FEWEST} plans are the fewest of which anything can be said"
        if self.pearson is None or self.spearman is None:
            return "no correlation: all predictions, or all measurements, are equal"
        return ""


def quality(
    predicted_us: Sequence[float], measured_us: Sequence[float], *, table: str, scope: str
) -> PredictionQuality:
    """Compare predictions with measurements of the same plans, in the same order."""
    predicted, measured = np.asarray(predicted_us, float), np.asarray(measured_us, float)
    count = len(measured)
    enough = count >= FEWEST
    return PredictionQuality(
        table=table,
        scope=scope,
        plans=count,
        pearson=pearson(predicted, measured),
        spearman=pearson(_ranks(predicted), _ranks(measured)),
        mape_percent=float(100 * np.mean(np.abs(predicted - measured) / measured)) if enough else None,
        regret_percent=tuple(
            (k, _regret_percent(predicted, measured, k)) for k in TOPS if enough and k <= count
        ),
    )


def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """Return the correlation of two samples; None for fewer than three, or where one does not vary."""
    if len(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ranks from 1; equal values share the mean of their ranks."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values, "left") + 1 + np.searchsorted(ordered, values, "right")) / 2


def _regret_percent(predicted: NDArray[np.float64], measured: NDArray[np.float64], k: int) -> float:
    chosen = np.argsort(predicted, kind="stable")[:k]
    return float(100 * (measured[chosen].min() / measured.min() - 1))
