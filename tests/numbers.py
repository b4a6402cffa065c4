"""How far two tensors of one scale are apart, for tests with tighter limits than `executor.comparing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def relative_error(found: NDArray[Any], right: NDArray[Any]) -> float:
    """Return the largest difference, relative to the largest finite magnitude of what is right."""
    if found.shape != right.shape:
        return float("inf")
    a, b = found.astype(np.float64), right.astype(np.float64)
    largest = float(np.max(np.abs(b[np.isfinite(b)]), initial=2.0**-11))
    return float(np.max(np.abs(a - b), initial=0.0)) / largest
