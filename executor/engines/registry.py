"""Engines by name. An engine is one or two files and a case here; others come as plug-ins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from ...formulations.availability import Availability
from ...formulations.errors import EngineUnavailableError, InvalidInputError
from ...formulations.hardware import ProcessingUnit
from ...formulations.plugins import (
    PluginError,
    entry_point_names,
    is_file_reference,
    is_reference,
    load_entry_point,
    load_reference,
    reference_hint,
    require_trusted,
)
from ...formulations.validation import meant, shown
from ..engine import SIMULATED, Artifact, Engine, Session
from ..model import Piece

ENTRY_POINT_GROUP = "gapless.engines"

_BUILT_IN = ("mnn", "onnxruntime", "openvino", "callable", "opencl")


def _built_in(name: str) -> Engine:
    """Return an engine of `_BUILT_IN`; no other is loaded."""
    found: type[Engine]
    match name:
        case "mnn":
            from .mnn_engine import MnnEngine as found
        case "onnxruntime":
            from .ort_engine import OrtEngine as found
        case "openvino":
            from .openvino_engine import OpenVinoEngine as found
        case "callable":
            from .callable_engine import CallableEngine as found
        case _:
            from .opencl_engine import OpenClEngine as found
    return found()


def engine_names() -> tuple[str, ...]:
    """Return the names of all known engines: the built-in ones first, then entry points."""
    return (*_BUILT_IN, *(name for name in entry_point_names(ENTRY_POINT_GROUP) if name not in _BUILT_IN))


def get_engine(name: str) -> Engine:
    """Return a new engine by name; what it runs on is not imported yet.

    `name`: a registered name, or "module:Class" or "file.py:Class" of an engine of your own; or two of them,
    such as "mnn+callable": each piece is run by the first that takes its kind.
    Raises InvalidInputError: there is no such name.
    Raises EngineUnavailableError: an engine of your own could not be loaded.
    """
    if name == SIMULATED:
        raise InvalidInputError(
            "nothing can be measured with --engine simulated, which plays a cost table; `gapless tune`, "
            "`run` and `trace` take it"
        )
    first, plus, last = name.rpartition("+")
    if plus and last in engine_names():
        return EngineByKind([get_engine(first), get_engine(last)])
    if name in _BUILT_IN:
        return _built_in(name)
    try:
        if name in entry_point_names(ENTRY_POINT_GROUP):
            return _plugged(load_entry_point(ENTRY_POINT_GROUP, name, what="engine", like=Engine))
        if is_reference(name):
            return _plugged(load_reference(name, what="engine", like=Engine), reference=name)
    except PluginError as error:
        raise EngineUnavailableError(str(error)) from error
    hint = reference_hint(name) or meant(name, engine_names())
    raise InvalidInputError(f"no engine {shown(name)}; {hint}")


def engines_on(units: Iterable[ProcessingUnit], given: Engine) -> dict[str, Engine]:
    """Return, by name of unit, who runs everything there: the engine that a unit names, or else a given one.

    Raises InvalidInputError, EngineUnavailableError: as for `get_engine`.
    """
    known = {"": given, given.name: given}
    found = {}
    for unit in units:
        name = unit.engine.name
        if name not in known:
            require_trusted(name, f"the engine of unit {unit.name!r}")
            known[name] = get_engine(name)
        found[unit.name] = known[name]
    return found


def engine_words(engines: Iterable[Engine]) -> str:
    """Return engines with their versions, each once, in words."""
    versions = {engine.name: engine.availability().version for engine in engines}
    return " + ".join(f"{name} {version}".strip() for name, version in versions.items())


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


class EngineByKind:
    """What runs a pipeline of models and Python functions; see `Engine`.

    An artifact names the engine that prepared it, so workers never see this one.

    `engines`: in order of preference.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        self._engines = tuple(engines)

    @property
    def name(self) -> str:
        """Names of all, with "+" between them."""
        return "+".join(engine.name for engine in self._engines)

    def availability(self) -> Availability:
        """Say whether all of them work here."""
        found = [engine.availability() for engine in self._engines]
        missing = next((each for each in found if not each.ok), None)
        return missing or Availability(ok=True, version="+".join(each.version for each in found))

    def backends(self) -> tuple[str, ...]:
        """Return the backends that any of them reaches; profiling finds out what runs where."""
        return tuple(dict.fromkeys(backend for engine in self._engines for backend in engine.backends()))

    def takes(self, kind: str) -> bool:
        """Return whether one of them can run contents of a kind."""
        return any(engine.takes(kind) for engine in self._engines)

    def prepare(self, pieces: Sequence[Piece], *, folder: Path | None = None) -> tuple[Artifact, ...]:
        """Have each piece prepared by the first engine that takes it.

        Raises InvalidInputError: no engine takes a piece.
        """
        chosen = [self._for(piece) for piece in pieces]
        made: dict[int, Artifact] = {}
        for engine in self._engines:
            own = [index for index, each in enumerate(chosen) if each is engine]
            if own:
                artifacts = engine.prepare([pieces[index] for index in own], folder=folder)
                made |= dict(zip(own, artifacts, strict=True))
        return tuple(made[index] for index in range(len(pieces)))

    def open(self, artifact: Artifact, unit: ProcessingUnit) -> Session:
        """Have the engine that prepared an artifact open it; errors as for `Engine.open`."""
        return next(engine for engine in self._engines if engine.name == artifact.engine).open(artifact, unit)

    def _for(self, piece: Piece) -> Engine:
        for engine in self._engines:
            if engine.takes(piece.content.kind):
                return engine
        raise InvalidInputError(
            f"piece {piece.name!r} holds {piece.content.kind!r}, which none of the engines {self.name} "
            "takes: name another one in --engine"
        )
