"""What is observed of contention: one network alone, and the same one beside another."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import median, quantiles

from ....formulations.errors import InvalidInputError
from ....formulations.validation import Defects, FileContent

FEWEST_FOR_NOISE = 3
"""Fewest measurements whose quartiles say something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoRun(FileContent):
    """A network (or a chunk of one) timed alone and beside another one, in turn.

    Attributes
    ----------
    victim, victim_unit
        What was timed, and where.
    aggressor, aggressor_unit
        What ran in a loop meanwhile, and where.
    alone_us, beside_us
        Time of one run without and with it, one entry each time, microseconds; both are measured right
        after each other, so that what drifts slowly cancels.
    shares
        For which part of each `beside_us` the aggressor really ran, as far as it can run (1), one entry
        each time; empty: all the time. Other programs on its cores make it less.

    Raises
    ------
    InvalidInputError
        Nothing was timed, a time is not above zero, or both run on the same unit.
    """

    victim: str
    victim_unit: str
    aggressor: str
    aggressor_unit: str
    alone_us: tuple[float, ...]
    beside_us: tuple[float, ...]
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        defects = Defects(f"co-run [{self.label}]")
        if not self.alone_us or len(self.alone_us) != len(self.beside_us):
            defects.add(
                f"alone_us has {len(self.alone_us)} entries and beside_us {len(self.beside_us)}: "
                "both need one for each measurement"
            )
        for field in ("alone_us", "beside_us"):
            for row, time_us in enumerate(getattr(self, field)):
                if not 0 < time_us < float("inf"):
                    defects.add(f"{field}[{row}] is {time_us}, must be above 0")
        if self.shares and len(self.shares) != len(self.beside_us):
            defects.add(f"shares has {len(self.shares)} entries, needs none or one for each measurement")
        for row, share in enumerate(self.shares):
            if not 0 < share <= 1:
                defects.add(f"shares[{row}] is {share}, must be above 0 and at most 1")
        if self.victim_unit == self.aggressor_unit:
            defects.add(f"both run on unit {self.victim_unit!r}, where only one chunk runs at a time")
        defects.raise_as(InvalidInputError)

    @property
    def label(self) -> str:
        """Who ran beside whom, in words."""
        return label_of(self.victim, self.victim_unit, self.aggressor, self.aggressor_unit)

    @property
    def slowdown(self) -> float:
        """By which part of its time alone the victim takes longer beside an aggressor that always runs.

        The median of all measurements; an aggressor that ran for part of the time only slows the victim in
        that part of the time. Negative where the victim ran faster, as noise has it, and as clocks that rise
        with load have it.
        """
        return median(self._slowdowns())

    @property
    def noise(self) -> float | None:
        """Standard error of the slowdown, from the quartiles; None with fewer than three."""
        if len(self.alone_us) < FEWEST_FOR_NOISE:
            return None
        first, _, third = quantiles(self._slowdowns(), n=4, method="inclusive")
        return _MEDIAN_ERROR * (third - first) / sqrt(len(self.alone_us))

    def _slowdowns(self) -> list[float]:
        shares = self.shares or (1.0,) * len(self.beside_us)
        return [
            (beside / alone - 1) / share
            for alone, beside, share in zip(self.alone_us, self.beside_us, shares, strict=True)
        ]


def label_of(victim: str, victim_unit: str, aggressor: str, aggressor_unit: str) -> str:
    """Return who runs beside whom, in words."""
    return f"{victim} on {victim_unit} beside {aggressor} on {aggressor_unit}"


_MEDIAN_ERROR = 1.2533 / 1.349
"""Standard error of a median times the root of the count, over the quartile range, of a normal sample."""
