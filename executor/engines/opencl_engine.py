"""The engine "opencl": Python functions on the processor, their OpenCL variants on OpenCL devices."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata, util
from math import prod
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from ...formulations.availability import Availability
from ...formulations.errors import ExecutionError, PlacementError
from ...formulations.hardware import ProcessingUnit
from ..callables import LayerCall, guarded
from ..engine import Artifact, OperatorTime, PlacementReceipt, Session, installed_version
from ..opencl_functions import OPENCL, OpenClFunction
from ..workers import Link
from .callable_engine import CallableEngine, load_steps
from .helper import Helper
from .placement import receipt_of, require_match

if TYPE_CHECKING:
    import pyopencl
    from numpy.typing import NDArray


GPU_BACKEND, CPU_BACKEND = "opencl", "opencl-cpu"
"""A GPU or accelerator, and OpenCL on the processor itself: what is asked for is never the other one."""

DEVICE_VARIABLE = "GAPLESS_OPENCL_DEVICE"
"""Environment variable: part of the name of the platform or device that is taken where there are several."""

LIMIT_S = 60.0
"""How long drivers may take to say which devices there are."""

_NO_CACHE: Any = False
"""What pyopencl takes, against its types: drivers have caches of their own."""

_PROBE = "kernel void probe(global float *x) { x[get_global_id(0)] = 1.0f; }"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenClDevice:
    """A device that this process uses, with its queue.

    `context`, `queue`: of pyopencl; kernels run in the order in which they are enqueued.
    """

    backend: str  # what it is: "opencl" or "opencl-cpu"
    name: str  # names of its platform and of itself
    context: pyopencl.Context
    queue: pyopencl.CommandQueue
    programs: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # compiled kernels by source

    def kernels(self, source: str) -> Mapping[str, Any]:
        """Return the kernels of a source by name, compiled when they are first asked for."""
        import pyopencl as cl

        if source not in self.programs:
            try:
                program = _built(self.context, source)
            except cl.Error as error:
                raise ExecutionError(f"OpenCL kernels do not compile on {self.name}: {error}") from error
            self.programs[source] = {kernel.function_name: kernel for kernel in program.all_kernels()}
        return self.programs[source]


@cache
def open_device(backend: str) -> OpenClDevice:
    """Return the device of a backend; there is one in a process."""
    import pyopencl as cl

    for kind, device in _devices():
        if kind == backend:
            context = cl.Context([device])
            name = f"{device.platform.name.strip()}, {device.name.strip()}"
            return OpenClDevice(backend=kind, name=name, context=context, queue=cl.CommandQueue(context))
    found = ", ".join(f"{device.name.strip()} ({kind})" for kind, device in _devices()) or "none"
    raise PlacementError(
        f"there is no OpenCL device for the backend {backend!r}; found: {found}. A driver (ICD) for it must "
        f"be installed, and {DEVICE_VARIABLE} must not exclude it"
    )


@cache
def opencl_backends() -> tuple[str, ...]:
    """Return the backends for which a device compiles kernels, as a child process finds out: GPUs first."""
    with Helper("probe of opencl", serve, {}) as helper:
        try:
            return tuple(helper.ask({"kind": "list"}, limit_s=LIMIT_S)["backends"])
        except ExecutionError:  # a driver crashed or hung: nothing can be run on it
            return ()


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a helper process: answer each question by the backends whose devices compile kernels.

    Some drivers list a device that they cannot compile for, as PoCL does on processors newer than itself.
    """
    while link.receive() is not None:
        first = dict(reversed(list(_devices())))  # the one that is opened
        kinds = {kind for kind, device in first.items() if _compiles(device)}
        link.send({"kind": "found", "backends": [b for b in (GPU_BACKEND, CPU_BACKEND) if b in kinds]})


