"""Copies between numpy arrays and MNN's tensors, which know fewer element types. Does not import MNN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.errors import ExecutionError
from ..model import TensorSpec
from .narrowing import ELSEWHERE, check_fits

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CARRIED_AS = {
    "float32": "float32",
    "float16": "float32",
    "float64": "float32",
    "int32": "int32",
    "int64": "int32",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int32",
    "uint64": "int32",
    "bool": "int32",
    "uint8": "uint8",
}
"""Element types that can cross MNN's border, and what it holds them in."""

_NCHW = 1
_DISTINCT = 251
"""How many different numbers show the order of elements: they fit into every type, and are prime to it."""


class MnnTensor:
    """One input or output of a session.

    On a CPU the memory of MNN is an array of ours, so that a copy is one move: a third to a half of the
    time of MNN's own copies. (`Tensor.fromNumpy` of MNN 3.6.1 copies nothing at all.) Elsewhere, and in MNN's
    own layout of channels, the copy goes through a host tensor.

    Raises ExecutionError: it holds something else.
    """

    def __init__(self, spec: TensorSpec, tensor: Any) -> None:
        problem = tensor_problem(spec, tensor)
        if problem is not None:
            raise ExecutionError(problem)
        self._name = spec.name
        self._shape = spec.shape
        self._dtype = np.dtype(spec.dtype)
        self._tensor = tensor
        host = _host_copy(tensor)
        self._host = None if _shares_memory(tensor, host) else host
        memory = (tensor if self._host is None else host).getNumpyData()
        self._memory: NDArray[Any] = memory.reshape(spec.shape)  # a view: trailing ones come and go

    def take(self, array: NDArray[Any]) -> None:
        """Copy an array into MNN.

        Raises ExecutionError: it has another shape, or numbers that MNN cannot hold.
        """
        self._check_shape(array)
        np.copyto(self._memory, self._narrowed(array, self._memory.dtype))
        if self._host is not None:
            self._tensor.copyFrom(self._host)

    def give(self, array: NDArray[Any]) -> None:
        """Copy the tensor into an array; errors as for `take`."""
        self._check_shape(array)
        if self._host is not None:
            self._tensor.copyToHostTensor(self._host)
        np.copyto(array, self._narrowed(self._memory, array.dtype))

    def _check_shape(self, array: NDArray[Any]) -> None:
        if array.shape != self._shape or array.dtype != self._dtype:
            raise ExecutionError(
                f"tensor {self._name!r} is {self._dtype} {list(self._shape)}, "
                f"not {array.dtype} {list(array.shape)}"
            )

    def _narrowed(self, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        if array.dtype == dtype:
            return array
        check_fits(array, dtype, tensor=self._name, engine="MNN")
        # Casts to 16 bits that end at infinity are part of many models.
        with np.errstate(over="ignore"):
            return array.astype(dtype)


def tensor_problem(spec: TensorSpec, tensor: Any) -> str | None:
    """Say why a tensor of MNN cannot stand for a tensor of a piece; None when it can."""
    shape = tuple(tensor.getShape())
    if _without_trailing_ones(shape) != _without_trailing_ones(spec.shape):
        return f"tensor {spec.name!r} has shape {list(shape)} in MNN, needs {list(spec.shape)}"
    try:
        found = str(tensor.getNumpyData().dtype)
    except SystemError:  # numpy has no such view
        found = "of a type that cannot be copied"
    if found != _CARRIED_AS.get(spec.dtype):
        return (
            f"tensor {spec.name!r} is {spec.dtype} in the model and {found} in MNN: it cannot cross the "
            f"border of a piece; cut elsewhere, or {ELSEWHERE}"
        )
    return None


def _without_trailing_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return what counts of a shape: MNN has [1,64,1,1] for [1,64,1] after a convolution along one axis."""
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def _shares_memory(tensor: Any, host: Any) -> bool:
    """Return whether MNN's memory can be used as an array: it is there, and in the order of the model.

    A tensor does not say so (`getDimensionType` gives the same for both orders), but its copies show it.
    """
    memory, copied = tensor.getNumpyData(), host.getNumpyData()
    if memory.size == 0:
        return True
    if memory.flags.owndata:  # numpy made it up: nothing reads this tensor, or it is on another device
        return False
    kept = memory.copy()  # an output may be a constant
    memory[...] = np.arange(memory.size).reshape(memory.shape) % _DISTINCT
    tensor.copyToHostTensor(host)
    same = np.array_equal(memory, copied)
    memory[...] = kept
    return bool(same)


def _host_copy(tensor: Any) -> Any:
    """Return a tensor in main memory, in the order of the model, for copies to and from MNN's own."""
    data = np.zeros(tuple(tensor.getShape()), dtype=tensor.getNumpyData().dtype)
    return type(tensor)(data.shape, tensor.getDataType(), data, _NCHW)
