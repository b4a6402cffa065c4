"""Contention intensity from performance counters, by ridge regression (Hetero2Pipe, Eq. 1).

Features of a network are instructions per cycle, misses per cache access, and stalled cycles of the
backend per cycle (Section III); the target is its measured intensity. Once fitted on some networks, a new
one needs a run alone instead of co-runs with all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ....formulations.errors import InvalidInputError
from ....formulations.validation import FileContent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[Any]

ALPHAS = tuple(10.0**power for power in range(-4, 5))
"""Regularisations that leave-one-out chooses from: from hardly any to "nearly the mean"."""

FEWEST = 3
"""Fewest rows for leave-one-out: the models must be made of more than one row."""

Rows = Sequence[Sequence[float]]
"""Features by [network][feature]."""


class Form(StrEnum):
    """What Eq. (1) is applied to.

    PRINTED
        Features and targets as they are: no intercept, so that a network with all features 0 has
        intensity 0, and the regularisation depends on the features' units.
    CENTRED
        Features with mean 0 and standard deviation 1, targets with mean 0. Instructions per cycle go up
        to 6 while miss rates stay below 1, and *few* instructions per cycle mean *much* contention: that
        is a line with an intercept, and a penalty that is to treat its slopes alike needs one scale.
    """

    PRINTED = "printed"
    CENTRED = "centred"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ridge(FileContent):
    """A fitted regression: prediction = offset + sum of weights x (feature - centre) / scale."""

    weights: tuple[float, ...]
    """W of Eq. (1), one for each feature."""
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    """What features are standardised with; 0 and 1 in the printed form."""
    offset: float
    """Mean of the targets; 0 in the printed form."""
    alpha: float
    """Regularisation."""
    error: float | None = None
    """Root mean square of the errors when each row is predicted from the others; None with fewer than
    `FEWEST` rows."""

    def predict(self, features: Rows) -> tuple[float, ...]:
        """Return the prediction for each row of features.

        Raises InvalidInputError: a row has another number of features.
        """
        matrix = _matrix(features, columns=len(self.weights))
        standard = (matrix - self.centre) / self.scale
        found: list[float] = (self.offset + standard @ self.weights).tolist()
        return tuple(found)


def fit_ridge(
    features: Rows, targets: Sequence[float], *, alpha: float | None = None, form: Form = Form.CENTRED
) -> Ridge:
    """Fit Eq. (1): W = (X'X + alpha I)^-1 X'Y.

    `alpha`: regularisation, at least 0; None: the one of `ALPHAS` with the least leave-one-out error (with
    fewer than `FEWEST` rows: 1). `form`: what the equation is applied to.
    """
    if not features or len(features) != len(targets):
        raise InvalidInputError(
            f"{len(features)} rows of features and {len(targets)} targets are given: "
            "one of each is needed for every network"
        )
    x, y = _matrix(features, columns=len(features[0])), _matrix([targets], columns=len(targets))[0]
    if alpha is not None and not 0 <= alpha < float("inf"):
        raise InvalidInputError(f"alpha is {alpha}, must be a number of at least 0")
    if len(y) < FEWEST:
        return _solve(x, y, 1.0 if alpha is None else alpha, form, error=None)
    errors = {choice: _left_out(x, y, choice, form) for choice in (ALPHAS if alpha is None else (alpha,))}
    best = min(errors, key=lambda choice: (errors[choice], -choice))
    return _solve(x, y, best, form, error=errors[best])


def _solve(x: Matrix, y: Matrix, alpha: float, form: Form, *, error: float | None) -> Ridge:
    import numpy as np

    columns = x.shape[1]
    centre, scale, offset = np.zeros(columns), np.ones(columns), 0.0
    if form is Form.CENTRED:
        centre, offset = x.mean(axis=0), float(y.mean())
        spread = x.std(axis=0)
        scale = np.where(spread > 0, spread, 1.0)
    standard = (x - centre) / scale
    # lstsq rather than an inverse: with alpha = 0 and features that depend on each other X'X has none
    normal = standard.T @ standard + alpha * np.eye(columns)
    weights = np.linalg.lstsq(normal, standard.T @ (y - offset))[0]
    return Ridge(
        weights=tuple(weights.tolist()),
        centre=tuple(centre.tolist()),
        scale=tuple(scale.tolist()),
        offset=offset,
        alpha=alpha,
        error=error,
    )


def _left_out(x: Matrix, y: Matrix, alpha: float, form: Form) -> float:
    """Return the root mean square error when each row is predicted from the others."""
    import numpy as np

    errors = []
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        fitted = _solve(x[others], y[others], alpha, form, error=None)
        errors.append(fitted.predict([x[row].tolist()])[0] - y[row])
    return float(np.sqrt(np.mean(np.square(errors))))


def _matrix(rows: Rows, *, columns: int) -> Matrix:
    import numpy as np

    lengths = sorted({len(row) for row in rows})
    if lengths not in ([], [columns]):
        raise InvalidInputError(f"rows of features have the lengths {lengths}, must have {columns}")
    matrix = np.asarray(rows, dtype=np.float64).reshape(len(rows), columns)
    if not np.isfinite(matrix).all():
        raise InvalidInputError("features and targets must be finite numbers")
    return matrix
