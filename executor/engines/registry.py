"""Engines by name. An engine is one or two files and one line here; others come as entry points."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from ...formulations.errors import EngineUnavailableError, InvalidInputError
from ...formulations.nearness import meant
from ..engine import Engine

ENTRY_POINT_GROUP = "gapless.engines"

_BUILT_IN = {
    "mnn": ".mnn_engine:MnnEngine",
    "onnxruntime": ".ort_engine:OrtEngine",
    "callable": ".callable_engine:CallableEngine",
}


def engine_names() -> tuple[str, ...]:
    """Return the names of all known engines: the built-in ones first, then entry points."""
    return (*_BUILT_IN, *(name for name in _entry_points() if name not in _BUILT_IN))


def get_engine(name: str) -> Engine:
    """Return a new engine by name; what it runs on is not imported yet.

    Parameters
    ----------
    name
        A registered name, or "module:Class" of an engine of your own.

    Raises
    ------
    InvalidInputError
        There is no such name.
    EngineUnavailableError
        An engine of your own could not be loaded.
    """
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        engine: Engine = getattr(import_module(module, __package__), attribute)()
        return engine
    targets = _entry_points()
    module, found, attribute = name.partition(":")
    if name in targets:
        module, attribute = targets[name]
    elif not found:
        raise InvalidInputError(f"no engine {name!r}; {meant(name, engine_names())}")
    try:
        loaded: Engine = getattr(import_module(module), attribute)()
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == module
        hint = "; for a file in this folder set PYTHONPATH=." if missing else ""
        why = f"{type(error).__name__}: {error}{hint}"
        raise EngineUnavailableError(
            f"engine {name!r} cannot be loaded from {module}:{attribute}: {why}"
        ) from error
    return loaded


def _entry_points() -> dict[str, tuple[str, str]]:
    return {point.name: (point.module, point.attr) for point in entry_points(group=ENTRY_POINT_GROUP)}
