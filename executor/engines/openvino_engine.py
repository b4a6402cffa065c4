"""The engine "openvino": pieces are compiled by OpenVINO when they are opened."""

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
from .openvino_devices import DEVICES

if TYPE_CHECKING:
    from .openvino_session import OpenVinoSession


class OpenVinoEngine:
    """OpenVINO.

    Parameters
    ----------
    allow_mismatch
        Whether sessions may open when something else is granted than was asked; their receipts tell.
    """

    name: ClassVar[str] = "openvino"

    def __init__(self, *, allow_mismatch: bool = False) -> None:
        self._allow_mismatch = allow_mismatch

    def availability(self) -> Availability:
        """Say whether OpenVINO is installed."""
        if util.find_spec("openvino") is None:
            return Availability(ok=False, reason="OpenVINO is not installed: pip install 'gapless[openvino]'")
        return Availability(ok=True, version=package_version("openvino"))

    def backends(self) -> tuple[str, ...]:
        """Return the devices that open here, as found out once by a child process; "cpu" first."""
        return _backends() if self.availability().ok else ()

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind: "onnx"."""
        return kind == "onnx"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Write the pieces into the cache; they are compiled when they are opened.

        Raises
        ------
        StoreError
            The cache cannot take them.
        """
        return write_pieces(pieces, engine=self.name, folder=folder)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> OpenVinoSession:
        """Compile a piece for a unit, in this process.

        Raises
        ------
        PlacementError
            Another device, another number of threads or other cores were granted than was asked.
        ExecutionError
            OpenVINO cannot run the piece.
        """
        found = self.availability()
        if not found.ok:
            raise EngineUnavailableError(found.reason)
        from .openvino_session import OpenVinoSession

        return OpenVinoSession(artifact, unit, version=found.version, allow_mismatch=self._allow_mismatch)


@cache
def _backends() -> tuple[str, ...]:
    from .probe import working_backends

    return working_backends(OpenVinoEngine.name, tuple(DEVICES))
