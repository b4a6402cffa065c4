"""Numbers that do not fit into what an engine computes with. Imports no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.errors import UnfitNumbersError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ELSEWHERE = "run this piece with engine 'onnxruntime'"


def check_most(array: NDArray[Any], most: int | None, *, tensor: str, engine: str) -> None:
    """Refuse numbers of which an engine would compute others that it cannot hold; `most`: None: none is."""
    if beyond := beyond_most(array, most, tensor=tensor):
        raise UnfitNumbersError(
            f"{beyond}, what {engine} makes of them may be wrong: it has 32 bits for an integer and checks "
            f"no index; {ELSEWHERE}"
        )


def beyond_most(array: NDArray[Any], most: int | None, *, tensor: str) -> str:
    """Return how a sentence about numbers beyond `most` begins; "": all are within, or `most` is None."""
    if most is None or array.size == 0:
        return ""
    least, greatest = int(array.min()), int(array.max())
    within = max(-least, greatest) <= most
    return "" if within else f"tensor {tensor!r} holds numbers from {least} to {greatest}: beyond {most}"


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
