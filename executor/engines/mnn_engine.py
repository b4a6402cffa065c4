"""The engine "mnn": pieces are converted once, kept in the cache, and run by MNN's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ...formulations.availability import Availability
from ...formulations.errors import ConversionError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, artifact_of, installed_version
from ..model import Piece
from .cache import Cache, cache_key, default_cache
from .conversion import OPTIONS, Conversion, convert
from .mnn_backends import WORDS

if TYPE_CHECKING:
    from .mnn_session import MnnSession

_SUFFIX = ".mnn"


class MnnEngine:
    """MNN, by its session interface.

    `allow_mismatch`: whether sessions may open when MNN grants something else than was asked; their receipts
    tell.
    """

    name: ClassVar[str] = "mnn"

    def __init__(self, *, allow_mismatch: bool = False) -> None:
        self._allow_mismatch = allow_mismatch

    def availability(self) -> Availability:
        """Say whether MNN and its converter are installed."""
        if util.find_spec("MNN") is None or util.find_spec("_tools") is None:
            return Availability(ok=False, reason="MNN is not installed: pip install 'gapless[mnn]'")
        return Availability(ok=True, version=metadata.version("MNN"))

    def backends(self) -> tuple[str, ...]:
        """Return the backends that open here, as found out once by a child process; "cpu" first."""
        return _backends() if self.availability().ok else ()

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind: "onnx"."""
        return kind == "onnx"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Convert the pieces that the cache does not have yet, all in one child process.

        Raises EngineUnavailableError: MNN is not installed; StoreError: the cache cannot take the result.
        """
        store = default_cache() if folder is None else Cache(folder)
        version = installed_version(self.availability())
        keys = {piece.digest: cache_key(piece.digest, self.name, version, *OPTIONS) for piece in pieces}
        paths = {digest: path for digest, key in keys.items() if (path := store.path(key, _SUFFIX))}
        missing = tuple({piece.digest: piece for piece in pieces if piece.digest not in paths}.values())
        problems: dict[str, str] = {}
        with closing(convert(missing)) as conversions:
            for piece, made in zip(missing, conversions, strict=True):
                if made.content is None:
                    problems[piece.name] = made.problem
                else:
                    paths[piece.digest] = store.put(keys[piece.digest], _SUFFIX, made.content)
        if problems:
            listed = "\n".join(f"{name}: {problem}" for name, problem in problems.items())
            raise ConversionError(f"MNN cannot run {listed}", problems)
        return tuple(artifact_of(piece, engine=self.name, path=paths[piece.digest]) for piece in pieces)

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> MnnSession:
        """Open a session in this process.

        Raises PlacementError: MNN granted another backend, another number of threads or other cores than was
        asked; ExecutionError: the artifact cannot be opened.
        """
        version = installed_version(self.availability())
        from .mnn_session import MnnSession

        return MnnSession(artifact, unit, version=version, allow_mismatch=self._allow_mismatch)


def trial(piece: Piece) -> Conversion:
    """Convert a piece, usually a whole model, only to see what stands in the way; nothing is kept.

    Raises EngineUnavailableError: MNN is not installed.
    """
    installed_version(MnnEngine().availability())
    with closing(convert([piece])) as conversions:
        return next(conversions)


@cache
def _backends() -> tuple[str, ...]:
    from .probe import working_backends

    return working_backends("mnn", tuple(WORDS))
