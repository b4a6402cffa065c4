"""Engines that open ONNX as it is: pieces as files of the cache, and which package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import ClassVar

from ...formulations.availability import Availability
from ..engine import Artifact, artifact_of
from ..model import Piece
from .cache import Cache, cache_key, default_cache
from .helper import working_backends

_SUFFIX = ".onnx"


class OnnxEngine:
    """An engine of which a Python package opens ONNX files; what is left to say is how.

    `allow_mismatch`: whether sessions may open when something else is granted than was asked; their receipts
    tell.
    """

    name: ClassVar[str]
    _title: ClassVar[str]
    _module: ClassVar[str]
    _extra: ClassVar[str]
    _probed: ClassVar[tuple[str, ...]]

    def __init__(self, *, allow_mismatch: bool = False) -> None:
        self._allow_mismatch = allow_mismatch

    def availability(self) -> Availability:
        """Say whether its package is installed."""
        if util.find_spec(self._module) is None:
            reason = f"{self._title} is not installed: pip install 'gapless[{self._extra}]'"
            return Availability(ok=False, reason=reason)
        return Availability(ok=True, version=package_version(self._module))

    def backends(self) -> tuple[str, ...]:
        """Return the backends that open here, as found out once by a child process; "cpu" first."""
        return _backends(self.name, self._probed) if self.availability().ok else ()

    def takes(self, kind: str) -> bool:
        """Return whether it can run contents of a kind: "onnx"."""
        return kind == "onnx"

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Write pieces into the cache, or a folder, as they are; such engines share the files."""
        store = default_cache() if folder is None else Cache(folder)
        return tuple(artifact_of(piece, engine=self.name, path=_stored(piece, store)) for piece in pieces)


@cache
def package_version(module: str) -> str:
    """Return the version of the package that holds a module; packages have other names for other devices.

    Who has which module takes a third of a second to find out, in every worker.
    """
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(module)
    for name in metadata.packages_distributions().get(module, ()):
        return metadata.version(name)
    return ""


@cache
def _backends(engine: str, known: tuple[str, ...]) -> tuple[str, ...]:
    return working_backends(engine, known)


def _stored(piece: Piece, store: Cache) -> Path:
    key = cache_key(piece.digest, "onnx")
    return store.path(key, _SUFFIX) or store.put(key, _SUFFIX, piece.content.read())
