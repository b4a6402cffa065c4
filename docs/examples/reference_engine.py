"""An engine of your own: ONNX pieces run by the reference evaluator of the `onnx` package.

    gapless device bench model.onnx --engine reference_engine:ReferenceEngine

It is slow, runs on one thread of one core, and shows everything that an engine has to do.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from gapless.executor.engine import Artifact, OperatorTime, PlacementReceipt, artifact_of
from gapless.executor.engines.cache import default_cache
from gapless.executor.engines.placement import receipt_of, require_match
from gapless.executor.model import Piece
from gapless.formulations.availability import Availability
from gapless.formulations.errors import ExecutionError
from gapless.formulations.hardware import ProcessingUnit


class ReferenceSession:
    """A piece that is open in this process, which has been pinned to the cores of the unit before."""

    def __init__(self, artifact: Artifact, unit: ProcessingUnit) -> None:
        self.artifact = artifact
        try:
            self._evaluator = ReferenceEvaluator(artifact.path)
        except Exception as error:
            raise ExecutionError(f"{artifact.piece!r} cannot be opened: {error}") from error
        self._inputs: dict[str, NDArray[Any]] = {}
        self._outputs: list[NDArray[Any]] = []
        # What is really granted, not what was asked: gapless refuses or reports the difference.
        self.receipt: PlacementReceipt = receipt_of(
            unit, artifact.piece, f"onnx {version('onnx')}", granted_backend="cpu", granted_threads=1
        )
        require_match(self.receipt)

    def copy_in(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the inputs."""
        names = [spec.name for spec in self.artifact.inputs]
        self._inputs = {name: array.copy() for name, array in zip(names, arrays, strict=True)}

    def run(self) -> None:
        """Compute."""
        wanted = [spec.name for spec in self.artifact.outputs]
        try:
            self._outputs = [np.asarray(a) for a in self._evaluator.run(wanted, self._inputs)]
        except Exception as error:
            raise ExecutionError(f"{self.artifact.piece!r} failed: {error}") from error

    def copy_out(self, arrays: Sequence[NDArray[Any]]) -> None:
        """Copy the outputs of the last run into given arrays."""
        for array, output in zip(arrays, self._outputs, strict=True):
            np.copyto(array, output, casting="no")

    def operator_times(
        self, arrays: Sequence[NDArray[Any]], *, repetitions: int
    ) -> tuple[OperatorTime, ...] | None:
        """Return None: the profiler then measures chunks instead of operators."""
        return None

    def close(self) -> None:
        """Free everything."""
        self._inputs, self._outputs = {}, []


class ReferenceEngine:
    """What the profiler and the pipeline talk to."""

    name: ClassVar[str] = "reference_engine:ReferenceEngine"  # by which workers find it, too

    def availability(self) -> Availability:
        """Say that it is there: `onnx` comes with gapless."""
        return Availability(ok=True, version=version("onnx"))

    def backends(self) -> tuple[str, ...]:
        """Return what really works here, "cpu" first."""
        return ("cpu",)

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind: "onnx"."""
        return kind == "onnx"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Write each piece into a file, as it is: a self-contained ONNX model."""
        return tuple(artifact_of(piece, engine=self.name, path=_written(piece, folder)) for piece in pieces)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> ReferenceSession:
        """Open a session in this process."""
        return ReferenceSession(artifact, unit)


def _written(piece: Piece, folder: Path | None) -> Path:
    if folder is None:
        cache = default_cache()
        return cache.path(piece.digest, ".onnx") or cache.put(piece.digest, ".onnx", piece.content.read())
    path = folder.absolute() / f"{piece.digest}.onnx"
    path.write_bytes(piece.content.read())
    return path
