"""Engines by name. An engine is one or two files and one line here; others come as plug-ins."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from ...formulations.errors import EngineUnavailableError, InvalidInputError
from ...formulations.nearness import meant, shown
from ...formulations.plugins import (
    PluginError,
    entry_point_names,
    is_file_reference,
    is_reference,
    load_entry_point,
    load_reference,
    reference_hint,
)
from ..engine import Engine
from ..simulation import SIMULATED

ENTRY_POINT_GROUP = "gapless.engines"

_BUILT_IN = {
    "mnn": ".mnn_engine:MnnEngine",
    "onnxruntime": ".ort_engine:OrtEngine",
    "callable": ".callable_engine:CallableEngine",
}


def engine_names() -> tuple[str, ...]:
    """Return the names of all known engines: the built-in ones first, then entry points."""
    return (*_BUILT_IN, *(name for name in entry_point_names(ENTRY_POINT_GROUP) if name not in _BUILT_IN))


def get_engine(name: str) -> Engine:
    """Return a new engine by name; what it runs on is not imported yet.

    Parameters
    ----------
    name
        A registered name, or "module:Class" or "file.py:Class" of an engine of your own.

    Raises
    ------
    InvalidInputError
        There is no such name.
    EngineUnavailableError
        An engine of your own could not be loaded.
    """
    if name == SIMULATED:
        raise InvalidInputError(
            "nothing can be measured with --engine simulated, which plays a cost table; `gapless tune`, "
            "`run` and `trace` take it"
        )
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        engine: Engine = getattr(import_module(module, __package__), attribute)()
        return engine
    try:
        if name in entry_point_names(ENTRY_POINT_GROUP):
            return _plugged(load_entry_point(ENTRY_POINT_GROUP, name, what="engine", like=Engine))
        if is_reference(name):
            return _plugged(load_reference(name, what="engine", like=Engine), reference=name)
    except PluginError as error:
        raise EngineUnavailableError(str(error)) from error
    hint = reference_hint(name) or meant(name, engine_names())
    raise InvalidInputError(f"no engine {shown(name)}; {hint}")


def _plugged(engine: Engine, *, reference: str = "") -> Engine:
    """Return an engine of somebody else if worker processes find one from a file by its own name, too."""
    if is_file_reference(reference) and not _is_found(engine.name):
        raise PluginError(
            f"engine {shown(reference)} cannot be used: worker processes look for it by its name, which is "
            f'{engine.name!r}; in the file, write name = f"{{__file__}}:{type(engine).__name__}"'
        )
    return engine


def _is_found(name: str) -> bool:
    module, colon, _ = name.rpartition(":")
    if not colon:
        return name in engine_names()
    try:
        return Path(module).is_file() if is_file_reference(name) else find_spec(module) is not None
    except (ImportError, ValueError):
        return False
