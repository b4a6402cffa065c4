"""Chunks of a coordinator against the uncut model: each on each of its units, before requests come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...formulations.coordination.estimates import Key
from ...formulations.errors import EngineUnavailableError, OutputMismatchError
from ...formulations.hardware import ProcessingUnit
from ..engine import PlacementReceipt
from ..model import allowed_of, references
from ..pipeline.verify import receipt_words, unverified_words
from ..runner import Verification
from .held import HeldNetwork

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]

_SEEDS = (1, 2, 3)
"""Chunks are tried on the first of these samples; all of them tell the scales of the right numbers."""


class Comparison:
    """The right numbers of every tensor that crosses a cut, and what was found of the chunks so far.

    `tensors` are those of the task slot in which chunks are tried.
    """

    def __init__(self, held: HeldNetwork, tensors: Tensors) -> None:
        self._held = held
        self._tensors = tensors
        self._errors: list[float] = []
        self._allowed = 0.0
        self._blind: set[str] = set()
        self._problem = ""
        self._inputs = held.model.sample_inputs(_SEEDS[0])
        names = {name for specs in held.sessions.values() for spec in specs for name in spec.outputs}
        try:
            self._right = references(held.model, _SEEDS, sorted(names))
        except EngineUnavailableError as error:
            self._right, self._problem = {}, str(error)

    @property
    def verification(self) -> Verification:
        """What came of it."""
        return Verification(
            requests=1,
            worst_error=max(self._errors, default=None),
            tolerance=self._allowed,
            problem=self._problem or unverified_words(sorted(self._blind)),
        )

    def check(
        self,
        index: int,
        unit: ProcessingUnit,
        receipts: Sequence[PlacementReceipt],
        run: Callable[[Key], object],
    ) -> list[PlacementReceipt]:
        """Run all chunks of a unit on right inputs, compare what they make, and return receipts that say so.

        Raises
        ------
        OutputMismatchError
            Numbers differ; the message names the first chunk that is wrong.
        """
        keys = sorted(key for key in self._held.keys if key[2] == index) if self._right else []
        compared = {piece for key in keys for piece in self._compared(key, unit, receipts, run)}
        return [replace(receipt, compared=receipt.piece in compared) for receipt in receipts]

    def _compared(
        self,
        key: Key,
        unit: ProcessingUnit,
        receipts: Sequence[PlacementReceipt],
        run: Callable[[Key], object],
    ) -> Iterator[str]:
        """Compare what a chunk makes; yield the pieces of which something could be compared."""
        specs = self._held.sessions[key]
        made = {name: spec.artifact.piece for spec in specs for name in spec.outputs}
        for name in {name for spec in specs for name in spec.inputs} - made.keys():
            right = self._inputs[name] if name in self._inputs else self._right[name].arrays[0]
            self._tensors[name][...] = right
        for name in made:  # an engine that writes nothing must not find the numbers of another one
            self._tensors[name][...] = 0
        run(key)
        allowed = allowed_of(self._held.model.network, [unit.engine.precision])
        self._allowed = max(self._allowed, allowed.error)
        for name, piece in made.items():
            difference = self._right[name].compare(self._tensors[name], 0, allowed)
            if not difference.compared:
                self._blind.add(name)
                continue
            if not difference.agrees:
                start, stop = self._held.layers(*key[:2])
                granted = "; ".join(receipt_words(one) for one in receipts if one.piece == piece)
                raise OutputMismatchError(
                    f"{self._held.name!r} gives wrong numbers. The first wrong tensor is {name!r}, made by "
                    f"{self._held.name!r} (layers {start} to {stop - 1}) on unit {unit.name!r}: "
                    f"{difference.where}{': ' if difference.where else ''}{difference.words}. What that unit "
                    f"was granted: {granted}. Leave this unit or engine out, or take what it gives unchecked "
                    "(--unchecked, check=False)"
                )
            self._errors.append(difference.error)
            yield piece
