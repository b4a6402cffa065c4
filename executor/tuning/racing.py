"""How to tune: by racing or a fixed time for everybody; which candidates are clearly slower.

1. A *visit* runs one candidate for a short time and yields one period. A *round* visits every candidate
   that is still in the race once: the strong ones first, in random order, then those that are 1.3 times as
   slow or worse. The first round goes by prediction, the best plan and the best baseline before everybody
   else, so that a race that is cut short has measured what matters. A *rung* is a few rounds; visits grow
   from rung to rung.
2. Candidates are compared within rounds only: ratio = period of the candidate / period of the leader in
   the same round. What slows a whole round (clock, heat, neighbours) cancels.
3. The leader is the candidate with the least median of (period / median period of its round).
4. The *lower limit* of a candidate is the k-th smallest of its ratios: the smallest of 4 to 6, the second
   of 7 to 9, and so on, so that a candidate as fast as the leader has a lower limit above 1 in at most one
   of 16 cases. (Sign test: nothing is assumed about the noise, and one disturbed visit decides nothing.)
5. *Clearly slower by a margin* means: lower limit > 1 + margin. With fewer than four rounds only those
   that are 1.3 times as slow in every round are clearly slower, and never after a single round. Where what
   was learned from executed plans says so, too (its interval lies above that of the leader), the margin is
   enough.
6. After each rung the clearly slower leave, except the best plan and the best baseline. Whoever has left and
   is not clearly slower than a new leader comes back.
7. The race is over when all others are clearly slower than the leader, or the rungs are used up.
8. Two candidates *tie* unless one of them is clearly slower, by more than what cannot be resolved. Of those
   that tie with the leader, the cheapest whose median ratio is within the margin wins, so that a choice
   costs no more.
9. *Places*: whoever ties with the winner shares the first place, and whoever ties with the first of another
   place shares that one. Nothing else says who is better than whom.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from math import comb, exp, log
from statistics import median

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


Periods = Mapping[str, Mapping[int, float]]
"""Measured period in microseconds by candidate and by number of the round."""

FEW_ROUNDS = 4
"""With fewer rounds than this nothing but a huge difference is clear."""

HUGE = 0.3
"""Margin with few rounds."""

RESOLUTION = 0.002
"""Differences below this are not resolved, however steady the machine."""

_CONFIDENCE = 1 / 16


def ratios(periods: Periods, candidate: str, leader: str) -> list[float]:
    """Return by how much a candidate was slower than the leader in each round that both took part in."""
    ours, theirs = periods[candidate], periods[leader]
    return [ours[number] / theirs[number] for number in sorted(ours.keys() & theirs.keys())]


def leader(periods: Periods, among: Collection[str]) -> str:
    """Return the fastest of some measured candidates, by the rounds that all of them took part in.

    Without such a round (the race was stopped in its first), by what there is.
    """
    shared = set.intersection(*(set(periods[candidate]) for candidate in among))
    middle = {number: median(periods[candidate][number] for candidate in among) for number in shared}

    def standing(candidate: str) -> float:
        own = periods[candidate]
        return median([own[number] / middle[number] for number in shared] or own.values())

    return min(among, key=standing)


def lower_limit(found: list[float]) -> float:
    """Return the lower limit of some ratios (rule 4); with fewer than four, the smallest of them."""
    count, rank, below = len(found), 0, 1
    while below <= _CONFIDENCE * 2**count:
        rank += 1
        below += comb(count, rank)
    return sorted(found)[max(0, rank - 1)]


def clearly_slower(found: list[float], *, margin: float, foretold: bool = False) -> bool:
    """Return whether ratios to the leader say that a candidate is slower by more than a margin (rule 5).

    `foretold`: whether it is expected to be slower than the leader anyway.
    """
    if len(found) < 2:
        return False
    enough = len(found) >= FEW_ROUNDS or foretold
    return lower_limit(found) > 1 + (margin if enough else max(margin, HUGE))


def ties(found: list[float]) -> bool:
    """Return whether ratios to another candidate leave open which of both is faster (rule 8)."""
    return bool(found) and not clearly_slower(found, margin=RESOLUTION)


def slower_ones(periods: Periods, first: str, *, margin: float, foretold: Collection[str] = ()) -> set[str]:
    """Return the measured candidates that are clearly slower than the leader; `foretold`: expected to be."""
    return {
        candidate
        for candidate in periods
        if candidate != first
        and clearly_slower(ratios(periods, candidate, first), margin=margin, foretold=candidate in foretold)
    }


def noise(periods: Periods, first: str) -> float | None:
    """Return by how much ratios to the winner vary from round to round, as a share; None: not known.

    The median of |ratio / median ratio of its candidate - 1|, over candidates that were visited in enough
    rounds (`FEW_ROUNDS`), or over all while there is none.
    """
    found = [ratios(periods, candidate, first) for candidate in periods if candidate != first]
    enough = [each for each in found if len(each) >= FEW_ROUNDS] or [each for each in found if len(each) > 1]
    deviations = [abs(ratio / median(each) - 1) for each in enough for ratio in each]
    return median(deviations) if deviations else None


def drift(periods: Periods) -> float | None:
    """Return by how much the machine was slower in the last round than in the first, as a share.

    Of the candidates that took part in most rounds: the slope of Theil and Sen of the logarithm of their
    periods, each relative to its own median, over the rounds; so one disturbed round decides nothing.
    None: nobody was visited twice.
    """
    most = max(map(len, periods.values()), default=0)
    steady = [own for own in periods.values() if len(own) == most]
    rounds = sorted(set.intersection(*map(set, steady))) if steady else []
    if len(rounds) < 2:
        return None
    speed = {n: log(median(own[n] / median(own.values()) for own in steady)) for n in rounds}
    slope = median((speed[b] - speed[a]) / (b - a) for a, b in combinations(rounds, 2))
    return exp(slope * (rounds[-1] - rounds[0])) - 1
