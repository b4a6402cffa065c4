"""MNN sessions: one converted piece, open on the cores of a unit in this process."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import MNN
import numpy as np

from ...formulations.errors import ExecutionError, PlacementError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, OperatorTime, PlacementReceipt
from ..model import TensorSpec
from .mnn_backends import WORDS, backend_name
from .mnn_tensors import MnnTensor
from .placement import receipt_of, require_match

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BACKEND, _RESIZE_STATUS, _THREADS = 2, 3, 4


class MnnSession:
    """One artifact, open in this process; see `Session`.

    MNN has one pool of threads a process, as large as the first session that asked for more than one;
    sessions that run one after the other all get it. Its threads spin while a session runs, and sleep
    between runs. `run` overwrites the inputs, so it is refused until they are copied in again.

    `allow_mismatch`: whether to go on when MNN grants something else than was asked; the receipt tells.
    Raises PlacementError: MNN grants something else than was asked; ExecutionError: the artifact cannot be
    opened.
    """

    def __init__(
        self, artifact: Artifact, unit: ProcessingUnit, *, version: str, allow_mismatch: bool = False
    ) -> None:
        through = {spec.name for spec in artifact.inputs} & {spec.name for spec in artifact.outputs}
        if through:
            raise ExecutionError(
                f"{artifact.piece!r} gives its input {min(through)!r} out as it is, but MNN overwrites inputs"
            )
        self.artifact = artifact
        self._fresh = False
        self._interpreter, self._session = _open(artifact, unit)
        backend = backend_name(self._info(_BACKEND))
        self.receipt: PlacementReceipt = receipt_of(
            unit,
            artifact.piece,
            f"MNN {version}",
            granted_backend=backend,
            granted_threads=self._granted_threads() if backend == "cpu" else None,
        )
        if not allow_mismatch:
            require_match(self.receipt)
        inputs = self._interpreter.getSessionInputAll(self._session)
        outputs = self._interpreter.getSessionOutputAll(self._session)
        self._require(artifact.outputs, outputs, all_of_them=True)
        self._require(artifact.inputs, inputs, all_of_them=False)
        # MNN drops inputs that nothing depends on.
        self._inputs = [
            MnnTensor(spec, inputs[spec.name]) if spec.name in inputs else None for spec in artifact.inputs
        ]
        self._outputs = [MnnTensor(spec, outputs[spec.name]) for spec in artifact.outputs]

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs into MNN."""
        for tensor, array in zip(self._inputs, arrays, strict=True):
            if tensor is not None:
                tensor.take(array)
        self._fresh = True

    def run(self) -> None:
        """Compute; releases the interpreter lock.

        Raises ExecutionError: the inputs were not copied in since the last run, or MNN failed.
        """
        self._use_inputs()
        self._check(self._interpreter.runSession(self._session))

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs of the last run into given arrays."""
        for tensor, array in zip(self._outputs, arrays, strict=True):
            tensor.give(array)

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return the median time of each of MNN's operators; None on backends that work asynchronously.

        MNN fuses, splits and adds operators (e.g. rasters): names need not occur in the model file.
        """
        if self.receipt.granted_backend != "cpu":
            return None
        clock = _OperatorClock()
        for _ in range(repetitions):
            self.copy_in(arrays)
            self._use_inputs()
            self._check(self._interpreter.runSessionWithCallBackInfo(self._session, clock.begin, clock.end))
            clock.finish_run()
        return clock.times()

    def close(self) -> None:
        """Free everything. Can be called twice."""
        # The tensors point into memory of the session, and the session into that of the interpreter.
        self._inputs, self._outputs = [], []
        self._session = None
        self._interpreter = None

    def _granted_threads(self) -> int:
        bits = np.float32(self._info(_THREADS))  # the binding reads MNN's integer as a float
        return int(bits.view(np.int32))

    def _info(self, code: int) -> Any:
        return self._interpreter.getSessionInfo(self._session, code)

    def _require(self, specs: Sequence[TensorSpec], found: Collection[str], *, all_of_them: bool) -> None:
        names = {spec.name for spec in specs}
        if not names >= set(found) or (all_of_them and names != set(found)):
            raise ExecutionError(
                f"what MNN opened is not {self.artifact.piece!r}: it has the tensors {sorted(found)}, "
                f"not {sorted(names)}"
            )

    def _use_inputs(self) -> None:
        if not self._fresh:
            raise ExecutionError(
                f"the inputs of {self.artifact.piece!r} are not there: copy them in before every run, "
                "because MNN overwrites them"
            )
        self._fresh = False

    def _check(self, code: int) -> None:
        if code != 0:
            raise ExecutionError(
                f"MNN failed to run {self.artifact.piece!r} on unit {self.receipt.unit!r} (error code {code})"
            )


class _OperatorClock:
    """Start and end of every operator of every run, as MNN's callbacks see them."""

    def __init__(self) -> None:
        self._names: list[tuple[str, str]] = []
        self._stamps_ns: list[int] = []
        self._runs: list[list[int]] = []

    def begin(self, tensors: Any, operator: Any) -> bool:
        """Note a start."""
        if not self._runs:
            self._names.append((operator.getName(), operator.getType()))
        self._stamps_ns.append(time.perf_counter_ns())
        return True

    def end(self, tensors: Any, operator: Any) -> bool:
        """Note an end."""
        self._stamps_ns.append(time.perf_counter_ns())
        return True

    def finish_run(self) -> None:
        """Keep the stamps of the run that has ended."""
        stamps = self._stamps_ns
        self._runs.append([end - start for start, end in zip(stamps[::2], stamps[1::2], strict=True)])
        self._stamps_ns = []

    def times(self) -> tuple[OperatorTime, ...]:
        """Return the median of each operator over the runs."""
        columns = zip(*self._runs, strict=True)
        return tuple(
            OperatorTime(output=name, kind=kind, time_us=median(column) / 1000)
            for (name, kind), column in zip(self._names, columns, strict=True)
        )


def _open(artifact: Artifact, unit: ProcessingUnit) -> tuple[Any, Any]:
    settings = unit.engine
    if settings.backend not in WORDS:
        raise PlacementError(
            f"MNN knows no backend {settings.backend!r} (unit {unit.name!r}); it knows {', '.join(WORDS)}"
        )
    options: dict[str, Any] = {
        "backend": WORDS[settings.backend],
        "precision": settings.precision.value,
        "memory": settings.memory.value,
    }
    if settings.backend == "cpu":  # elsewhere MNN takes this number for a set of tuning flags
        options["numThread"] = unit.threads or 1
    try:
        interpreter = MNN.Interpreter(artifact.path)
        session = interpreter.createSession(options)
    except Exception as error:
        raise ExecutionError(
            f"MNN cannot open {artifact.path}, made from piece {artifact.piece!r}: {error}"
        ) from error
    if interpreter.getSessionInfo(session, _RESIZE_STATUS) != 0:
        raise ExecutionError(
            f"MNN cannot work out the shapes of piece {artifact.piece!r} on unit {unit.name!r}"
        )
    return interpreter, session
