"""How to tune: racing or a fixed time for everybody, in rungs of growing length."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ...formulations.errors import InvalidInputError
from ...formulations.validation import Defects, FileContent


class TuningMode(StrEnum):
    """Who is measured for how long.

    RACE
        Everybody for a short time; the clearly slower leave after each rung.
    FIXED
        Everybody for 10 s, as in BetterTogether (section III-D); taken in five interleaved visits, so
        that ties can be told from differences.
    """

    RACE = "race"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung(FileContent):
    """One step of a race: every candidate is visited once a round, for some seconds each time."""

    seconds: float
    rounds: int = 2


RUNGS = {
    TuningMode.RACE: (Rung(seconds=0.5), Rung(seconds=0.5), Rung(seconds=1.0), Rung(seconds=1.0, rounds=4)),
    TuningMode.FIXED: (Rung(seconds=2.0, rounds=5),),
}
"""What is measured in each mode when nothing else is said: a race of 1 + 1 + 2 + 4 s for who stays.

Chosen by `benchmarks/tuning.py`: for the same time, more rounds of short visits find the fastest more
often than few long ones, but each visit also costs the start of its sessions.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions(FileContent):
    """How to tune.

    Attributes
    ----------
    mode
        Racing, or a fixed time for everybody.
    rungs
        Steps of the race; empty: `RUNGS` of the mode.
    margin
        Difference in speed that does not matter, as a share: who is clearly slower than the fastest by
        more than this leaves the race, and who cannot be told from it may win instead of it only within this.
    budget_s
        Seconds of racing after which no further visit begins; None: no limit. Opening, checking and
        warming up candidates counts, profiling and planning do not. A run that is resumed counts what its
        race has spent before.
    warm_up_requests
        Requests of each stream before each visit that are not counted.
    seed
        Decides the order of the candidates in each round but the first.
    """

    mode: TuningMode = TuningMode.RACE
    rungs: tuple[Rung, ...] = ()
    margin: float = 0.01
    budget_s: float | None = None
    warm_up_requests: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        defects = Defects("tuning options")
        for index, rung in enumerate(self.rungs):
            if not 0 < rung.seconds <= 3600:
                defects.add(f"rungs[{index}].seconds is {rung.seconds}, must be above 0 and at most 3600")
            defects.check_count(f"rungs[{index}].rounds", rung.rounds, least=1)
        if not 0 <= self.margin < 1:
            defects.add(f"margin is {self.margin}, must be at least 0 and below 1")
        if self.budget_s is not None and not self.budget_s > 0:
            defects.add(f"budget_s is {self.budget_s}, must be above 0")
        defects.check_count("warm_up_requests", self.warm_up_requests)
        defects.raise_as(InvalidInputError)

    @property
    def steps(self) -> tuple[Rung, ...]:
        """The rungs to climb."""
        return self.rungs or RUNGS[self.mode]
