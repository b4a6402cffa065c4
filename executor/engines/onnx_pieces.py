"""Engines that open ONNX as it is: pieces as files of the cache, and which package is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from ..engine import Artifact, artifact_of
from ..model import Piece
from .cache import Cache, cache_key, default_cache

_SUFFIX = ".onnx"


def write_pieces(pieces: Sequence[Piece], *, engine: str, folder: Path | None) -> tuple[Artifact, ...]:
    """Write pieces into the cache, or a folder, as they are; engines share the files.

    Raises
    ------
    StoreError
        The cache cannot take them.
    """
    store = default_cache() if folder is None else Cache(folder)
    return tuple(artifact_of(piece, engine=engine, path=_stored(piece, store)) for piece in pieces)


@cache
def package_version(module: str) -> str:
    """Return the version of the package that holds a module; packages have other names for other devices."""
    for name in metadata.packages_distributions().get(module, ()):
        return metadata.version(name)
    return ""


def _stored(piece: Piece, store: Cache) -> Path:
    key = cache_key(piece.digest, "onnx")
    return store.path(key, _SUFFIX) or store.put(key, _SUFFIX, piece.content.read())
