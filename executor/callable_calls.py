"""How one function of a pipeline is called, and what it may give."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..formulations.errors import ExecutionError
from .callable_layers import Function
from .model import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerCall:
    """A layer with one of its functions, ready to be called.

    `inputs`, `outputs`: names of what it takes; what it has to give.
    """

    layer: str
    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[TensorSpec, ...]

    def run(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Call the function on some of the tensors, and add its results to them, write-protected."""
        arrays = call(self.layer, self.function, [tensors[name] for name in self.inputs])
        if len(arrays) != len(self.outputs):
            raise ExecutionError(
                f"layer {self.layer!r} returned {len(arrays)} arrays, its outputs are {len(self.outputs)}"
            )
        for spec, array in zip(self.outputs, arrays, strict=True):
            require(spec, array, f"output {spec.name!r} of layer {self.layer!r}")
            tensors[spec.name] = protected(array)


def call(layer: str, function: Function, arrays: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Call the function of a layer, and return what it gave: at least one array."""
    import numpy as np

    result = guarded(f"layer {layer!r}", function, *arrays)
    results = result if isinstance(result, tuple | list) else (result,)
    for value in results:
        if not isinstance(value, np.ndarray | np.generic):
            raise ExecutionError(
                f"layer {layer!r} returned {type(value).__name__}, must return a numpy array, "
                "or a tuple of several"
            )
    return tuple(np.asarray(value) for value in results)


def guarded(what: str, function: Function, *arguments: Any) -> Any:
    """Call a function that a user wrote; `what` stands for it in messages.

    What it prints goes to standard error, because standard output may be a JSON document.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return function(*arguments)
    except (Exception, SystemExit) as error:
        trace = error.__traceback__
        inner = trace.tb_next if trace is not None else None  # the user's own function
        where = f" ({inner.tb_frame.f_code.co_filename}, line {inner.tb_lineno})" if inner else ""
        hint = "; layers must not write into their inputs" if "read-only" in str(error) else ""
        raise ExecutionError(f"{what} raised {type(error).__name__}: {error}{where}{hint}") from error


def require(spec: TensorSpec, array: object, what: str) -> None:
    """Refuse what is no array of the specified shape and type."""
    import numpy as np

    if not isinstance(array, np.ndarray):
        raise ExecutionError(f"{what} is {type(array).__name__}, must be a numpy array")
    if array.shape != spec.shape or array.dtype.name != spec.dtype:
        raise ExecutionError(f"{what} is {array.dtype.name} {array.shape}, must be {spec.dtype} {spec.shape}")


def protected(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to: other layers may need the same tensor."""
    view = array.view()
    view.flags.writeable = False
    return view
