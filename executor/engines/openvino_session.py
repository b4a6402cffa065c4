"""OpenVINO sessions: one piece, compiled for a unit in this process. The only file that imports OpenVINO."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formulations.errors import ExecutionError, PlacementError
from ...formulations.hardware import Precision, ProcessingUnit
from ..engine import Artifact, OperatorTime, PlacementReceipt
from ..model import TensorSpec
from .narrowing import check_fits, check_most
from .openvino_engine import DEVICES, backend_name
from .placement import receipt_of, require_match

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TELEMETRY = "openvino_telemetry"


@contextmanager
def _without_telemetry() -> Iterator[None]:
    """Hide the package that sends a message, and leaves an id in the home folder, on import.

    It does so unless the user has refused before. Without it, OpenVINO uses an empty one of its own.
    """
    there = sys.modules.get(_TELEMETRY)
    sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[_TELEMETRY]
        if there is not None:
            sys.modules[_TELEMETRY] = there


with _without_telemetry():
    import openvino as ov

_COMPUTED_AS = {"int64": "int32", "uint64": "int32", "uint32": "int32", "float64": "float32"}
"""Element types that are narrowed inside, without a word."""

_SIXTEEN_BITS = {"FP16": "f16", "BF16": "bf16"}
"""What devices say that they can, and what to ask for."""

_WARM_UP = 2


class OpenVinoSession:
    """One artifact, compiled in this process; see `Session`.

    Inputs and outputs are arrays of ours that the request uses as they are.

    `allow_mismatch`: whether to go on when something else is granted than was asked; the receipt tells.
    Raises PlacementError: OpenVINO grants something else than was asked; ExecutionError: OpenVINO cannot run
    the artifact.
    """

    def __init__(
        self, artifact: Artifact, unit: ProcessingUnit, *, version: str, allow_mismatch: bool = False
    ) -> None:
        self.artifact = artifact
        self._unit = unit
        self._core = ov.Core()
        self._device = _device(self._core, unit)
        self._compiled = self._compile()
        on_cpu = self._device == DEVICES["cpu"]
        self.receipt: PlacementReceipt = receipt_of(
            unit,
            artifact.piece,
            f"OpenVINO {version}",
            granted_backend=backend_name(
                self._compiled.get_property("EXECUTION_DEVICES"), unit.engine.backend
            ),
            granted_threads=int(self._compiled.get_property("INFERENCE_NUM_THREADS")) if on_cpu else None,
        )
        if not allow_mismatch:
            require_match(self.receipt)
        self._require(artifact.inputs, self._compiled.inputs)
        self._require(artifact.outputs, self._compiled.outputs)
        self._inputs = {spec.name: spec.empty() for spec in artifact.inputs}
        # It leaves an output alone that is an input as it is.
        self._outputs = {
            spec.name: self._inputs[spec.name] if spec.name in self._inputs else spec.empty()
            for spec in artifact.outputs
        }
        self._request = self._bound(self._compiled)

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs.

        Raises ExecutionError: numbers of 64 bits do not fit into the 32 bits with which OpenVINO computes.
        """
        check_most(self.artifact, arrays, engine="OpenVINO")
        for (name, own), array in zip(self._inputs.items(), arrays, strict=True):
            if narrow := _COMPUTED_AS.get(array.dtype.name):
                check_fits(array, np.dtype(narrow), tensor=name, engine="OpenVINO")
            np.copyto(own, array, casting="no")

    def run(self) -> None:
        """Compute; releases the interpreter lock.

        Raises ExecutionError: OpenVINO failed.
        """
        self._infer(self._request)

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs of the last run into given arrays."""
        for own, array in zip(self._outputs.values(), arrays, strict=True):
            np.copyto(array, own, casting="no")

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the mean time of each operator, from a second compilation that counts; None beside CPUs.

        OpenVINO tells means over all runs so far, in whole microseconds; those of the warm-up are taken out.
        A fused operator has the name of the last tensor in it that the model file knows.
        """
        if self.receipt.granted_backend != "cpu":
            return None
        compiled = self._compile(PERF_COUNT=True)
        request = self._bound(compiled)
        self.copy_in(arrays)
        before = self._sums_us(request, _WARM_UP)
        after = self._sums_us(request, repetitions, already=_WARM_UP)
        names = self._tensors_of(compiled)
        return tuple(
            OperatorTime(
                output=names.get(name, name),
                kind=kind,
                time_us=max(0.0, after[name, kind] - before.get((name, kind), 0.0)) / repetitions,
            )
            for name, kind in after
        )

    def close(self) -> None:
        """Free everything. Can be called twice."""
        self._request = self._compiled = self._core = None
        self._inputs, self._outputs = {}, {}

    def _compile(self, **more: object) -> Any:
        try:
            model = self._core.read_model(self.artifact.path)
            settings = {**_settings(self._core, self._device, self._unit), **more}
            return self._core.compile_model(model, self._device, settings)
        except Exception as error:
            raise ExecutionError(
                f"OpenVINO cannot run {self.artifact.piece!r} on unit {self._unit.name!r}: {_said(error)}"
            ) from error

    def _bound(self, compiled: Any) -> Any:
        """Return a request that works on our arrays."""
        request = compiled.create_infer_request()
        try:
            for index, array in enumerate(self._inputs.values()):
                request.set_input_tensor(index, ov.Tensor(array, shared_memory=True))
            for index, (name, array) in enumerate(self._outputs.items()):
                if name not in self._inputs:
                    request.set_output_tensor(index, ov.Tensor(array, shared_memory=True))
        except Exception as error:
            raise ExecutionError(
                f"what OpenVINO opened is not {self.artifact.piece!r}: {_said(error)}"
            ) from error
        return request

    def _infer(self, request: Any) -> None:
        try:
            request.infer(share_outputs=True)
        except Exception as error:
            raise ExecutionError(
                f"OpenVINO failed to run {self.artifact.piece!r} on unit {self._unit.name!r}: {_said(error)}"
            ) from error

    def _require(self, specs: Sequence[TensorSpec], ports: Sequence[Any]) -> None:
        """Require that a compiled model has the tensors of the artifact, in their order."""
        found = [port.get_names() for port in ports]
        wanted = [spec.name for spec in specs]
        if len(found) != len(wanted) or any(a not in b for a, b in zip(wanted, found, strict=True)):
            raise ExecutionError(
                f"what OpenVINO opened is not {self.artifact.piece!r}: it has the tensors "
                f"{[sorted(names) for names in found]}, not {wanted}"
            )

    def _sums_us(self, request: Any, repetitions: int, *, already: int = 0) -> dict[tuple[str, str], float]:
        """Run, and return the time of each operator in all runs of a request, in order."""
        for _ in range(repetitions):
            self._infer(request)
        return {
            (info.node_name, info.node_type): info.real_time.total_seconds() * 1e6 * (already + repetitions)
            for info in request.profiling_info
            if info.status == ov.ProfilingInfo.Status.EXECUTED
        }

    def _tensors_of(self, compiled: Any) -> Mapping[str, str]:
        """Return the tensor that each operator of a compiled model makes, where the model file names one."""
        known = {
            node.friendly_name: min(names)
            for node in self._core.read_model(self.artifact.path).get_ordered_ops()
            for names in (node.output(0).get_names(),)
            if names
        }
        made = {}
        for node in compiled.get_runtime_model().get_ordered_ops():
            fused = node.get_rt_info()["originalLayersNames"].value.split(",")
            outputs = [known[name] for name in fused if name in known]
            if outputs:
                made[node.friendly_name] = outputs[-1]
        return made


