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
from .mnn_engine import WORDS, backend_name
from .narrowing import ELSEWHERE, check_fits, check_most
from .placement import receipt_of, require_match

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
        check_most(self.artifact, arrays, engine="MNN")
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
