"""Backends by name. A backend is one file and one line here; others come as entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from ..formulations.errors import BackendFailedError, UnknownBackendError
from ..formulations.nearness import meant, shown
from .families import Family, families
from .protocol import Backend

ENTRY_POINT_GROUP = "gapless.backends"

_BUILT_IN = {
    "native": ".native:NativeBackend",
    "exhaustive": ".exhaustive:ExhaustiveBackend",
    "cpsat": ".exact.cp_sat:CpSatBackend",
    "z3": ".exact.z3:Z3Backend",
    "pulp": ".exact.pulp:PulpBackend",
    "pulp-cbc": ".exact.pulp:PulpCbcBackend",
}


def backend_names() -> tuple[str, ...]:
    """Return the names of all known backends: the built-in ones first, then entry points."""
    return tuple(dict.fromkeys((*_BUILT_IN, *_of_families(), *_entry_points())))


def get_backend(name: str) -> Backend:
    """Return a new backend by name; its solver is not imported yet.

    Raises
    ------
    UnknownBackendError
        There is no such name.
    BackendFailedError
        An entry point could not be loaded.
    """
    family = _of_families().get(name)
    if family is not None:
        found: Backend = family.load(family.backends[name])()
        return found
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        backend: Backend = getattr(import_module(module, __package__), attribute)()
        return backend
    targets = _entry_points()
    if name not in targets:
        hint = meant(name, backend_names(), listed_by="`gapless doctor` lists them")
        raise UnknownBackendError(f"no backend {shown(name)}; {hint}")
    try:
        loaded: Backend = import_module(targets[name][0]).__dict__[targets[name][1]]()
    except Exception as error:
        raise BackendFailedError(
            f"backend {name!r} of the entry-point group {ENTRY_POINT_GROUP} cannot be loaded from "
            f"{':'.join(targets[name])}: {type(error).__name__}: {error}"
        ) from error
    return loaded


def _of_families() -> dict[str, Family]:
    return {name: family for family in families().values() for name in family.backends}


def _entry_points() -> dict[str, tuple[str, str]]:
    return {point.name: (point.module, point.attr) for point in entry_points(group=ENTRY_POINT_GROUP)}