def _devices() -> Iterator[tuple[str, pyopencl.Device]]:
    import pyopencl as cl

    wanted = os.environ.get(DEVICE_VARIABLE, "").lower()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # that is how the loader says that there are none
        return
    for platform in platforms:
        for device in platform.get_devices():
            if wanted in f"{platform.name}, {device.name}".lower():
                yield (CPU_BACKEND if device.type & cl.device_type.CPU else GPU_BACKEND), device


def _built(context: pyopencl.Context, source: str) -> pyopencl.Program:
    import pyopencl as cl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compilers note how they vectorised
        built: pyopencl.Program = cl.Program(context, source).build(cache_dir=_NO_CACHE)
        return built


def _compiles(device: pyopencl.Device) -> bool:
    import pyopencl as cl

    try:
        _built(cl.Context([device]), _PROBE)
    except cl.Error:
        return False
    return True


class OpenClEngine(CallableEngine):
    """Runs pipelines of Python functions, on units with an OpenCL backend by their OpenCL variants.

    A unit with the backend "opencl" is a GPU or accelerator, one with "opencl-cpu" is OpenCL on the processor
    (such as PoCL). A layer without an OpenCL variant cannot run on either: nothing is moved to the processor.
    """

    @property
    def name(self) -> str:
        """Registry name."""
        return "opencl"

    def availability(self) -> Availability:
        """Say whether pyopencl is installed."""
        if util.find_spec("pyopencl") is None:
            return Availability(ok=False, reason="pyopencl is not installed: pip install 'gapless[opencl]'")
        return Availability(ok=True, version=metadata.version("pyopencl"))

    def backends(self) -> tuple[str, ...]:
        """Return "cpu", and the OpenCL backends for which this machine has a device."""
        return ("cpu", *opencl_backends()) if self.availability().ok else ()

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:
        """Load the functions of a piece for a unit, and compile those that are OpenCL kernels.

        Raises EngineUnavailableError: pyopencl is not installed. PlacementError: there is no such device, or
        a layer has no function for it. ExecutionError: as for `CallableEngine.open`; or kernels do not
        compile, or the device has too little memory.
        """
        version = installed_version(self.availability())
        if unit.engine.backend not in (GPU_BACKEND, CPU_BACKEND):
            return super().open(artifact, unit)
        return OpenClSession(artifact, unit, version=version)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Array:
    """An array on a device (see `DeviceArray`)."""

    buffer: Any
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(slots=True, kw_only=True)
class _Call:
    """One layer of a session (see `OpenClCall`)."""

    device: OpenClDevice
    layer: str
    function: OpenClFunction
    kernels: Mapping[str, Any]
    inputs: tuple[_Array, ...]
    outputs: tuple[_Array, ...]
    constants: Mapping[str, _Array]
    kept: dict[str, _Array] = field(default_factory=dict)

    def scratch(self, name: str, shape: tuple[int, ...], dtype: str) -> _Array:
        if name not in self.kept:
            self.kept[name] = _array(self.device, shape, dtype)
        return self.kept[name]

    def launch(self, kernel: str, size: int | tuple[int, ...], *arguments: _Array | int | float) -> None:
        if kernel not in self.kernels:
            raise ExecutionError(f"there is no kernel {kernel!r}; there are {', '.join(self.kernels)}")
        items = size if isinstance(size, tuple) else (size,)
        self.kernels[kernel](self.device.queue, items, None, *map(_argument, arguments))

    def run(self) -> None:
        """Enqueue all kernels."""
        guarded(f"layer {self.layer!r}", self.function.enqueue, self)


