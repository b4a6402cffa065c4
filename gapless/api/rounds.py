"""What a closed loop of tuning found, round by round."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from ..executor.tuning.result import TuningResult, TuningStop
from ..formulations.files import Schema
from ..formulations.plan import Plan
from ..formulations.validation import STRICT
from ..profiler.prediction.corrections import Corrections
from ..profiler.prediction.learned import Lessons

CORRECTED = "corrected"
"""Name of the predictions by corrected costs."""


class LoopStop(StrEnum):
    """Why a closed loop ended.

    SETTLED
        The best plan has stood a round, and no plan that was not measured is predicted to be faster.
    EXHAUSTED
        No backend finds another plan.
    ROUNDS
        All rounds that were asked for are done.
    BUDGET
        The time was used up.
    INTERRUPTED
        The user stopped it; it can be resumed.
    """

    SETTLED = "settled"
    EXHAUSTED = "exhausted"
    ROUNDS = "rounds"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round."""

    __pydantic_config__: ClassVar[Any] = STRICT

    corrections: Corrections | None
    """What the costs were multiplied with before its plans were made; None in the first round, and where who
    slows whom was learned instead."""
    result: TuningResult
    """What was measured: its plans, and in a later round the best so far once more."""
    lessons: Lessons | None = None
    """What was learned of who slows whom before its plans were made; None where that was not asked."""

    @property
    def unit_factors(self) -> tuple[float, ...]:
        """What times of each unit are multiplied with, with company that slows it most; empty: not known."""
        if self.corrections is not None:
            return self.corrections.unit_factor
        return () if self.lessons is None else self.lessons.unit_factors

    @property
    def costs(self) -> str:
        """Name of the costs that its plans were made from."""
        if self.corrections is not None or self.lessons is not None:
            return CORRECTED
        return next(name for row in self.result.rows for name, _ in row.candidate.predicted_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The most promising plan that was not measured, after the last round."""

    __pydantic_config__: ClassVar[Any] = STRICT

    plan: Plan
    """The plan."""
    predicted_us: int
    """Its period by what was learned from all rounds."""
    best_us: int
    """That of the best plan, by the same; of a baseline, as measured."""

    @property
    def better(self) -> bool:
        """Whether the plan is predicted to be faster than the best."""
        return self.predicted_us < self.best_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """All rounds of a closed loop."""

    __pydantic_config__: ClassVar[Any] = STRICT

    rounds: tuple[Round, ...]
    """At least one."""
    stop: LoopStop
    """Why it ended."""
    outlook: Outlook | None = None
    """What could be measured next; None where there is nothing, or it was cut off before that was known."""

    @property
    def answer(self) -> TuningResult:
        """What the last round says that came to its end: of one that was cut off, it is not known."""
        whole = [one.result for one in self.rounds if cut_off(one.result) is None]
        return whole[-1] if whole else self.rounds[0].result

    @property
    def plans_measured(self) -> int:
        """How many plans of solvers were executed at least once, over all rounds."""
        return sum(self.new_plans)

    @property
    def new_plans(self) -> tuple[int, ...]:
        """How many plans of solvers each round was the first to execute."""
        seen: set[str] = set()
        counts = []
        for one in self.rounds:
            known = len(seen)
            seen |= {row.candidate.key for row in one.result.rows if row.candidate.rank and row.period_us}
            counts.append(len(seen) - known)
        return tuple(counts)


LOOP = Schema(format="gapless.rounds", version=1, content=Loop)


def cut_off(result: TuningResult) -> LoopStop | None:
    """Return why a round did not come to its end, or None if it did."""
    stops = {TuningStop.INTERRUPTED: LoopStop.INTERRUPTED, TuningStop.BUDGET: LoopStop.BUDGET}
    return stops.get(result.stop)
