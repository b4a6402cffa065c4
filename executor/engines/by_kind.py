"""Several engines as one: each piece is run by the first of them that takes its kind of content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...formulations.availability import Availability
from ...formulations.errors import InvalidInputError
from ...formulations.hardware import ProcessingUnit
from ..engine import Artifact, Engine, Session
from ..model import Piece


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
