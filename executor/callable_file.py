"""Where pipelines stand: files, executed under a private name, and modules of installed packages.

Both are checked by a digest of their sources, so that a worker runs what was loaded, or refuses.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Protocol, Self

from ..formulations.errors import InvalidModelError
from ..formulations.plugins import PluginError, complaint, execute, import_named, new_module, read_source

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


class CallableSource(Protocol):
    """Python source that defines pipelines."""

    @property
    def where(self) -> str:
        """Its name in locators: what `source_of` takes."""
        ...

    @property
    def path(self) -> Path:
        """Its file."""
        ...

    @property
    def digest(self) -> str:
        """Hexadecimal digest of what is executed."""
        ...

    def execute(self) -> ModuleType:
        """Return it as a module.

        Raises InvalidModelError: it is not Python, or it raised an exception.
        """
        ...


def source_of(where: str) -> CallableSource:
    """Return the source of a name: the path of a file, or the dotted name of a module in a package."""
    if _MODULE.fullmatch(where) and not where.endswith(".py"):
        return CallableModule.find(where)
    return CallableFile.read(Path(where))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableFile:
    """A Python file as it was when it was read: what is executed is what the digest is of."""

    path: Path  # its absolute path
    source: bytes  # its content

    @property
    def where(self) -> str:
        """Its path."""
        return str(self.path)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file."""
        path = path.absolute()
        return cls(path=path, source=_content(path))

    @property
    def digest(self) -> str:
        """Hexadecimal digest of its content; modules that it imports are not covered."""
        return hashlib.sha256(self.source).hexdigest()

    def execute(self) -> ModuleType:
        """Execute it as a module; what it prints goes to standard error."""
        module = new_module(self.path)
        try:
            execute(module, self.source)
        except (Exception, SystemExit) as error:
            raise InvalidModelError(complaint(self.where, self.path, error, vars(module))) from error
        return module


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableModule:
    """A module of an installed package, as it was when it was found; imported once by each process."""

    name: str  # its dotted name
    path: Path  # its file
    digest: str  # hexadecimal digest of the Python files in its folder: its neighbours are what it is made of

    @classmethod
    def find(cls, name: str) -> Self:
        """Find a module by its dotted name; the packages that it is in are imported."""
        try:
            spec = find_spec(name)
        except Exception as error:  # whatever a package does when it is imported
            raise InvalidModelError(f"cannot find the module {name}: {error}") from error
        if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
            raise InvalidModelError(
                f"there is no Python module {name}; a pipeline is named path.py:NAME or package.module:NAME"
            )
        path = Path(str(spec.origin))
        digest = hashlib.sha256()
        for neighbour in sorted(path.parent.glob("*.py")):
            digest.update(f"{neighbour.name} {hashlib.sha256(_content(neighbour)).hexdigest()} ".encode())
        return cls(name=name, path=path, digest=digest.hexdigest())

    @property
    def where(self) -> str:
        """Its dotted name."""
        return self.name

    def execute(self) -> ModuleType:
        """Import it; what it prints goes to standard error."""
        try:
            return import_named(self.name)
        except (Exception, SystemExit) as error:
            raise InvalidModelError(complaint(self.name, self.path, error)) from error


def _content(path: Path) -> bytes:
    try:
        return read_source(path, otherwise="a pipeline is named path.py:NAME")
    except PluginError as error:
        raise InvalidModelError(str(error)) from error
