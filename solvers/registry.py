"""Backends by name: those for every formulation here, those for one with its `Family`, others as plug-ins."""

from __future__ import annotations

from collections.abc import Iterable

from ..formulations.errors import BackendError, BackendFailedError, UnknownBackendError
from ..formulations.nearness import meant, shown
from ..formulations.plugins import (
    REFERENCE_FORMS,
    PluginError,
    entry_point_names,
    is_reference,
    load_entry_point,
    load_reference,
    reference_hint,
)
from ..formulations.problem import Problem
from .families import Family, families
from .protocol import Backend, Capabilities, Support

ENTRY_POINT_GROUP = "gapless.backends"

_BUILT_IN = ("native", "exhaustive", "cpsat", "z3", "pulp", "pulp-cbc")


def _built_in(name: str) -> Backend:
    """Return a backend of `_BUILT_IN`; no other is loaded."""
    found: type[Backend]
    match name:
        case "native":
            from .native import NativeBackend as found
        case "exhaustive":
            from .exhaustive import ExhaustiveBackend as found
        case "cpsat":
            from .exact.cp_sat import CpSatBackend as found
        case "z3":
            from .exact.z3 import Z3Backend as found
        case "pulp":
            from .exact.pulp import PulpBackend as found
        case _:
            from .exact.pulp import PulpCbcBackend as found
    return found()


def backend_names() -> tuple[str, ...]:
    """Return the names of all known backends: the built-in ones first, then entry points."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_of_families(), *entry_point_names(ENTRY_POINT_GROUP))))


def get_backend(name: str) -> Backend:
    """Return a new backend by name; its solver is not imported yet.

    Parameters
    ----------
    name
        A registered name, or "module:Class" or "file.py:Class" of a backend of your own.

    Raises
    ------
    UnknownBackendError
        There is no such name, or a backend of your own could not be loaded.
    BackendFailedError
        An entry point could not be loaded.
    """
    if name in _BUILT_IN:
        return _built_in(name)
    family = _of_families().get(name)
    if family is not None:
        return next(made for found in family.classes() if (made := found()).name == name)
    if name in entry_point_names(ENTRY_POINT_GROUP):
        try:
            return _checked(load_entry_point(ENTRY_POINT_GROUP, name, what="backend", like=Backend), name)
        except PluginError as error:
            raise BackendFailedError(str(error)) from error
    if is_reference(name):
        try:
            return _checked(load_reference(name, what="backend", like=Backend), name)
        except PluginError as error:
            raise UnknownBackendError(str(error)) from error
    own = f"`gapless doctor` lists them; one of your own is {REFERENCE_FORMS}"
    hint = reference_hint(name) or meant(name, backend_names(), listed_by=own)
    raise UnknownBackendError(f"no backend {shown(name)}; {hint}")


def support_of(name: str, problem: Problem) -> Support | None:
    """Return what a backend can do for problems like this one; None: nothing, or it is not known here."""
    try:
        return get_backend(name).capabilities.support(problem)
    except BackendError:
        return None


def get_backends(backends: Iterable[str | Backend]) -> list[Backend]:
    """Return backends of which some are given by name; errors as for `get_backend`."""
    return [get_backend(each) if isinstance(each, str) else each for each in backends]


def _of_families() -> dict[str, Family]:
    return {name: family for family in families().values() for name in family.backends}


def _checked(backend: Backend, name: str) -> Backend:
    """Return a backend of somebody else if what every caller reads from it is of the right kind."""
    if not isinstance(backend.name, str) or not backend.name:
        raise PluginError(f"backend {shown(name)} cannot be used: its name is {backend.name!r}, not a text")
    if not isinstance(backend.capabilities, Capabilities):
        kind = type(backend.capabilities).__name__
        raise PluginError(
            f"backend {shown(name)} cannot be used: its capabilities are {kind}, not Capabilities"
        )
    return backend
