"""What the comparisons with an uncut model come to: one gatherer for pipelines, coordinators and exports."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..formulations.errors import EngineUnavailableError
from .comparing import AT_RANDOM, Difference, Reference
from .model import Model, references
from .runner import Verification

SEEDS = (1, 2, 3)
"""Chunks are tried alone on these samples, which tell the scales of the right numbers, too."""


class Gathered:
    """The tensors that were compared so far, and those that could not be.

    `noun` is what they are, e.g. "output"; `tolerance` is what is said to be allowed if there are none.
    """

    def __init__(self, noun: str, tolerance: float = 0.0) -> None:
        self._noun = noun
        self._tolerance = tolerance
        self._found: list[tuple[Difference, str]] = []
        self._problems: dict[str, None] = {}

    def add(self, difference: Difference, name: str) -> None:
        """Note what came of one tensor."""
        self._found.append((difference, name))

    def cannot(self, problem: str) -> None:
        """Note what could not be compared at all, and why."""
        self._problems[problem] = None

    def right(self, model: Model, names: Collection[str]) -> dict[str, Reference]:
        """Return the references of tensors and inputs of a model; none, and a note, if it cannot be run."""
        samples = [model.sample_inputs(seed) for seed in SEEDS]
        inputs = {name: Reference.of([sample[name] for sample in samples]) for name in samples[0]}
        try:
            return inputs | references(model, SEEDS, sorted(names))
        except EngineUnavailableError as error:
            self.cannot(str(error))
            return {}

    def verification(self, requests: int = 1) -> Verification:
        """Return what came of all, after a number of requests."""
        compared = [each for each in self._found if each[0].compared]
        blind = {
            (name, difference.words == AT_RANDOM)
            for difference, name in self._found
            if not difference.compared
        }
        notes = (
            unverified_words(sorted(n for n, own in blind if own == random), random=random)
            for random in (False, True)
        )
        worst, name = max(compared, key=lambda each: each[0].error, default=(None, ""))
        return Verification(
            requests=requests,
            worst_error=None if worst is None else worst.error,
            tolerance=max((each.allowed for each, _ in self._found), default=self._tolerance),
            problem="; ".join(filter(None, [*self._problems, *notes])),
            share=max((each.share for each, _ in compared if each.agrees), default=0.0),
            where=f"{self._noun} {name!r}" if name else "",
        )


def unverified_words(outputs: Iterable[str], *, random: bool = False) -> str:
    """Return why outputs could not be compared, in words; "" for none; `random`: no two runs agree."""
    names = ", ".join(map(repr, outputs))
    if random:
        return names and f"for {names} nothing can be compared: {AT_RANDOM}"
    return names and (
        f"for {names} the uncut model itself gives mostly numbers that are not finite, which would equal "
        "those of any chunk: try it on real inputs (--input) or in a range (--input-range)"
    )
