"""Chunks of a coordinator against the uncut model: each on each of its units, before requests come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...formulations.coordination.estimates import Key
from ...formulations.errors import OutputMismatchError
from ...formulations.hardware import ProcessingUnit
from ..engine import PlacementReceipt
from ..gathering import Gathered
from ..model import allowed_of
from ..pipeline.verify import receipt_words
from ..runner import Verification
from .held import HeldNetwork

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Tensors = Mapping[str, NDArray[Any]]


class Comparison:
    """The right numbers of every tensor that crosses a cut, and what was found of the chunks so far.

    `tensors` are those of the task slot in which chunks are tried.
    """

    def __init__(self, held: HeldNetwork, tensors: Tensors) -> None:
        self._held = held
        self._tensors = tensors
        self._gathered = Gathered("tensor")
        names = {name for specs in held.sessions.values() for spec in specs for name in spec.outputs}
        self._right = self._gathered.right(held.model, names)

    @property
    def verification(self) -> Verification:
        """What came of it."""
        return self._gathered.verification()

    def check(
        self,
        index: int,
        unit: ProcessingUnit,
        receipts: Sequence[PlacementReceipt],
        run: Callable[[Key], object],
    ) -> list[PlacementReceipt]:
        """Run all chunks of a unit on right inputs, compare what they make, and return receipts that say so.

        Raises OutputMismatchError: numbers differ; the message names the first chunk that is wrong.
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
            self._tensors[name][...] = self._right[name].arrays[0]
        for name in made:  # an engine that writes nothing must not find the numbers of another one
            self._tensors[name][...] = 0
        run(key)
        allowed = allowed_of(self._held.model.network, [unit.engine.precision])
        for name, piece in made.items():
            difference = self._right[name].compare(self._tensors[name], 0, allowed)
            self._gathered.add(difference, name)
            if not difference.agrees:
                start, stop = self._held.layers(*key[:2])
                granted = "; ".join(receipt_words(one) for one in receipts if one.piece == piece)
                raise OutputMismatchError(
                    f"{self._held.name!r} gives wrong numbers. The first wrong tensor is {name!r}, made by "
                    f"{self._held.name!r} (layers {start} to {stop - 1}) on unit {unit.name!r}: "
                    f"{difference.details}. What that unit was granted: {granted}. Leave this unit or engine "
                    "out, or take what it gives unchecked (--unchecked, check=False)"
                )
            if difference.compared:
                yield piece
