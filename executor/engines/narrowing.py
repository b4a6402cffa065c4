"""Numbers that do not fit into what an engine computes with. Imports no engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.errors import UnfitNumbersError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..engine import Artifact

ELSEWHERE = "run this piece with engine 'onnxruntime'"


def check_most(artifact: Artifact, arrays: Sequence[NDArray[Any]], *, engine: str) -> None:
    """Refuse inputs of which an engine would compute numbers that it cannot hold."""
    if beyond := beyond_most(artifact, arrays):
        raise UnfitNumbersError(
            f"{beyond}, what {engine} makes of them may be wrong: it has 32 bits for an integer and checks "
            f"no index; {ELSEWHERE}"
        )


def beyond_most(artifact: Artifact, arrays: Sequence[NDArray[Any]]) -> str:
    """Return how a sentence begins about the first input with numbers beyond its limit; "": there is none."""
    for spec, array, most in zip(artifact.inputs, arrays, artifact.most, strict=False):  # it may have none
        if most is None or array.size == 0:
            continue
        least, greatest = int(array.min()), int(array.max())
        if max(-least, greatest) > most:
            return f"tensor {spec.name!r} holds numbers from {least} to {greatest}: beyond {most}"
    return ""


def check_fits(array: NDArray[Any], dtype: np.dtype[Any], *, tensor: str, engine: str) -> None:
    """Refuse an array whose numbers an engine would change silently.

    `dtype`: element type that the engine computes with: an integer type, or float32.
    """
    if array.size == 0 or "b" in (array.dtype.kind, dtype.kind) or np.can_cast(array.dtype, dtype):
        return
    if dtype.kind == "f":
        finite = array[np.isfinite(array)]
        if array.dtype == np.float64 and np.any(np.abs(finite) > np.finfo(dtype).max):
            raise UnfitNumbersError(
                f"tensor {tensor!r} holds numbers beyond {dtype}, with which {engine} computes; {ELSEWHERE}"
            )
        return
    limits, least, most = np.iinfo(dtype), array.min(), array.max()
    if least < limits.min or most > limits.max:
        raise UnfitNumbersError(
            f"tensor {tensor!r} holds numbers from {least} to {most}, which do not fit into {dtype}: "
            f"{engine} computes with 32-bit integers; {ELSEWHERE}"
        )
