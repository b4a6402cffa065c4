"""OpenCL devices of this machine, by the backend under which units ask for them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from ...formulations.errors import ExecutionError, PlacementError
from ..workers import Link
from .helper import Helper

if TYPE_CHECKING:
    import pyopencl

GPU_BACKEND, CPU_BACKEND = "opencl", "opencl-cpu"
"""A GPU or accelerator, and OpenCL on the processor itself: what is asked for is never the other one."""

DEVICE_VARIABLE = "GAPLESS_OPENCL_DEVICE"
"""Environment variable: part of the name of the platform or device that is taken where there are several."""

LIMIT_S = 60.0
"""How long drivers may take to say which devices there are."""

_ROLE = "gapless.executor.engines.opencl_devices:serve"


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
            own_cache: Any = False  # drivers have theirs
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # compilers note how they vectorised
                    program = cl.Program(self.context, source).build(cache_dir=own_cache)
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
    """Return the backends for which there is a device, as a child process finds out: GPUs first."""
    with Helper("probe of opencl", _ROLE, {}) as helper:
        try:
            return tuple(helper.ask({"kind": "list"}, limit_s=LIMIT_S)["backends"])
        except ExecutionError:  # a driver crashed or hung: nothing can be run on it
            return ()


def serve(link: Link, settings: Mapping[str, Any]) -> None:
    """Role of a helper process: answer each question by the backends for which there is a device."""
    while link.receive() is not None:
        kinds = {kind for kind, _ in _devices()}
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
