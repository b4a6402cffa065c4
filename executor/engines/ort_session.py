"""ONNX Runtime: reference numbers, and sessions on the cores of a unit. The only file that imports it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from ...formulations.errors import ExecutionError, InvalidInputError, PlacementError, UnfitNumbersError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, OperatorTime, PlacementReceipt
from .narrowing import beyond_most
from .ort_engine import PROVIDERS, backend_name
from .placement import receipt_of, require_match, thread_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ONLY_ERRORS = 3
_SILENT = 4
_FEW_THREADS = 4
"""A look at numbers or shapes is no reason to disturb everything else on the machine."""


class StoppedError(ExecutionError):
    """A run was stopped, because it took too long."""


def reference_outputs(
    model: bytes,
    inputs: Mapping[str, NDArray[Any]],
    wanted: Sequence[str] | None = None,
    *,
    quantised: bool = False,
) -> dict[str, NDArray[Any]]:
    """Run a model once and return the right numbers.

    A quantised model is run as ONNX Runtime runs it by default: in integers. Without optimisation it would
    emulate them in floats, and differ by a step here and there from every runtime that does compute in
    integers.

    `wanted`: names of the outputs that are wanted; None: all of them. `quantised`: whether the model rounds
    what it computes to few bits on the way.
    """
    options = _options(threads=len(os.sched_getaffinity(0)))
    chosen = options if quantised else _exact(options)
    session = _load(model, chosen, PROVIDERS["cpu"], what="the model")
    outputs = [value.name for value in session.get_outputs()]
    names = outputs if wanted is None else list(wanted)
    defects = [
        f"{value.name!r} is an input of the model, but was not given"
        for value in session.get_inputs()
        if value.name not in inputs
    ]
    defects += [f"{name!r} is no output of the model" for name in names if name not in outputs]
    if defects:
        raise InvalidInputError("the model cannot be run on these inputs", defects)
    feeds = {value.name: np.asarray(inputs[value.name]) for value in session.get_inputs()}
    try:
        return dict(zip(names, session.run(names, feeds), strict=True))
    except Exception as error:
        raise ExecutionError(f"ONNX Runtime cannot run the model: {error}") from error


def observed_outputs(
    model: bytes, requests: Sequence[Mapping[str, NDArray[Any]]], *, seconds: float, quantised: bool = False
) -> list[dict[str, Any]]:
    """Run a model for each of some requests and return all outputs, of whatever type: sequences are lists.

    `model`: a serialised, self-contained ModelProto; its outputs need no types.
    Raises StoppedError: a run took too long; ExecutionError: ONNX Runtime cannot run the model.
    """
    options = _options(threads=min(_FEW_THREADS, len(os.sched_getaffinity(0))))
    chosen = options if quantised else _exact(options)
    session = _load(model, chosen, PROVIDERS["cpu"], what="the model")
    return [_observed(session, inputs, seconds) for inputs in requests]


def _observed(session: Any, inputs: Mapping[str, NDArray[Any]], seconds: float) -> dict[str, Any]:
    how = ort.RunOptions()
    how.log_severity_level = _SILENT
    timer = threading.Timer(seconds, lambda: setattr(how, "terminate", True))
    timer.start()
    try:
        names = [value.name for value in session.get_outputs()]
        return dict(zip(names, session.run(names, dict(inputs), how), strict=True))
    except Exception as error:
        if how.terminate:
            raise StoppedError(f"ONNX Runtime took longer than {seconds:.0f} s for one run") from error
        raise ExecutionError(f"ONNX Runtime cannot run the model: {error}") from error
    finally:
        timer.cancel()


class OrtSession:
    """One artifact, open in this process; see `Session`.

    Inputs and outputs are arrays that are bound once. Idle threads sleep: spinning would disturb the
    other units.

    `allow_mismatch`: whether to go on when something else is granted than was asked; the receipt tells.
    Raises PlacementError: ONNX Runtime grants something else than was asked; ExecutionError: the artifact
    cannot be opened.
    """

    def __init__(
        self, artifact: Artifact, unit: ProcessingUnit, *, version: str, allow_mismatch: bool = False
    ) -> None:
        self.artifact = artifact
        before = thread_count()
        options, provider = _options(threads=unit.threads or 1), _provider(unit)
        self._session = _load(artifact.path, options, provider, what=f"the model of {artifact.piece!r}")
        self.receipt: PlacementReceipt = receipt_of(
            unit,
            artifact.piece,
            f"ONNX Runtime {version}",
            granted_backend=backend_name(self._session.get_providers()[0]),
            granted_threads=_new_threads(before),
        )
        if not allow_mismatch:
            require_match(self.receipt)
        specs = (*artifact.outputs, *artifact.inputs)
        self._arrays: dict[str, NDArray[Any]] = {spec.name: spec.empty() for spec in specs}
        self._binding = self._bind()

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs."""
        for spec, array in zip(self.artifact.inputs, arrays, strict=True):
            np.copyto(self._arrays[spec.name], array, casting="no")

    def run(self) -> None:
        """Compute; releases the interpreter lock."""
        try:
            self._session.run_with_iobinding(self._binding)
        except Exception as error:
            words = (
                f"ONNX Runtime failed to run {self.artifact.piece!r} on unit {self.receipt.unit!r}: {error}"
            )
            given = [self._arrays[spec.name] for spec in self.artifact.inputs]
            if beyond := beyond_most(self.artifact, given):
                raise UnfitNumbersError(f"{beyond}, an index may lie outside its table; {words}") from error
            raise ExecutionError(words) from error

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs of the last run into given arrays."""
        for spec, array in zip(self.artifact.outputs, arrays, strict=True):
            np.copyto(array, self._arrays[spec.name], casting="no")

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return None: its profiles name nodes, which it renames and fuses, not tensors."""
        return None

    def close(self) -> None:
        """Free everything. Can be called twice."""
        self._binding = self._session = None
        self._arrays.clear()

    def _bind(self) -> Any:
        """Bind each array; an output that is an input as it is needs no second one."""
        inputs = {spec.name for spec in self.artifact.inputs}
        binding = self._session.io_binding()
        try:
            for name, array in self._arrays.items():
                bind = binding.bind_input if name in inputs else binding.bind_output
                bind(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        except Exception as error:
            raise ExecutionError(
                f"what ONNX Runtime opened is not {self.artifact.piece!r}: {error}"
            ) from error
        return binding


def _provider(unit: ProcessingUnit) -> str:
    backend = unit.engine.backend
    if PROVIDERS.get(backend) not in ort.get_available_providers():
        there = [name for name in PROVIDERS if PROVIDERS[name] in ort.get_available_providers()]
        raise PlacementError(
            f"this ONNX Runtime has no backend {backend!r} (unit {unit.name!r}); it has {', '.join(there)}"
        )
    return PROVIDERS[backend]


def _new_threads(before: int | None) -> int | None:
    """Return how many threads a session works with: this one, and those that it has started."""
    after = thread_count()
    return None if before is None or after is None else 1 + after - before


def _options(*, threads: int) -> ort.SessionOptions:
    options = ort.SessionOptions()
    # A number that is given keeps ONNX Runtime from binding threads to cores by itself.
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = _ONLY_ERRORS
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _exact(options: ort.SessionOptions) -> ort.SessionOptions:
    """Leave out fusions that change the order of sums: they are for speed, not for a reference."""
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return options


_TOO_NEW = ("Unsupported model IR version", "is under development")
_NEWER = (
    f"\nThe model is newer than ONNX Runtime {ort.__version__}: upgrade onnxruntime, or write the model with "
    "an older opset and `model.ir_version = 10`"
)


def _load(model: bytes | str, options: ort.SessionOptions, provider: str, *, what: str) -> Any:
    try:
        return ort.InferenceSession(model, options, providers=[provider])
    except Exception as error:
        hint = _NEWER if any(words in str(error) for words in _TOO_NEW) else ""
        raise ExecutionError(f"ONNX Runtime cannot load {what}: {error}{hint}") from error
