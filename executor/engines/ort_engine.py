"""The engine "onnxruntime": pieces are run as they are. The second opinion beside MNN."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ...formulations.availability import Availability
from ...formulations.errors import EngineUnavailableError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact
from ..model import Piece
from .onnx_pieces import package_version, write_pieces
from .ort_providers import PROVIDERS

if TYPE_CHECKING:
    from .ort_session import OrtSession


class OrtEngine:
    """ONNX Runtime.

    Parameters
    ----------
    allow_mismatch
        Whether sessions may open when something else is granted than was asked; their receipts tell.
    """

    name: ClassVar[str] = "onnxruntime"

    def __init__(self, *, allow_mismatch: bool = False) -> None:
        self._allow_mismatch = allow_mismatch

    def availability(self) -> Availability:
        """Say whether ONNX Runtime is installed."""
        if util.find_spec("onnxruntime") is None:
            return Availability(ok=False, reason="ONNX Runtime is not installed: pip install 'gapless[ort]'")
        return Availability(ok=True, version=package_version("onnxruntime"))

    def backends(self) -> tuple[str, ...]:
        """Return the backends that open here, as found out once by a child process; "cpu" first."""
        return _backends() if self.availability().ok else ()

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind: "onnx"."""
        return kind == "onnx"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Write the pieces into the cache.

        Raises
        ------
        StoreError
            The cache cannot take them.
        """
        return write_pieces(pieces, engine=self.name, folder=folder)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> OrtSession:
        """Open a session in this process.

        Raises
        ------
        PlacementError
            Another backend, another number of threads or other cores were granted than was asked.
        ExecutionError
            The artifact cannot be opened.
        """
        found = self.availability()
        if not found.ok:
            raise EngineUnavailableError(found.reason)
        from .ort_session import OrtSession

        return OrtSession(artifact, unit, version=found.version, allow_mismatch=self._allow_mismatch)


@cache
def _backends() -> tuple[str, ...]:
    from .probe import working_backends

    return working_backends(OrtEngine.name, tuple(PROVIDERS))
