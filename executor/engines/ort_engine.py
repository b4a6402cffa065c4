"""The engine "onnxruntime": pieces are run as they are. The second opinion beside MNN."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ...formulations.availability import Availability
from ...formulations.errors import EngineUnavailableError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, artifact_of
from ..model import Piece
from .cache import Cache, cache_key, default_cache
from .ort_providers import PROVIDERS

if TYPE_CHECKING:
    from .ort_session import OrtSession

_SUFFIX = ".onnx"


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
        return Availability(ok=True, version=_installed_version())

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
        store = default_cache() if folder is None else Cache(folder)
        return tuple(artifact_of(piece, engine=self.name, path=_stored(piece, store)) for piece in pieces)

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


def _stored(piece: Piece, store: Cache) -> Path:
    key = cache_key(piece.digest, "onnx")
    return store.path(key, _SUFFIX) or store.put(key, _SUFFIX, piece.content.read())


@cache
def _installed_version() -> str:
    """Return the version; the package has other names where it is built for other devices."""
    for name in metadata.packages_distributions().get("onnxruntime", ()):
        return metadata.version(name)
    return ""


@cache
def _backends() -> tuple[str, ...]:
    from .probe import working_backends

    return working_backends(OrtEngine.name, tuple(PROVIDERS))