class OpenClSession:
    """The OpenCL functions of one piece on one device; see `Session`."""

    def __init__(self, artifact: Artifact, unit: ProcessingUnit, *, version: str) -> None:
        self.artifact = artifact
        self._device = device = open_device(unit.engine.backend)
        self.receipt: PlacementReceipt = receipt_of(
            unit,
            artifact.piece,
            f"pyopencl {version} on {device.name}",
            granted_backend=device.backend,
            granted_threads=None,
        )
        require_match(self.receipt)
        steps, _ = load_steps(artifact, unit, OPENCL)
        made = (spec for step in steps for spec in step.outputs)
        with self._named():
            self._arrays = {
                spec.name: _array(device, spec.shape, spec.dtype) for spec in (*artifact.inputs, *made)
            }
            self._calls = tuple(map(self._call, steps))

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs to the device."""
        self._copy((self._arrays[spec.name].buffer, array) for spec, array in self._pairs("inputs", arrays))

    def run(self) -> None:
        """Run the kernels of all layers in order, and wait for them.

        Raises ExecutionError: a kernel cannot be enqueued, or fails; the message names the layer.
        """
        with self._named():
            for call in self._calls:
                call.run()
            self._device.queue.finish()

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs of the last run from the device."""
        self._copy((array, self._arrays[spec.name].buffer) for spec, array in self._pairs("outputs", arrays))

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the median time of each layer, each waited for by itself."""
        times_ns: list[list[int]] = [[] for _ in self._calls]
        for _ in range(repetitions):
            self.copy_in(arrays)
            for call, samples in zip(self._calls, times_ns, strict=True):
                start_ns = perf_counter_ns()
                with self._named():
                    call.run()
                    self._device.queue.finish()
                samples.append(perf_counter_ns() - start_ns)
        names = {id(array): name for name, array in self._arrays.items()}
        return tuple(
            OperatorTime(output=names[id(call.outputs[0])], kind=call.layer, time_us=median(samples) / 1000)
            for call, samples in zip(self._calls, times_ns, strict=True)
        )

    def close(self) -> None:
        """Free all arrays; compiled kernels stay for other sessions. Can be called twice."""
        kept = [array for call in self._calls for array in (*call.constants.values(), *call.kept.values())]
        for array in (*self._arrays.values(), *kept):
            array.buffer.release()
        self._arrays, self._calls = {}, ()

    def _call(self, step: LayerCall) -> _Call:
        device, function = self._device, step.function
        assert isinstance(function, OpenClFunction)  # nothing else stands under its key
        return _Call(
            device=device,
            layer=step.layer,
            function=function,
            kernels=device.kernels(function.source),
            inputs=tuple(self._arrays[name] for name in step.inputs),
            outputs=tuple(self._arrays[spec.name] for spec in step.outputs),
            constants={name: _constant(device, array) for name, array in function.constants.items()},
        )

    def _pairs(self, side: str, arrays: Sequence[NDArray[Any]]) -> Iterable[tuple[Any, NDArray[Any]]]:
        return zip(getattr(self.artifact, side), arrays, strict=True)

    def _copy(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        import pyopencl as cl

        with self._named():
            for target, source in pairs:
                cl.enqueue_copy(self._device.queue, target, source)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Say of what fails which piece and device it was."""
        import pyopencl as cl

        try:
            yield
        except (cl.Error, ExecutionError) as error:
            raise ExecutionError(f"piece {self.artifact.piece!r} on {self._device.name}: {error}") from error


def _array(device: OpenClDevice, shape: tuple[int, ...], dtype: str) -> _Array:
    import numpy as np
    import pyopencl as cl

    size = prod(shape) * np.dtype(dtype).itemsize
    buffer = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size)
    return _Array(buffer=buffer, shape=shape, dtype=dtype)


def _constant(device: OpenClDevice, array: NDArray[Any]) -> _Array:
    import numpy as np
    import pyopencl as cl

    own = np.ascontiguousarray(array)
    buffer = cl.Buffer(device.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=own)
    return _Array(buffer=buffer, shape=own.shape, dtype=own.dtype.name)


def _argument(value: _Array | int | float) -> Any:
    import numpy as np

    if isinstance(value, _Array):
        return value.buffer
    return np.int32(value) if isinstance(value, int) else np.float32(value)
