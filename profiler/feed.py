"""Real inputs for every piece: the tensors that cross its borders when the model runs on sample inputs.

Random numbers would do for most layers, but not where a tensor holds indices or shapes, and not where
the time depends on the values. The tensors lie in a file without a name, which workers inherit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable

from ..executor.model import Model, Piece, TensorPart
from ..formulations.errors import ProfilingError

_Wanted = tuple[str, TensorPart | None]
"""A tensor by name, and which part of it; None: all of it."""


class Feed:
    """Inputs of pieces, computed when one of them is first needed."""

    def __init__(self, model: Model, *, seed: int) -> None:
        self._model = model
        self._seed = seed
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._places: dict[_Wanted, int] = {}
        self._announced: dict[_Wanted, None] = {}

    @property
    def descriptor(self) -> int:
        """File from which workers read."""
        return self._file.fileno()

    def announce(self, pieces: Iterable[Piece]) -> None:
        """Say which pieces will be run, so that what goes in and comes out of all is computed together."""
        for piece in pieces:
            self._announced |= dict.fromkeys([*_inputs(piece), *(() if piece.parts else _outputs(piece))])

    def places(self, piece: Piece) -> list[int]:
        """Return where the inputs of a piece start in the file, in their order."""
        self.announce([piece])
        return self._found(_inputs(piece))

    def expected(self, piece: Piece) -> list[int]:
        """Return where the right outputs of a piece (no tile) start in the file, in their order."""
        self.announce([piece])
        return self._found(_outputs(piece))

    def close(self) -> None:
        """Free the file."""
        self._file.close()

    def _found(self, wanted: list[_Wanted]) -> list[int]:
        if any(one not in self._places for one in wanted):
            self._compute([one for one in self._announced if one not in self._places])
        return [self._places[one] for one in wanted]

    def _compute(self, missing: list[_Wanted]) -> None:
        inputs = self._model.sample_inputs(self._seed)
        inner = list(dict.fromkeys(name for name, _ in missing if name not in inputs))
        found = {**inputs, **(self._model.reference(inputs, also=inner) if inner else {})}
        for name, part in missing:
            if name not in found:
                raise ProfilingError(
                    f"the model {self._model.network.name!r} does not say what the tensor {name!r} holds"
                )
            array = found[name]
            self._write((name, part), (array if part is None else part.of(array)).tobytes())

    def _write(self, wanted: _Wanted, data: bytes) -> None:
        try:
            self._places[wanted] = self._file.seek(0, 2)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise ProfilingError(
                f"the inputs of pieces of {self._model.network.name!r} cannot be written to "
                f"{tempfile.gettempdir()} ({error.strerror}): free some space, or set TMPDIR"
            ) from error


def _inputs(piece: Piece) -> list[_Wanted]:
    parts = piece.parts[: len(piece.inputs)] or (None,) * len(piece.inputs)
    return [(piece.prefix + spec.name, part) for spec, part in zip(piece.inputs, parts, strict=True)]


def _outputs(piece: Piece) -> list[_Wanted]:
    return [(piece.prefix + spec.name, None) for spec in piece.outputs]
