"""What chunks lose to others that run at the same time: one table for plays, bounds and models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .costs import Interference

MOST_LOSS_PERMILLE = 750
"""Most of its speed that a chunk can lose to all that runs beside it at an instant."""

LossTable = tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
"""Permille by [chain a][unit u][chain b][unit v]."""


@dataclass(frozen=True, kw_only=True)  # no slots: what is computed is kept
class Losses:
    """What chunks of some networks lose to each other on the units of one platform.

    Attributes
    ----------
    networks
        Name of the network of each chain.
    unit_count
        Number of units.
    interference
        How much units slow each other down, or None.
    """

    networks: tuple[str, ...]
    unit_count: int
    interference: Interference | None

    @cached_property
    def permille(self) -> LossTable:
        """Share of its speed that chain a on unit u loses while chain b runs on unit v, by [a][u][b][v].

        A slowdown of d means a loss of d / (1 + d). Losses to several chunks that run at an instant add up
        to at most `MOST_LOSS_PERMILLE`; that depends on who runs, so the table does not know it.
        """
        units = range(self.unit_count)
        return tuple(
            tuple(
                tuple(tuple(self._loss(unit, v, pressure) for v in units) for pressure in pressures)
                for unit in units
            )
            for pressures in self._pressures()
        )

    @cached_property
    def most_permille(self) -> tuple[tuple[int, ...], ...]:
        """What chain a on unit u would lose to the worst chain on each other unit together, by [a][u]."""
        units = range(self.unit_count)
        return tuple(
            tuple(sum(max(row[v] for row in losses) for v in units) for losses in rows)
            for rows in self.permille
        )

    @cached_property
    def capped(self) -> bool:
        """Whether company can ever take more than a chunk can lose."""
        return any(most > MOST_LOSS_PERMILLE for row in self.most_permille for most in row)

    @cached_property
    def contended(self) -> bool:
        """Whether any chunk ever slows another one down."""
        return any(loss for a in self.permille for u in a for b in u for loss in b)

    def slowest_us(self, work_us: int, *, chunks: int = 1) -> int:
        """Return how long some chunks with so much work take at most, one after the other.

        What the cap spares a chunk counts in whole microseconds.
        """
        if not self.contended:
            return work_us
        return -(-1000 * (work_us + chunks * self.capped) // (1000 - MOST_LOSS_PERMILLE))

    def _pressures(self) -> list[list[int]]:
        """Return how much chain a minds chain b, by [a][b] (`Interference.pressure`)."""
        names, known = self.networks, self.interference
        return [[0 if known is None else known.pressure(a, b) for b in names] for a in names]

    def _loss(self, unit: int, other: int, pressure: int) -> int:
        if self.interference is None or unit == other:
            return 0
        slowdown = self.interference.slowdown(unit, other, pressure)
        return min(MOST_LOSS_PERMILLE, round(1000 * slowdown / (1000 + slowdown)))
