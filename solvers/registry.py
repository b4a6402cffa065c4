"""Backends by name. A backend is one file and one line here; others come as entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from ..formulations.errors import BackendFailedError, UnknownBackendError
from ..formulations.nearness import meant, shown
from .protocol import Backend

ENTRY_POINT_GROUP = "gapless.backends"

_BUILT_IN = {
    "native": ".native:NativeBackend",
    "exhaustive": ".exhaustive:ExhaustiveBackend",
    "cpsat": ".exact.cp_sat:CpSatBackend",
    "z3": ".exact.z3:Z3Backend",
    "z3-paper": ".chunking.z3_paper:Z3PaperBackend",
    "pulp": ".exact.pulp:PulpBackend",
    "pulp-cbc": ".exact.pulp:PulpCbcBackend",
    "hetero2pipe": ".flow_shop.hetero2pipe:Hetero2PipeBackend",
    "hetero2pipe-noct": ".flow_shop.hetero2pipe:NoContentionNoTailBackend",
    "hetero2pipe-noc": ".flow_shop.hetero2pipe:NoContentionBackend",
    "hetero2pipe-not": ".flow_shop.hetero2pipe:NoTailBackend",
    "hungarian": ".flow_shop.hetero2pipe:HungarianBackend",
    "annealing": ".flow_shop.annealing:AnnealingBackend",
    "serial": ".flow_shop.baselines:SerialBackend",
    "pipe-it": ".flow_shop.hetero2pipe:PipeItBackend",
    "band": ".flow_shop.baselines:BandBackend",
}


def backend_names() -> tuple[str, ...]:
    """Return the names of all known backends: the built-in ones first, then entry points."""
    return (*_BUILT_IN, *(name for name in _entry_points() if name not in _BUILT_IN))


def get_backend(name: str) -> Backend:
    """Return a new backend by name; its solver is not imported yet.

    Raises
    ------
    UnknownBackendError
        There is no such name.
    BackendFailedError
        An entry point could not be loaded.
    """
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


def _entry_points() -> dict[str, tuple[str, str]]:
    return {point.name: (point.module, point.attr) for point in entry_points(group=ENTRY_POINT_GROUP)}
