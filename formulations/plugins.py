"""Plug-ins: entry points of installed packages, and references `module:NAME` and `file.py:NAME`.

The one place where code that gapless does not know is found, imported and executed. What it prints goes to
standard error, because standard output belongs to the document of the caller.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from .errors import GaplessError, InvalidInputError
from .validation import meant, near, python_hint, shown

MAX_FILE_BYTES = 16 * 2**20
"""Largest file that is read: far above any source, far below what would exhaust a board."""

REFERENCE_FORMS = "module:Class or file.py:Class"

_PRIVATE = "_gapless_"
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


T = TypeVar("T")


class PluginError(InvalidInputError):
    """A plug-in that cannot be loaded; the message says what, where and why."""


def entry_point_names(group: str) -> tuple[str, ...]:
    """Return the names of the entry points of a group, in the order in which packages are found."""
    return tuple(_targets(group))


def load_entry_point(group: str, name: str, *, what: str, like: type) -> Any:
    """Load the object behind an entry point.

    `group`, `name`: which one; the name is one of `entry_point_names(group)`; `what`: what it is to be, for
    messages: "backend"; `like`: the protocol that it has to follow, or the class that it has to be of.
    Returns an instance if the entry point names a class or a function that makes one, otherwise the object.
    Raises PluginError: it cannot be imported or made, or does not follow the protocol.
    """
    target = _targets(group)[name]
    module, _, attribute = target.partition(":")
    try:
        return _made(_attribute(_imported(module, attribute), attribute), attribute, what=what, like=like)
    except PluginError as error:
        raise PluginError(
            f"{what} {name!r} of the entry-point group {group} cannot be loaded from {target}: {error}"
        ) from error.__cause__


class Companions(Generic[T]):
    """What a package of gapless has for single formulations, by their names.

    It is registered, or the attribute of a module of the package that is called like the formulation, or an
    entry point. Nothing is loaded before it is asked for.

    `package`, `attribute`: where gapless has its own; `group`: the group of entry points; `what`, `like`: as
    for `load_entry_point`; `default`: what there is for all other formulations.
    """

    def __init__(
        self, package: str, attribute: str, group: str, *, what: str, like: type[T], default: T
    ) -> None:
        self._package, self._attribute, self._group = package, attribute, group
        self._what, self._like, self._default = what, like, default
        self._known: dict[str, T] = {}

    def register(self, formulation: str, companion: T) -> None:
        """Make known in this process what there is for a formulation."""
        self._known[formulation] = companion

    def of(self, formulation: str) -> T:
        """Return what there is for a formulation.

        Raises PluginError: that of another package cannot be loaded.
        """
        if formulation not in self._known:
            found = self._found(formulation)
            if found is None:
                return self._default
            self._known[formulation] = found
        return self._known[formulation]

    def _found(self, formulation: str) -> T | None:
        home = f"{self._package}.{formulation}"
        if formulation.isidentifier() and find_spec(home) is not None:
            own: T | None = getattr(import_module(home), self._attribute, None)
            if own is not None:
                return own
        if formulation not in entry_point_names(self._group):
            return None
        loaded: T = load_entry_point(self._group, formulation, what=self._what, like=self._like)
        return loaded


def is_reference(text: str) -> bool:
    """Return whether a text is meant as a reference, such as "module:NAME", and not as a name."""
    return ":" in text


def is_file_reference(text: str) -> bool:
    """Return whether a reference is to a Python file, such as "file.py:NAME"."""
    return _is_path(text.rpartition(":")[0])


def load_reference(text: str, *, what: str, like: type) -> Any:
    """Load the object that a reference names.

    `text`: "module:NAME" of something that can be imported, or "file.py:NAME". A file is executed once, under
    a private module name; it may import modules that lie beside it while it is executed. `what`, `like`, and
    what is returned: as for `load_entry_point`.
    Raises PluginError: there is no such module, file or name, or as for `load_entry_point`.
    """
    where, _, attribute = text.rpartition(":")
    try:
        if not _DOTTED.fullmatch(attribute) or not (_is_path(where) or _DOTTED.fullmatch(where)):
            raise PluginError(f"write {REFERENCE_FORMS}")
        module = _loaded_file(Path(where)) if _is_path(where) else _imported(where, attribute)
        return _made(_attribute(module, attribute), attribute, what=what, like=like)
    except PluginError as error:
        raise PluginError(f"{what} {shown(text)} cannot be loaded: {error}") from error.__cause__


_TRUSTED: set[str] = set()


def trust(*references: str) -> None:
    """Let Python code run that files of data name: only what the user names may run.

    Models, engines and policies that are given by name are trusted by that already; this is for files that
    name them: a problem whose model is a pipeline of Python functions, or that an engine of yours measured.

    Parameters
    ----------
    references
        "file.py:NAME" or "module:NAME", as the file names it.

    Examples
    --------
    >>> import gapless
    >>> gapless.trust("pointcloud.py:POINTCLOUD")
    """
    _TRUSTED.update(map(_absolute, references))


def require_trusted(reference: str, what: str) -> None:
    """Refuse Python code that only a file of data names: who opens a file does not run its code.

    Raises InvalidInputError: it is code, and the user of this process has not named it.
    """
    if is_reference(reference) and _absolute(reference) not in _TRUSTED:
        name = shown(reference)
        raise InvalidInputError(
            f"{what} is {name}: that is Python code, and what only a file names is not run. If you "
            f"trust it, add --trust {name} (in Python: gapless.trust({name}))"
        )


def _absolute(reference: str) -> str:
    """Return a reference with the whole path of its file."""
    where, _, attribute = reference.rpartition(":")
    return f"{Path(where).absolute()}:{attribute}" if _is_path(where) else reference


def reference_hint(name: str) -> str:
    """Return how a class in a Python file is named, if a file was given without one; otherwise empty."""
    return f"name the class in the file: {name}:CLASS" if name.endswith(".py") else ""


def read_source(path: Path, *, otherwise: str = "") -> bytes:
    """Return the content of a Python file.

    `path`: the file; `otherwise`: what to say when there is no such file, and none in its folder has a
    similar name.
    Raises PluginError: it is no file, cannot be read, or is too large.
    """
    try:
        if not path.is_file():
            hint = _similar_file(path) or otherwise
            raise PluginError(f"there is no file {path}" + (f"; {hint}" if hint else ""))
        with path.open("rb") as file:
            source = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise PluginError(f"cannot read {path}: {error.strerror or error}") from error
    if len(source) > MAX_FILE_BYTES:
        raise PluginError(f"{path} is larger than {MAX_FILE_BYTES} bytes: no Python source")
    return source


def new_module(path: Path) -> ModuleType:
    """Return an empty module for a Python file, under a name that no other file has."""
    digest = hashlib.sha256(str(path.absolute()).encode(errors="surrogateescape")).hexdigest()
    module = ModuleType(f"{_PRIVATE}{digest[:16]}")
    module.__file__ = str(path)
    return module


def execute(module: ModuleType, source: bytes) -> None:
    """Execute source code in a module of `new_module`; whatever it raises comes through."""
    path = str(module.__file__)
    with _importable(Path(path).absolute().parent), contextlib.redirect_stdout(sys.stderr):
        sys.modules[module.__name__] = module  # dataclasses look their module up by name
        try:
            exec(compile(source, path, "exec", dont_inherit=True), vars(module))
        except BaseException:
            del sys.modules[module.__name__]
            raise


def import_named(name: str) -> ModuleType:
    """Import a module by its dotted name; whatever it raises comes through."""
    with contextlib.redirect_stdout(sys.stderr):
        return import_module(name)


def complaint(where: str, path: Path, error: BaseException, defined: Iterable[str] = ()) -> str:
    """Return what to say about source code that raised an exception.

    `where`: what the user calls it; `path`: its file; `error`: what it raised; `defined`: names that it had
    defined by then.
    """
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{where}, line {error.lineno}: {error.msg}"
    if isinstance(error, GaplessError):
        return f"{where}: {error}"
    line = f", line {number}" if (number := line_in(error, str(path))) else ""
    return f"{where}{line} raised {type(error).__name__}: {error}{python_hint(error, defined)}"


def line_in(error: BaseException, filename: str) -> int | None:
    """Return the deepest line of a file that an exception came through, or None."""
    found, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename:
            found = trace.tb_lineno
        trace = trace.tb_next
    return found


def _targets(group: str) -> Mapping[str, str]:
    return _targets_on(group, tuple(sys.path))


@cache
def _targets_on(group: str, path: tuple[str, ...]) -> Mapping[str, str]:
    """Return the entry points of a group by name; reading those of all packages takes 20 ms."""
    return {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=group)}


def _is_path(where: str) -> bool:
    return where.endswith(".py") or "/" in where or "\\" in where


def _imported(name: str, attribute: str) -> ModuleType:
    try:
        return import_named(name)
    except (Exception, SystemExit) as error:
        hint = python_hint(error)
        if isinstance(error, ModuleNotFoundError) and error.name in (name, name.partition(".")[0]):
            file = Path(*name.split(".")).with_suffix(".py")
            form = f"write {file}:{attribute}, or " if file.is_file() else ""
            hint = f"; for a file in this folder {form}set PYTHONPATH=."
        raise PluginError(f"{type(error).__name__}: {error}{hint}") from error


def _loaded_file(path: Path) -> ModuleType:
    return _executed(path.absolute(), read_source(path))


@lru_cache(maxsize=64)
def _executed(path: Path, source: bytes) -> ModuleType:
    """Execute a file once: two classes of the same name would not be equal."""
    module = new_module(path)
    try:
        execute(module, source)
    except (Exception, SystemExit) as error:
        raise PluginError(complaint(str(path), path, error, vars(module))) from error
    return module


def _attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            where = module.__file__ if module.__name__.startswith(_PRIVATE) else module.__name__
            own = [
                key
                for key, value in vars(module).items()
                if isinstance(value, type) and value.__module__ == module.__name__
            ]
            hint = f"; {meant(name, own)}" if own else ""
            raise PluginError(f"{where} has no {shown(name)}{hint}") from None
    return found


def _made(found: Any, name: str, *, what: str, like: type) -> Any:
    """Return the object that was found, or what it makes when it is called, if it follows a protocol."""
    article = "an" if what[0] in "aeiou" else "a"
    try:
        if isinstance(found, type) or (callable(found) and _lacks(found, like)):
            name = f"{name}()"
            with contextlib.redirect_stdout(sys.stderr):
                found = found()
        lacks = _lacks(found, like)
    except (Exception, SystemExit) as error:
        said = f"{type(error).__name__}: {error}{python_hint(error)}"
        raise PluginError(f"{name} raised {said}{_place(error)}") from error
    if lacks:
        raise PluginError(f"{name} is not {article} {what}: {lacks}")
    return found


def _lacks(found: Any, like: type) -> str:
    """Return what is missing for something to follow a protocol or to be of a class; empty: nothing."""
    if not getattr(like, "_is_protocol", False):
        return "" if isinstance(found, like) else f"it is of {type(found).__name__}, not of {like.__name__}"
    members = [member for member in vars(like) if not member.startswith("_")]
    missing = [repr(member) for member in members if not hasattr(found, member)]
    return f"it has no {', '.join(missing)}" if missing else ""


def _place(error: BaseException) -> str:
    """Return the line of somebody else's code that raised an exception; empty if it was the call itself."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = __file__ if trace is None else trace.tb_frame.f_code.co_filename
    return "" if trace is None or file == __file__ else f" ({file}, line {trace.tb_lineno})"


def _similar_file(path: Path) -> str:
    try:
        found = near(path.name, [file.name for file in path.parent.glob("*.py")])
    except OSError:
        return ""
    return f"did you mean {' or '.join(str(path.with_name(name)) for name in found)}?" if found else ""


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let a file import the modules beside it; afterwards their names are free for other folders."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # the file may have changed it
            sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            top = name.partition(".")[0]
            if top not in before and _lies_in(sys.modules[name], top, folder):
                del sys.modules[name]


def _lies_in(module: ModuleType, top: str, folder: Path) -> bool:
    """Return whether a module was found in this very folder, not in an environment somewhere below it."""
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if file is None or folder not in Path(file).parents:
        return False
    return Path(file).relative_to(folder).parts[0].partition(".")[0] == top
