"""Python files that hold pipelines: read once, checked by their digest, executed under a private name."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Self

from ..formulations.errors import GaplessError, InvalidModelError

MAX_FILE_BYTES = 16 * 2**20
"""Largest file that is read: far above any source, far below what would exhaust a board."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableFile:
    """A Python file as it was when it was read: what is executed is what the digest is of.

    Attributes
    ----------
    path
        Its absolute path.
    source
        Its content.
    """

    path: Path
    source: bytes

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises
        ------
        InvalidModelError
            There is no such file, or it cannot be read.
        """
        path = path.absolute()
        try:
            if not path.is_file():
                raise InvalidModelError(f"there is no file {path}; a pipeline is named path.py:NAME")
            with path.open("rb") as file:
                source = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise InvalidModelError(f"cannot read {path}: {error.strerror or error}") from error
        if len(source) > MAX_FILE_BYTES:
            raise InvalidModelError(f"{path} is larger than {MAX_FILE_BYTES} bytes: no Python source")
        return cls(path=path, source=source)

    @property
    def digest(self) -> str:
        """Hexadecimal digest of its content; modules that it imports are not covered."""
        return hashlib.sha256(self.source).hexdigest()

    def execute(self) -> ModuleType:
        """Execute it as a module; what it prints goes to standard error.

        Raises
        ------
        InvalidModelError
            It is not Python, or it raised an exception; the message says in which line.
        """
        name = f"_gapless_{hashlib.sha256(str(self.path).encode()).hexdigest()[:16]}"
        module = ModuleType(name)
        module.__file__ = str(self.path)
        with _neighbours(self.path.parent), contextlib.redirect_stdout(sys.stderr):
            sys.modules[name] = module  # dataclasses look their module up by name
            try:
                exec(compile(self.source, str(self.path), "exec", dont_inherit=True), module.__dict__)
            except (Exception, SystemExit) as error:
                del sys.modules[name]
                raise InvalidModelError(_complaint(self.path, error)) from error
        return module


@contextlib.contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
    """Let a file import the modules beside it; afterwards their names are free for other folders."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and folder in Path(file).parents and not name.startswith("_gapless_"):
                del sys.modules[name]


def _complaint(path: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}, line {error.lineno}: {error.msg}"
    if isinstance(error, GaplessError):
        return f"{path}: {error}"
    where = f", line {line}" if (line := line_in(error, str(path))) else ""
    return f"{path}{where} raised {type(error).__name__}: {error}"


def line_in(error: BaseException, filename: str) -> int | None:
    """Return the deepest line of a file that an exception came through, or None."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found
