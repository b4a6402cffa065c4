"""Functions of layers as OpenCL kernels: what a user writes; who runs them is `engines.opencl_engine`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPENCL = "opencl"
"""Under this key an OpenCL function stands among the variants of a layer."""


class DeviceArray(Protocol):
    """An array in the memory of an OpenCL device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        ...

    @property
    def dtype(self) -> str:
        """Its element type (numpy name)."""
        ...

    @property
    def size(self) -> int:
        """Number of its elements."""
        ...


class OpenClCall(Protocol):
    """One layer in one session: its arrays on the device, and how kernels are enqueued."""

    @property
    def inputs(self) -> tuple[DeviceArray, ...]:
        """What the layer takes, in the order of its inputs."""
        ...

    @property
    def outputs(self) -> tuple[DeviceArray, ...]:
        """What it gives, in the order of its outputs; holds what the last run left there."""
        ...

    @property
    def constants(self) -> Mapping[str, DeviceArray]:
        """Constants of the function, copied to the device when the session was opened."""
        ...

    def scratch(self, name: str, shape: tuple[int, ...], dtype: str) -> DeviceArray:
        """Return an array for intermediate results; made when it is first asked for, and kept."""
        ...

    def launch(self, kernel: str, size: int | tuple[int, ...], *arguments: DeviceArray | int | float) -> None:
        """Enqueue a kernel of the function for a number of work-items along one to three dimensions.

        `kernel`: its name in the source; `size`: numbers of work-items; how they are grouped is left to the
        device; `arguments`: arrays as global pointers, integers as `int`, floats as `float`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenClFunction:
    """A function of a layer for units with the backend "opencl" or "opencl-cpu".

    Kernels are compiled once in each worker, and all arrays stay on the device from one run to the next: what
    layers of one chunk hand over is never copied to the host.

    Attributes
    ----------
    source
        OpenCL C 1.2.
    enqueue
        Enqueues all kernels of one run, in order. It must not wait for them.
    constants
        Arrays that are the same in each run, such as weights.

    Examples
    --------
    >>> from gapless.running import CallableLayer, OpenClFunction
    >>> SOURCE = '''kernel void halve(global const float *x, global float *y) {
    ...     y[get_global_id(0)] = 0.5f * x[get_global_id(0)];
    ... }'''
    >>> def enqueue(call):
    ...     call.launch("halve", call.inputs[0].size, call.inputs[0], call.outputs[0])
    >>> halve = OpenClFunction(source=SOURCE, enqueue=enqueue)
    >>> layer = CallableLayer(name="half", variants={"*": lambda x: x / 2, "opencl": halve})
    """

    source: str
    enqueue: Callable[[OpenClCall], None]
    constants: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __call__(self, *_: object) -> Any:
        """Refuse to be called like a function of numpy arrays."""
        raise TypeError("an OpenCL function runs on OpenCL units only: profile or run with --engine opencl")
