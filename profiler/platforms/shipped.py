"""The data files beside this module."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable

from ...formulations.files import Document, Schema, parse


def read_shipped(path: str, schema: Schema[Document]) -> Document:
    """Read a shipped file of a known kind; `path` is relative to this folder."""
    return parse(_root().joinpath(path).read_bytes(), schema, name=f"shipped {path}")


def file_names(folder: str) -> tuple[str, ...]:
    """Return the names of the shipped JSON files of a folder, without their ending."""
    entries = (entry.name for entry in _root().joinpath(folder).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in entries if name.endswith(".json")))


def folders_with(file: str) -> Iterator[str]:
    """Yield the folders that hold a file of a name."""
    for folder in _root().iterdir():
        if folder.is_dir() and folder.joinpath(file).is_file():
            yield folder.name


def _root() -> Traversable:
    return files(__package__)