def _device(core: Any, unit: ProcessingUnit) -> str:
    device, there = DEVICES.get(unit.engine.backend, ""), core.available_devices
    if not {device, f"{device}.0"} & set(there):
        known = [name for name, known in DEVICES.items() if {known, f"{known}.0"} & set(there)]
        raise PlacementError(
            f"OpenVINO has no backend {unit.engine.backend!r} here (unit {unit.name!r}); it has "
            f"{', '.join(known) or 'none'}: a GPU or NPU needs Intel's driver"
        )
    return device


def _settings(core: Any, device: str, unit: ProcessingUnit) -> dict[str, object]:
    settings: dict[str, object] = {
        "PERFORMANCE_HINT": "LATENCY",
        # By itself it takes bfloat16 where the processor has it, whose numbers are off by more than 1e-3.
        "EXECUTION_MODE_HINT": "ACCURACY",
        "INFERENCE_PRECISION_HINT": _precision(core, device, unit.engine.precision),
    }
    if device == DEVICES["cpu"]:
        settings |= {
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": unit.threads or 1,
            # This process is on the cores of the unit already.
            "ENABLE_CPU_PINNING": False,
        }
    return settings


def _precision(core: Any, device: str, asked: Precision) -> str:
    can = core.get_property(device, "OPTIMIZATION_CAPABILITIES") if asked is Precision.LOW else ()
    return next((name for word, name in _SIXTEEN_BITS.items() if word in can), "f32")


def _said(error: Exception) -> str:
    """Return the words of OpenVINO without the places in its source."""
    lines = [line for line in map(str.strip, str(error).splitlines()) if line]
    kept = [line for line in lines if not line.startswith(("Exception from ", "Check 'false' failed"))]
    return " ".join(kept)[:500] or str(error)
